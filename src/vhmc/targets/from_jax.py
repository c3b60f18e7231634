"""Models written in JAX."""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_batching import custom_vmap
from jax.experimental import io_callback

from vhmc._types import Potential, Scalar, Vector
from vhmc.core.transforms import AbstractConstraint
from vhmc.targets.parameters import Parameters
from vhmc.targets.target import Counter, Evaluations, Target


def from_jax(
    log_density: Callable[[Any], Any],
    init: Any,
    constraints: Mapping[str, AbstractConstraint] | None = None,
) -> Target:
    """Target of a log density that JAX can trace.

    log_density: log of the posterior density up to a constant, in the user's space:
        the Jacobian of the constraints is added here.
    init: values to start from, which also say what the parameters are: a dict of
        numbers and arrays (or any pytree), or one flat vector, as `log_density` takes.
    constraints: where each parameter lives; those not named are real.
    """
    parameters = Parameters(init, constraints or {})
    return TracedTarget(log_density, parameters)


class TracedTarget(Target):
    """A target whose density JAX differentiates."""

    def __init__(self, log_density: Callable[[Any], Any], parameters: Parameters):
        super().__init__(parameters)

        def energy(theta: Vector) -> Scalar:
            values, log_jacobian = parameters.unflatten(theta)
            return -(jnp.asarray(log_density(values), dtype=float) + log_jacobian)

        _check_density(log_density, parameters)
        # Not counted: for loops inside JAX, whose owner then calls `charge`.
        self.energy = energy
        self._batched = jax.jit(jax.vmap(jax.value_and_grad(energy)))
        self._hessian = jax.jit(jax.hessian(energy))
        self._potential = _counted(energy, self._counter)

    def _evaluate(self, thetas: np.ndarray) -> Evaluations:
        number = len(thetas)
        self._counter.add(number)
        padding = ((0, _round_up(number) - number), (0, 0))
        padded = np.pad(thetas, padding, mode="edge") if number else thetas
        energy, grad = self._batched(padded)
        return Evaluations(np.asarray(energy)[:number], np.asarray(grad)[:number])

    def hessian(self, theta: np.ndarray) -> np.ndarray:
        """Second derivatives by autodiff, counted as `dim` calls."""
        self._counter.add(self.dim)
        return np.asarray(self._hessian(theta))

    @property
    def hessian_price(self) -> int:
        """As many calls as dimensions."""
        return self.dim

    @property
    def potential(self) -> Potential:
        """The true energy; traced calls are counted as they run."""
        return self._potential


def _round_up(number: int) -> int:
    """JAX compiles for every batch size: rounding up leaves only a few of them.

    The next power of two up to 16, three binary digits above.
    """
    bits = max(number - 1, 0).bit_length()
    grain = 1 << (bits if number <= 16 else bits - 3)
    return -(-number // grain) * grain


def _check_density(log_density: Callable[[Any], Any], parameters: Parameters) -> None:
    """Trace the user's function once, which costs no call of the model."""
    try:
        answer = jax.eval_shape(
            lambda theta: log_density(parameters.unflatten(theta)[0]), parameters.start
        )
    except jax.errors.TracerArrayConversionError as error:
        raise ValueError(
            "log_density uses NumPy on its argument, which JAX cannot trace: use "
            "jax.numpy, or from_callable with a gradient of your own"
        ) from error
    shape = getattr(answer, "shape", None)
    if shape is None:
        raise ValueError(
            f"log_density must return one number, got {type(answer).__name__}"
        )
    if shape != () or not jnp.issubdtype(answer.dtype, jnp.floating):
        raise ValueError(
            f"log_density must return one real number, got {answer.dtype} of shape "
            f"{shape}"
        )


def _counted(energy: Potential, counter: Counter) -> Potential:
    """Count each point at which the traced energy or its gradient is computed."""

    def ticker(size: int) -> Callable[[Vector], Vector]:
        """Let `theta` pass and count `size` calls: one host call for a whole batch."""

        @custom_vmap
        def tick(theta):
            io_callback(counter.add, None, size)
            return theta

        @tick.def_vmap
        def _(axis_size, in_batched, theta):
            return ticker(size * axis_size)(theta), in_batched[0]

        return tick

    tick = ticker(1)

    @jax.custom_vjp
    def potential(theta: Vector) -> Scalar:
        return energy(tick(theta))

    def forward(theta):
        return jax.value_and_grad(energy)(tick(theta))

    potential.defvjp(forward, lambda grad, cotangent: (cotangent * grad,))
    return potential

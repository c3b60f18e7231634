"""Models that JAX can trace: batches, exact Hessians, and a potential for kernels."""

import hashlib
import re
from collections.abc import Callable

import jax
import numpy as np
from jax.custom_batching import custom_vmap
from jax.experimental import io_callback

from vhmc._types import Potential, Scalar, Vector
from vhmc.evaluation.space import Space
from vhmc.evaluation.target import Answers, Counter, Target
from vhmc.models.batches import batched


class TracedTarget(Target):
    """A target whose density JAX differentiates.

    energy: minus the log density on the free vector, Jacobians included.
    """

    route = "traced by JAX"

    def __init__(self, energy: Potential, parameters: Space):
        super().__init__(parameters)
        # Not counted: for loops inside JAX, whose owner then calls `charge`.
        self.energy = energy
        self._batched = batched(jax.value_and_grad(energy))
        self._hessian = jax.jit(jax.hessian(energy))
        self._potential = _counted(energy, self._counter)

    def _evaluate(self, thetas: np.ndarray) -> Answers:
        energy, grad = self._batched(thetas)
        return Answers(-energy, -grad, [""] * len(thetas))

    def fingerprint(self) -> str:
        """Digest of the traced program and of the data in it."""
        traced = jax.make_jaxpr(self.energy)(self.start)
        program = re.sub(r"0x[0-9a-f]+", "", str(traced.jaxpr))
        if "callback" in program:
            return ""  # what happens on the host is not in the program
        digest = hashlib.sha256(f"{jax.__version__} {program}".encode())
        for constant in traced.consts:
            digest.update(np.ascontiguousarray(constant).tobytes())
        return digest.hexdigest()

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

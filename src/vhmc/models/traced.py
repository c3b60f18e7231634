"""Targets of models that JAX can trace: batched evaluation and exact Hessians."""

import functools
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
from vhmc.models.batches import MODEL_GROUPS, in_groups
from vhmc.models.second_derivatives import differenced_hessian, traced_hessian


class TracedTarget(Target):
    """A target whose log density JAX differentiates.

    energy: minus the log density of an unconstrained vector, Jacobians included. As an
        attribute it is not counted: a loop inside JAX uses it and then calls `charge`.
    parameters: the layout of the unconstrained vector.
    """

    route = "traced by JAX"

    def __init__(self, energy: Potential, parameters: Space):
        super().__init__(parameters)
        self.energy = energy
        self._compiled = jax.jit(jax.vmap(jax.value_and_grad(energy)))
        self._potential = _counted(energy, self._counter)

    @property
    def traced_energy(self) -> Potential:
        return self.energy

    def _evaluate(self, thetas: np.ndarray) -> Answers:
        # Few sizes: to compile a model may take longer than to evaluate it.
        energy, grad = in_groups(self._compiled, thetas, MODEL_GROUPS)
        return Answers(-energy, -grad, [""] * len(thetas))

    def fingerprint(self) -> str:
        """Digest of the traced program and the data in it; empty with callbacks."""
        traced = jax.make_jaxpr(self.energy)(self.start)
        program = re.sub(r"0x[0-9a-f]+", "", str(traced.jaxpr))
        if "callback" in program:
            return ""  # the program does not show what the host computes
        digest = hashlib.sha256(f"{jax.__version__} {program}".encode())
        for constant in traced.consts:
            digest.update(np.ascontiguousarray(constant).tobytes())
        return digest.hexdigest()

    @functools.cached_property
    def _hessian(self) -> Callable[[np.ndarray], jax.Array] | None:
        return traced_hessian(self.energy, self.start)

    def hessian(self, theta: np.ndarray) -> np.ndarray:
        """Second derivatives by autodiff, counted as `dim` evaluations.

        By differences of gradients where JAX differentiates the model only once.
        """
        if self._hessian is None:
            return differenced_hessian(self.evaluate, theta)
        self._counter.add(self.dim)
        return np.asarray(self._hessian(theta))

    @property
    def hessian_price(self) -> int:
        return self.dim if self._hessian is not None else 2 * self.dim

    @property
    def potential(self) -> Potential:
        """The true energy; evaluations are counted when the traced program runs."""
        return self._potential


def _counted(energy: Potential, counter: Counter) -> Potential:
    """Count the points at which the traced energy or its gradient is computed."""

    def ticker(size: int) -> Callable[[Vector], Vector]:
        """Identity that counts `size` evaluations, by one host call per batch."""

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

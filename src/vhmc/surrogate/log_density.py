"""The fitted surrogate on its own, for other samplers and for the next run."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from vhmc._types import Potential, Scalar, Vector


class LogDensity(eqx.Module):
    """The surrogate's log density on the unconstrained space, up to a constant.

    It is a pytree that JAX traces: a log density for BlackJAX as it is; NumPyro takes
    its `potential`, and samplers outside of JAX its `value_and_grad`.

    potential: minus the log density.
    """

    potential: Potential

    def __call__(self, theta: Vector) -> Scalar:
        """Log density at a point."""
        return -self.potential(theta)

    def value_and_grad(self, theta: Any) -> tuple[float, np.ndarray]:
        """Log density and gradient at a point, as NumPy knows them."""
        value, grad = _value_and_grad(self, jnp.asarray(theta, dtype=float))
        return float(value), np.asarray(grad)


@eqx.filter_jit
def _value_and_grad(density: LogDensity, theta: Vector) -> tuple[Scalar, Vector]:
    return jax.value_and_grad(density)(theta)

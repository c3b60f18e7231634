r"""The whitened residual surrogate $V(x) = \frac12 |x|^2 + z(x) + \text{guard}(x)$.

Softplus nodes grow at most linearly, so $\exp(-V)$ is always normalisable, and a
network without data is the standard normal.
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from vhmc._types import Scalar, Vector
from vhmc.numerics.bases import Additive
from vhmc.transport.transport_map import Chart


class Residual(eqx.Module):
    r"""Energy in whitened coordinates.

    basis, weights: the network $z$.
    radius: of the ball in which the network was taught.
    guard: curvature that is added outside of it, where the network only guesses.
    """

    basis: Additive
    weights: Float[Array, " s"]
    radius: Scalar
    guard: Scalar

    def __call__(self, x: Vector) -> Scalar:
        """Energy at `x`."""
        square = jnp.sum(x**2)
        # The root has no gradient at zero, where the guard is off anyway.
        length = jnp.sqrt(jnp.maximum(square, 1e-12))
        beyond = jnp.maximum(length - self.radius, 0.0)
        network = self.weights @ self.basis.features(x)
        return 0.5 * square + network + 0.5 * self.guard * beyond**2


class Charted(eqx.Module):
    """The residual surrogate as a potential on the user's unconstrained space."""

    chart: Chart
    residual: Residual

    def __call__(self, theta: Vector) -> Scalar:
        """Energy at `theta`, up to a constant."""
        x, log_volumes = self.chart.locate(theta[None])
        return self.residual(x[0]) + log_volumes[0]

    def log_density(self, theta: Vector) -> Scalar:
        """Log density, up to a constant."""
        return -self(theta)

"""The Gaussian potential: the Laplace guide, and the frame that nodes are drawn in."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from vhmc._types import Scalar, Vector


class Gaussian(eqx.Module):
    r"""Quadratic potential $\frac12 (\theta - \mu)^\top P (\theta - \mu)$.

    whiten: upper triangular $R$ with $P = R^\top R$, so that $R (\theta - \mu)$ is
        standard normal under the density.
    """

    mean: Vector
    whiten: Float[Array, "d d"]

    def __call__(self, theta: Vector) -> Scalar:
        """Energy at `theta`."""
        return 0.5 * jnp.sum((self.whiten @ (theta - self.mean)) ** 2)

    @property
    def precision(self) -> Float[Array, "d d"]:
        """Inverse covariance $P$."""
        return self.whiten.T @ self.whiten


def gaussian(mean: Vector, precision: Float[Array, "d d"]) -> Gaussian:
    """Gaussian potential from its mean and its (positive definite) precision."""
    return Gaussian(mean, jnp.linalg.cholesky(precision).T)


def standard_normal(dim: int) -> Gaussian:
    """Gaussian potential with zero mean and unit precision."""
    return Gaussian(jnp.zeros(dim), jnp.eye(dim))

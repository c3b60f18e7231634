"""The Gaussian potential: the Laplace guide, and the frame that nodes are drawn in."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from vhmc._types import Scalar, Vector

SMALLEST_CURVATURE = 1e-10
"""Relative to the largest; below it a Hessian says nothing of its direction."""


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


def positive_definite(hessian: np.ndarray) -> tuple[np.ndarray, tuple[str, ...]]:
    """Precision near a Hessian: negative curvatures change sign, flat ones get a floor.

    Returns it with a sentence if anything was changed.
    """
    if not np.all(np.isfinite(hessian)):
        raise ValueError("the Hessian at the mode is not finite")
    values, vectors = np.linalg.eigh((hessian + hessian.T) / 2)
    floor = SMALLEST_CURVATURE * np.abs(values).max()
    if floor == 0:
        raise ValueError("the log density is flat at the mode: its Hessian is zero")
    is_bad = values <= floor
    if not is_bad.any():
        return (hessian + hessian.T) / 2, ()
    repaired = np.where(is_bad, np.maximum(np.abs(values), floor), values)
    message = (
        f"the Hessian at the mode is not positive definite: {is_bad.sum()} of "
        f"{len(values)} curvatures (smallest {values.min():.3g}) were repaired"
    )
    return (vectors * repaired) @ vectors.T, (message,)

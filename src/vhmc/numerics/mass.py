r"""The mass matrix of the momentum, $r \sim N(0, M)$, $K(r) = \frac12 r^\top M^{-1} r$.

One class for all: `inverse` is a vector for a diagonal and a square for a dense mass.
Momenta come in batches, one row a chain.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.scipy as jsp
from jaxtyping import Array, Float

from vhmc._types import Points, PRNGKey, Vector


class Mass(eqx.Module):
    r"""A mass matrix, held as $M^{-1}$ and its Cholesky factor.

    inverse: $M^{-1}$, best near the posterior covariance.
    factor: $C$ with $C C^\top = M^{-1}$, square roots for a diagonal.
    """

    inverse: Vector | Float[Array, "d d"]
    factor: Vector | Float[Array, "d d"]

    def sample(self, key: PRNGKey, num_chains: int, dim: int) -> Points:
        r"""Momenta $r = C^{-\top} n$ with $n$ standard normal."""
        normals = jax.random.normal(key, (num_chains, dim))
        if self.factor.ndim == 1:
            return normals / self.factor[None, :]
        return jsp.linalg.solve_triangular(
            self.factor, normals.T, lower=True, trans="T"
        ).T

    def velocity(self, momentum: Points) -> Points:
        r"""Rates of change $M^{-1} r$ (eq. velocity)."""
        if self.inverse.ndim == 1:
            return momentum * self.inverse[None, :]
        return momentum @ self.inverse

    def kinetic(self, momentum: Points) -> Float[Array, " n"]:
        """Kinetic energies $K(r)$."""
        return 0.5 * jnp.sum(momentum * self.velocity(momentum), axis=1)


def unit_mass(dim: int) -> Mass:
    """Unit mass, the paper's choice."""
    return Mass(jnp.ones(dim), jnp.ones(dim))


def mass_from_covariance(covariance: Vector | Float[Array, "d d"]) -> Mass:
    """Mass that makes a Gaussian with these variances, or this covariance, round."""
    if covariance.ndim == 1:
        return Mass(covariance, jnp.sqrt(covariance))
    return Mass(covariance, jnp.linalg.cholesky(covariance))

r"""Integrals in two dimensions by sums over an equally spaced grid on a box.

For smooth densities that vanish at the edge of the box such a sum converges faster than
any power of the spacing, so what remains is the mass outside: `edge_mass` shows it.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from vhmc._types import Potential

Nodes = Float[Array, " n"]


class Grid(NamedTuple):
    """A product grid; `points` runs over the second axis fastest."""

    first: Float[Array, " a"]
    second: Float[Array, " b"]

    @property
    def points(self) -> Float[Array, "n 2"]:
        """All nodes as rows."""
        mesh = jnp.meshgrid(self.first, self.second, indexing="ij")
        return jnp.stack([axis.ravel() for axis in mesh], axis=1)


def grid(lower: tuple[float, float], upper: tuple[float, float], num: int) -> Grid:
    """Equally spaced nodes, `num` along each side of the box."""
    return Grid(*(jnp.linspace(a, b, num) for a, b in zip(lower, upper, strict=True)))


@eqx.filter_jit
def log_probabilities(potential: Potential, nodes: Grid) -> Nodes:
    r"""Log of the share of $\exp(-V)$ that each cell of the grid holds."""
    log_density = -jax.lax.map(potential, nodes.points, batch_size=4096)
    log_density = jnp.where(jnp.isnan(log_density), -jnp.inf, log_density)
    return log_density - jax.scipy.special.logsumexp(log_density)


def kl_divergence(log_q: Nodes, log_p: Nodes) -> float:
    r"""$D_{KL}(q \| p) = \sum q \log(q / p)$ of two grid distributions (eq. kl)."""
    # Cells empty under q contribute nothing, whatever p says of them.
    terms = jnp.where(log_q > -jnp.inf, jnp.exp(log_q) * (log_q - log_p), 0.0)
    return float(jnp.sum(terms))


def moments(log_p: Nodes, nodes: Grid) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of a grid distribution."""
    shares, points = np.exp(log_p), np.asarray(nodes.points)
    mean = shares @ points
    centred = points - mean
    return mean, (shares[:, None] * centred).T @ centred


def edge_mass(log_p: Nodes, nodes: Grid) -> float:
    """Probability of the outermost cells; a box that is wide enough has next to none.

    A surrogate that is not normalisable piles its mass up there.
    """
    shape = (len(nodes.first), len(nodes.second))
    shares = np.exp(log_p).reshape(shape)
    return float(1 - shares[1:-1, 1:-1].sum())

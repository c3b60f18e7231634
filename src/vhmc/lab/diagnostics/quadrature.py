r"""Moments and divergences in two dimensions, by sums over a grid on a box.

For smooth densities that vanish at the edge of the box such a sum converges faster than
any power of the spacing; the remaining error is the mass outside, see `edge_mass`.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from vhmc._types import Points, Potential, Scalar

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
    r"""Log probability of each cell of the grid under $\exp(-V)$."""
    log_density = -jax.lax.map(potential, nodes.points, batch_size=4096)
    log_density = jnp.where(jnp.isnan(log_density), -jnp.inf, log_density)
    return log_density - jax.scipy.special.logsumexp(log_density)


def kl_divergence(log_q: Nodes, log_p: Nodes) -> float:
    r"""$D_{KL}(q \| p) = \sum q \log(q / p)$ of two grid distributions (eq. kl)."""
    # Cells without probability under q contribute nothing.
    terms = jnp.where(log_q > -jnp.inf, jnp.exp(log_q) * (log_q - log_p), 0.0)
    return float(jnp.sum(terms))


def moments(log_p: Nodes, nodes: Grid) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of a grid distribution."""
    weights, points = np.exp(log_p), np.asarray(nodes.points)
    mean = weights @ points
    centred = points - mean
    return mean, (weights[:, None] * centred).T @ centred


def edge_mass(log_p: Nodes, nodes: Grid) -> float:
    """Probability of the outermost cells, close to zero if the box is wide enough.

    A surrogate that is not normalisable has its mass there.
    """
    shape = (len(nodes.first), len(nodes.second))
    weights = np.exp(log_p).reshape(shape)
    return float(1 - weights[1:-1, 1:-1].sum())


def score_distance(
    potential: Potential, points: Points, grads: Points, weights: Nodes
) -> float:
    r"""$\frac12 \sum_n q_n |\nabla z(\theta_n) - \nabla U(\theta_n)|^2$ by quadrature.

    With equal weights on draws of the surrogate's own distribution this estimates
    $\tilde D_{SM}$ (eq. smdist); on the training pairs it is the loss of eq. sm per
    point, without the penalty.

    weights: probabilities $q_n$ that the surrogate's distribution gives to the points.
    """
    return float(_half_squares(potential, points, grads, weights))


@eqx.filter_jit
def _half_squares(potential, points, grads, weights) -> Scalar:
    errors = jax.lax.map(jax.grad(potential), points, batch_size=4096) - grads
    # A point without probability may have no finite gradient.
    squared = jnp.where(weights > 0, jnp.sum(errors**2, axis=1), 0.0)
    return 0.5 * jnp.sum(weights * squared)

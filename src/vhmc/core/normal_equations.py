r"""Score matching by accumulated normal equations and one Cholesky solve.

The same minimiser as `score_matching`, for a driver that solves on a schedule: adding
a point to additive nodes costs $O(s^2 + d s)$ and a solve $O(s^3)$, against
$O(d s^2)$ for every printed update.
"""

from typing import NamedTuple

import jax.numpy as jnp
import jax.scipy as jsp
from jaxtyping import Array, Float

from vhmc._types import Points
from vhmc.core.bases import AbstractBasis


class NormalEquations(NamedTuple):
    r"""Sums over the points seen: $\sum A^\top A$, $\sum A^\top g$, their number."""

    gram: Float[Array, "s s"]
    moment: Float[Array, " s"]
    num_points: int | Array


def init(num_features: int) -> NormalEquations:
    """No points yet."""
    return NormalEquations(
        jnp.zeros((num_features, num_features)), jnp.zeros(num_features), 0
    )


def accumulate(
    normal: NormalEquations, basis: AbstractBasis, thetas: Points, grads: Points
) -> NormalEquations:
    """Add a batch of exact gradients."""
    gram, moment = basis.normal_terms(thetas, grads)
    return NormalEquations(
        normal.gram + gram, normal.moment + moment, normal.num_points + len(thetas)
    )


def solve(normal: NormalEquations, ridge: float | Array) -> Float[Array, " s"]:
    r"""Weights $(G + \lambda I)^{-1} h$; not finite if the matrix is not positive."""
    matrix = normal.gram + ridge * jnp.eye(normal.moment.shape[0])
    return jsp.linalg.cho_solve(jsp.linalg.cho_factor(matrix), normal.moment)

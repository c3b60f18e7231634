r"""Online score matching: the output weights from exact gradients, one by one.

The fit minimises $\frac12 \sum_n |A_n v - g_n|^2 + \frac\lambda2 v^\top \Lambda v$
(eq. sm, where $\Lambda = I$). Proposition onlinescore carries the inverse matrix $C$;
here its square root $S$, $C = S S^\top$, is carried instead. The two are the same in
exact arithmetic and cost the same, but $S S^\top$ cannot lose symmetry or positive
definiteness, while the printed $C - W A C$ loses both after enough updates with a
small ridge.
"""

from typing import NamedTuple

import jax.numpy as jnp
import jax.scipy as jsp
from jaxtyping import Array, Float

Square = Float[Array, "s s"]


class ScoreFit(NamedTuple):
    """Weights and what the next update needs.

    weights: the paper's $v$.
    root: a square root of the paper's $C$.
    """

    weights: Float[Array, " s"]
    root: Square

    @property
    def gram_inv(self) -> Square:
        r"""The paper's $C = (\lambda \Lambda + \sum_n A_n^\top A_n)^{-1}$."""
        return self.root @ self.root.T


def init(
    num_features: int, ridge: float | Array, penalty: Square | None = None
) -> ScoreFit:
    r"""Start with $v = 0$ and $C = (\lambda \Lambda)^{-1}$.

    penalty: $\Lambda$, the identity unless given; the kernel matrix of radial centres
        turns the fit into (sparse) Gaussian-process regression.
    """
    if num_features < 1:
        raise ValueError(f"the number of nodes must be at least 1, got {num_features}")
    if isinstance(ridge, int | float) and not ridge > 0:
        raise ValueError(f"ridge must be positive, got {ridge}")
    root = jnp.eye(num_features)
    if penalty is not None:
        lower = jnp.linalg.cholesky(penalty)
        root = jsp.linalg.solve_triangular(lower, root, lower=True).T
    return ScoreFit(jnp.zeros(num_features), root / jnp.sqrt(ridge))


def update(
    fit: ScoreFit, jac: Float[Array, "m s"], grad: Float[Array, " m"]
) -> ScoreFit:
    r"""Absorb exact gradients in $O(m^3 + m s^2)$ (eq. update and smw).

    One point has $m = d$ rows, a block of points its Jacobians stacked. With
    $F = A S$ and the Cholesky factor $G G^\top = I + F F^\top$,

    $$W = S F^\top (G G^\top)^{-1}, \quad v \leftarrow v + W (g - A v), \quad
      S \leftarrow S - S F^\top G^{-\top} (G + I)^{-1} F,$$

    where the last is the square root (Andrews, 1968) of $C \leftarrow C - W A C$.
    """
    white = jac @ fit.root
    cross = fit.root @ white.T
    eye = jnp.eye(grad.shape[0])
    lower = jnp.linalg.cholesky(eye + white @ white.T)
    residual = jsp.linalg.cho_solve((lower, True), grad - jac @ fit.weights)
    shrink = jsp.linalg.solve_triangular(lower + eye, white, lower=True)
    shrink = jsp.linalg.solve_triangular(lower, shrink, lower=True, trans="T")
    return ScoreFit(fit.weights + cross @ residual, fit.root - cross @ shrink)


def solve(gram: Square, moment: Float[Array, " s"], ridge: float | Array) -> ScoreFit:
    r"""The fit to many gradients at once, from $\sum A^\top A$ and $\sum A^\top g$."""
    eye = jnp.eye(moment.shape[0])
    lower = jnp.linalg.cholesky(gram + ridge * eye)
    weights = jsp.linalg.cho_solve((lower, True), moment)
    return ScoreFit(weights, jsp.linalg.solve_triangular(lower, eye, lower=True).T)

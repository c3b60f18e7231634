r"""The inverse Hessian that gradients at several points imply, whatever the units.

A pair of a move $s$ and the change $y$ of the gradient along it is a product $y = B s$
with the Hessian, if that is constant. Pairs from one point to all others, nearest first
by $s \cdot y$, are made conjugate to each other: then BFGS keeps all of them, and $d$
independent pairs give the Hessian of a Gaussian exactly. How far two pairs contradict
each other ($s_i \cdot y_j \ne s_j \cdot y_i$) says how far the rest can be trusted.
"""

import numpy as np

MOST_PAIRS = 100
"""Nearest points that are considered."""
NUM_SCALES = 10
"""Nearest pairs that give the scales of directions in which nothing is known."""
DOUBT = 2.0
"""Contradictions between pairs over what is left of one, beyond which it is dropped."""
ROUNDING = 1e-9
"""The same for errors of rounding."""


class Curvature:
    """The inverse Hessian at a point, from gradients there and elsewhere.

    theta, grad: the point.
    points, grads: others, one a row.
    scales: variances to begin with, where no pair tells any.
    """

    def __init__(
        self,
        theta: np.ndarray,
        grad: np.ndarray,
        points: np.ndarray,
        grads: np.ndarray,
        scales: np.ndarray | None = None,
    ):
        moves, turns = theta - points, grad - grads
        with np.errstate(all="ignore"):
            products = np.sum(moves * turns, axis=1)
            is_convex = (products > 0) & np.isfinite(products)
        order = np.flatnonzero(is_convex)
        order = order[np.argsort(products[order], kind="stable")][:MOST_PAIRS]
        root = np.sqrt(products[order])[:, None]
        moves, turns = moves[order] / root, turns[order] / root
        self.scales = _scales(moves, turns, grad) if scales is None else scales
        width = np.sqrt(self.scales)
        self._width = width
        self._moves, self._turns = _conjugate(moves / width, turns * width)

    @property
    def num_pairs(self) -> int:
        """Directions in which the curvature is known."""
        return len(self._moves)

    def times(self, grad: np.ndarray) -> np.ndarray:
        """The inverse Hessian times gradients, one a row or one alone."""
        rest = grad * self._width
        shares = []
        for move, turn in zip(self._moves, self._turns, strict=True):
            shares.append(rest @ move)
            rest = rest - np.multiply.outer(shares[-1], turn)
        pairs = list(zip(self._moves, self._turns, shares, strict=True))
        for move, turn, share in reversed(pairs):
            rest = rest + np.multiply.outer(share - rest @ turn, move)
        return rest * self._width

    def factor(self) -> np.ndarray:
        """Lower triangular factor of the inverse Hessian."""
        inverse = self.times(np.eye(len(self._width)))
        inverse = (inverse + inverse.T) / 2 / np.outer(self._width, self._width)
        return self._width[:, None] * _cholesky(inverse)

    def length(self, step: np.ndarray) -> float:
        """Of a step, where the scales are one."""
        return float(np.linalg.norm(step / self._width))


def _scales(moves: np.ndarray, turns: np.ndarray, grad: np.ndarray) -> np.ndarray:
    """Variances by coordinate, from the nearest pairs."""
    if not len(moves):
        # As far as one unit in all: there is nothing else to go by.
        return np.full(len(grad), 1 / max(float(np.linalg.norm(grad)), 1.0))
    moved, turned = (np.sum(rows[:NUM_SCALES] ** 2, axis=0) for rows in (moves, turns))
    is_known = (moved > 0) & (turned > 0)
    return np.sqrt(np.where(is_known, moved, 1.0) / np.where(is_known, turned, 1.0))


def _conjugate(moves: np.ndarray, turns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pairs with what the ones before them tell taken out, each of product one."""
    dim = moves.shape[1]
    kept_moves, kept_turns = np.empty((0, dim)), np.empty((0, dim))
    for move, turn in zip(moves, turns, strict=True):
        share, opposite = kept_turns @ move, kept_moves @ turn
        noise = np.sum(np.abs(share) * np.abs(share - opposite))
        move, turn = move - share @ kept_moves, turn - share @ kept_turns
        left = move @ turn
        if not left > DOUBT * noise + ROUNDING:
            continue
        kept_moves = np.vstack([kept_moves, move / np.sqrt(left)])
        kept_turns = np.vstack([kept_turns, turn / np.sqrt(left)])
        if len(kept_moves) == dim:
            break
    return kept_moves, kept_turns


def _cholesky(matrix: np.ndarray) -> np.ndarray:
    """The factor, with small eigenvalues raised where rounding made them negative."""
    try:
        return np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(matrix)
        values = np.maximum(values, 1e-12 * values.max())
        return np.linalg.cholesky((vectors * values) @ vectors.T)

r"""The bend that brings points and gradients closest to a standard normal.

For a bend near the identity the score error $J^\top \nabla U - \nabla \log |J| - x$ is
linear in rates and shifts: least squares finds both, for every direction that might be
the first. The best few are then refined on the error itself.
"""

from typing import NamedTuple

import numpy as np
import scipy.optimize
import scipy.sparse.linalg

from vhmc.transport.coupling import FAR, MOST, Bend, curve

INFLUENCE = 9.0
"""Squared errors beyond this a dimension are tamed: three standard deviations."""
PRINCIPAL = 4
"""Directions of the largest errors, and of the largest third derivatives, that are
tried beside those of the parameters."""
FINALISTS = 3
DAMPING = 0.05
PENALTY = 1e-3
"""Of squared rates and shifts: what the data hardly know stays near zero."""
SOLVER_STEPS, REFINING_STEPS = 15, 60


class Scores(NamedTuple):
    """Points with gradients of their energy, one a row, and their weights."""

    x: np.ndarray
    grad: np.ndarray
    weight: np.ndarray


def influence(x: np.ndarray, grad: np.ndarray) -> np.ndarray:
    """Weights under which no error counts for more than three standard deviations."""
    return capped(np.sum((grad - x) ** 2, axis=1), x.shape[1])


def capped(square: np.ndarray, dim: int) -> np.ndarray:
    """The same from squares of whatever errors, in so many dimensions."""
    return np.minimum(1.0, INFLUENCE * dim / np.maximum(square, 1e-12))


def score_errors(x: np.ndarray, grad: np.ndarray) -> np.ndarray:
    """Squared score errors by dimension, large ones by their logarithm."""
    square = np.sum((grad - x) ** 2, axis=1) / x.shape[1]
    return _tamed(square, INFLUENCE)[0]


def fit(x: np.ndarray, grad: np.ndarray, directions: np.ndarray) -> Bend:
    """The best bend along one of the directions, or along one of large errors.

    directions: unit vectors, one a row.
    """
    scores = Scores(x, grad, influence(x, grad))
    rest = (grad - x) * np.sqrt(scores.weight)[:, None]
    principal, skewed = (
        np.linalg.eigh(matrix)[1].T[::-1][:PRINCIPAL]
        for matrix in (rest.T @ rest, rest.T @ _quadratic_kernel(x) @ rest)
    )
    problems = [
        Linear(scores, _basis(direction))
        for direction in np.concatenate([directions, principal, skewed])
    ]
    problems.sort(key=lambda problem: -problem.first_gain())
    found = [_refined(scores, problem.solve()) for problem in problems[:FINALISTS]]
    return min(found, key=lambda pair: pair[1])[0]


def _quadratic_kernel(x: np.ndarray) -> np.ndarray:
    r"""Products of second Hermite polynomials, summed over all pairs of coordinates.

    For standard normal points $E[(\nabla U - x) H_2(x)]$ is the tensor of third
    derivatives of $U$; this kernel between score errors gives its square.
    """
    square = np.sum(x**2, axis=1)
    kernel = (x @ x.T) ** 2 - square[:, None] - square + x.shape[1]
    # A point with itself would add noise, not a product of means.
    np.fill_diagonal(kernel, 0.0)
    # Far points would rule alone.
    scale = 1 + square / x.shape[1]
    return kernel / np.outer(scale, scale)


class Linear:
    """Score errors of small bends along the first of some axes: a linear map.

    scores: points and gradients.
    axes: orthogonal matrix.
    """

    def __init__(self, scores: Scores, axes: np.ndarray):
        self.axes, self._root = axes, np.sqrt(scores.weight)[:, None]
        x, grad = scores.x @ axes, scores.grad @ axes
        self._c, self._r, self._grad = x[:, :1], x[:, 1:], grad[:, 1:]
        self._right = (self._root * (x - grad)).ravel()
        self._upper = np.triu_indices(x.shape[1] - 1)

    def _unpacked(self, unknowns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Symmetric matrix of rates, and shifts."""
        size, number = self._r.shape[1], len(self._upper[0])
        half = np.zeros((size, size))
        half[self._upper] = unknowns[:number]
        return half + half.T, unknowns[number:]

    def errors(self, unknowns: np.ndarray) -> np.ndarray:
        """How the score errors change."""
        c, r, grad = self._c, self._r, self._grad
        rates, shift = self._unpacked(unknowns)
        others = c * ((r + grad) @ rates) + (c**2 - 1) * shift
        first = np.sum(grad * (r @ rates), axis=1) + 2 * c[:, 0] * (grad @ shift)
        first -= np.trace(rates)
        return (self._root * np.concatenate([first[:, None], others], axis=1)).ravel()

    def transposed(self, errors: np.ndarray) -> np.ndarray:
        """The transposed map."""
        c, r, grad = self._c, self._r, self._grad
        rows = errors.reshape(len(c), -1) * self._root
        first, others = rows[:, :1], rows[:, 1:]
        rates = (c * (r + grad)).T @ others + (grad * first).T @ r
        rates -= first.sum() * np.eye(len(rates))
        shift = others.T @ (c[:, 0] ** 2 - 1) + (2 * c * grad).T @ first[:, 0]
        return np.append((rates + rates.T)[self._upper], shift)

    def first_gain(self) -> float:
        """Fall of the squared errors in the first step of steepest descent."""
        slope = self.transposed(self._right)
        square = slope @ slope
        return float(square**2 / max(np.sum(self.errors(slope) ** 2), 1e-300))

    def solve(self) -> Bend:
        """Least squares, on the axes along which the rates are independent."""
        size = self._r.shape[1]
        shape = len(self._right), size * (size + 1) // 2 + size
        operator = scipy.sparse.linalg.LinearOperator(
            shape, matvec=self.errors, rmatvec=self.transposed, dtype=float
        )
        damping = DAMPING * np.linalg.norm(self._root)
        unknowns = scipy.sparse.linalg.lsqr(
            operator, self._right, damp=damping, iter_lim=SOLVER_STEPS
        )[0]
        rates, shift = self._unpacked(unknowns)
        values, vectors = np.linalg.eigh(rates)
        axes = np.concatenate([self.axes[:, :1], self.axes[:, 1:] @ vectors], axis=1)
        return Bend(axes, values, shift @ vectors)


def _refined(scores: Scores, bend: Bend) -> tuple[Bend, float]:
    """Rates and shifts of least score error on the same axes, and that error."""
    size = len(bend.rate)
    x, grad = scores.x @ bend.axes, scores.grad @ bend.axes

    def objective(unknowns):
        return loss(x, grad, unknowns[:size], unknowns[size:])

    # Half of the linear answer: it overshoots, and the exponentials with it.
    start = 0.5 * np.append(bend.rate, bend.shift)
    best = scipy.optimize.minimize(
        objective,
        start,
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": REFINING_STEPS},
    )
    return Bend(bend.axes, best.x[:size], best.x[size:]), float(best.fun)


def loss(
    x: np.ndarray, grad: np.ndarray, rate: np.ndarray, shift: np.ndarray
) -> tuple[float, np.ndarray]:
    """Score error after a bend, with its gradient in rates and shifts.

    x, grad: along the axes of the bend.
    """
    number, dim = x.shape
    c, others = x[:, :1], grad[:, 1:]
    bow, tilt = curve(c), 2 * c.clip(-FAR, FAR)
    moved = x[:, 1:] - shift * bow
    scale = np.exp((c * rate).clip(-MOST, MOST))
    straight = moved / scale
    slope = rate * moved + tilt * shift
    rest = others * scale - straight
    first = grad[:, 0] + np.sum(others * slope, axis=1) - np.sum(rate) - c[:, 0]
    square = (np.sum(rest**2, axis=1) + first**2) / dim
    tamed, share = _tamed(square, INFLUENCE)
    by_rest = 2 / (number * dim) * share[:, None] * rest
    by_first = 2 / (number * dim) * share * first
    by_rate = np.sum(by_rest * c * (others * scale + straight), axis=0)
    by_rate += by_first @ (others * moved - 1)
    by_shift = np.sum(by_rest * bow / scale, axis=0)
    by_shift += by_first @ (others * (tilt - rate * bow))
    unknowns = np.append(rate, shift)
    penalty = PENALTY / dim
    return (
        float(np.mean(tamed) + penalty * unknowns @ unknowns),
        np.append(by_rate, by_shift) + 2 * penalty * unknowns,
    )


def _tamed(square: np.ndarray, limit: float) -> tuple[np.ndarray, np.ndarray]:
    """Squares that grow by their logarithm beyond a limit, and the derivatives."""
    ratio = np.maximum(square / limit, 1.0)
    return np.minimum(square, limit) + limit * np.log(ratio), 1 / ratio


def _basis(direction: np.ndarray) -> np.ndarray:
    """Orthogonal matrix whose first column is a unit vector, by one reflection."""
    dim = len(direction)
    mirror = direction.copy()
    sign = -1.0 if direction[0] < 0 else 1.0
    mirror[0] += sign
    reflection = np.eye(dim) - 2 * np.outer(mirror, mirror) / (mirror @ mirror)
    # It takes the first axis to minus `sign` times the direction.
    reflection[:, 0] *= -sign
    return reflection

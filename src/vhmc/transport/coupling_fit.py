r"""Fit a coupling layer that brings points and gradients closest to a standard normal.

Near the identity the score error $J^\top \nabla U - \nabla \log |J| - x$ of a coupling
is linear in rates and shifts: least squares finds both, for every candidate of the
first direction. The best few are then refined on the error itself.
"""

from typing import NamedTuple

import numpy as np
import scipy.optimize
import scipy.sparse.linalg

from vhmc.transport.coupling import (
    MAX_EXPONENT,
    Coupling,
    parabola,
    parabola_slope,
)
from vhmc.transport.influence import influence, log_capped

NUM_PRINCIPAL = 4
"""Directions of the largest errors, and of the largest third derivatives, that are
candidates beside those of the parameters."""
NUM_REFINED = 3
"""Candidates that are refined, the best of the linear problem."""
DAMPING = 0.05
PENALTY = 1e-3
"""Of squared rates and shifts: what the data hardly determine stays near zero."""
SOLVER_STEPS, REFINING_STEPS = 15, 60


class Scores(NamedTuple):
    """Points with gradients of their energy, one a row, and their weights."""

    x: np.ndarray
    grad: np.ndarray
    weight: np.ndarray


def fit(x: np.ndarray, grad: np.ndarray, directions: np.ndarray) -> Coupling:
    """The best coupling along one of the directions, or along one of large errors.

    directions: unit vectors, one a row.
    """
    scores = Scores(x, grad, influence(x, grad))
    rest = (grad - x) * np.sqrt(scores.weight)[:, None]
    principal, skewed = (
        np.linalg.eigh(matrix)[1].T[::-1][:NUM_PRINCIPAL]
        for matrix in (rest.T @ rest, rest.T @ _quadratic_kernel(x) @ rest)
    )
    problems = [
        Linear(scores, _basis(direction))
        for direction in np.concatenate([directions, principal, skewed])
    ]
    problems.sort(key=lambda problem: -problem.first_gain())
    found = [_refined(scores, problem.solve()) for problem in problems[:NUM_REFINED]]
    return min(found, key=lambda pair: pair[1])[0]


def _quadratic_kernel(x: np.ndarray) -> np.ndarray:
    r"""Products of second Hermite polynomials, summed over all pairs of coordinates.

    For standard normal points $E[(\nabla U - x) H_2(x)]$ is the tensor of third
    derivatives of $U$; this kernel between score errors gives its square.
    """
    square = np.sum(x**2, axis=1)
    kernel = (x @ x.T) ** 2 - square[:, None] - square + x.shape[1]
    # Products of a point with itself would add noise, not products of means.
    np.fill_diagonal(kernel, 0.0)
    # Far points would dominate.
    scale = 1 + square / x.shape[1]
    return kernel / np.outer(scale, scale)


class Linear:
    """Score errors of couplings near the identity, linear in rates and shifts.

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
        """Change of the weighted score errors."""
        c, r, grad = self._c, self._r, self._grad
        rates, shift = self._unpacked(unknowns)
        others = c * ((r + grad) @ rates) + (c**2 - 1) * shift
        first = np.sum(grad * (r @ rates), axis=1) + 2 * c[:, 0] * (grad @ shift)
        first -= np.trace(rates)
        return (self._root * np.concatenate([first[:, None], others], axis=1)).ravel()

    def transposed(self, errors: np.ndarray) -> np.ndarray:
        """Apply the transpose of `errors`."""
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

    def solve(self) -> Coupling:
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
        return Coupling(axes, values, shift @ vectors)


def _refined(scores: Scores, layer: Coupling) -> tuple[Coupling, float]:
    """Rates and shifts of least score error on the same axes, and that error."""
    size = len(layer.rate)
    x, grad = scores.x @ layer.axes, scores.grad @ layer.axes

    def objective(unknowns):
        return loss(x, grad, unknowns[:size], unknowns[size:])

    # Half of the linear solution, which overshoots, and its exponentials more so.
    start = 0.5 * np.append(layer.rate, layer.shift)
    best = scipy.optimize.minimize(
        objective,
        start,
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": REFINING_STEPS},
    )
    return Coupling(layer.axes, best.x[:size], best.x[size:]), float(best.fun)


def loss(
    x: np.ndarray, grad: np.ndarray, rate: np.ndarray, shift: np.ndarray
) -> tuple[float, np.ndarray]:
    """Score error after a coupling, with its gradient in rates and shifts.

    x, grad: along the axes of the coupling.
    """
    number, dim = x.shape
    c, others = x[:, :1], grad[:, 1:]
    bow, tilt = parabola(c), parabola_slope(c)
    moved = x[:, 1:] - shift * bow
    scale = np.exp((c * rate).clip(-MAX_EXPONENT, MAX_EXPONENT))
    straight = moved / scale
    slope = rate * moved + tilt * shift
    rest = others * scale - straight
    first = grad[:, 0] + np.sum(others * slope, axis=1) - np.sum(rate) - c[:, 0]
    square = (np.sum(rest**2, axis=1) + first**2) / dim
    tamed, slope_of = log_capped(square)
    by_rest = 2 / (number * dim) * slope_of[:, None] * rest
    by_first = 2 / (number * dim) * slope_of * first
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

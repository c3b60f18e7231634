r"""The network of the residual: nodes where the data are, weights in one solve.

Everything here is in whitened coordinates, on the host: BLAS beats JAX at these shapes.
"""

from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
from scipy.special import expit

SCALES = 0.45, 2.25
"""Range of the lengths of the directions: hinges between wide and narrow."""
SHARPNESS = 1.0, 0.5, 2.0
"""Factors on these scales that are tried; the first unless another is better."""
REACH = 1.3
"""Hinges pass through training points times this: slightly beyond the data."""
RIDGES = 10.0 ** np.arange(-7.0, 0.0)
"""Ridges that are tried, in units of the mean diagonal of the normal equations."""
SLACK = 1.1
"""The largest ridge (and the fewest nodes) within this factor of the best is taken."""
NEGLIGIBLE = 0.01
"""Differences of squared score errors that are no reason to leave the usual scale."""


class Lessons(NamedTuple):
    r"""What the network is taught, one row a point.

    x: points.
    grad: true gradients less those of $\frac12 |x|^2$.
    energy: true energies less $\frac12 |x|^2$.
    weight: influence of each gradient.
    energy_weight: influence of each energy.
    is_typical: whether the point counts when an error is measured.
    """

    x: np.ndarray
    grad: np.ndarray
    energy: np.ndarray
    weight: np.ndarray
    energy_weight: np.ndarray
    is_typical: np.ndarray


class Nodes(NamedTuple):
    """Softplus nodes: one direction a row, and offsets."""

    directions: np.ndarray
    offsets: np.ndarray

    def outputs(self, x: np.ndarray) -> np.ndarray:
        """Node outputs, one row a point."""
        return np.logaddexp(x @ self.directions.T + self.offsets, 0.0)

    def slopes(self, x: np.ndarray) -> np.ndarray:
        """Derivatives of the activations, one row a point."""
        return expit(x @ self.directions.T + self.offsets)

    def outputs_and_slopes(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Both, from one product and one exponential."""
        inputs = x @ self.directions.T + self.offsets
        small = np.exp(-np.abs(inputs))
        outputs = np.maximum(inputs, 0.0) + np.log1p(small)
        return outputs, np.where(inputs < 0, small, 1.0) / (1.0 + small)

    def normal_terms(
        self, x: np.ndarray, grad: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        r"""Matrix and right side of the gradients alone, in Hadamard form."""
        slopes = self.slopes(x)
        matrix = slopes.T @ slopes
        matrix *= self.directions @ self.directions.T
        return matrix, np.sum(slopes * (grad @ self.directions.T), axis=0)

    def first(self, number: int) -> "Nodes":
        """That many of them."""
        return Nodes(self.directions[:number], self.offsets[:number])

    def sharpened(self, factor: float) -> "Nodes":
        """Narrower or wider hinges, in the same places."""
        return Nodes(factor * self.directions, factor * self.offsets)


class Choice(NamedTuple):
    """What the held-out error chose, and that error.

    ridge: in units of the mean diagonal.
    num_features: nodes that are used; the others have weight zero.
    error: mean squared error of the score by dimension, on points held out.
    """

    ridge: float
    num_features: int
    error: float


def place(rng: np.random.Generator, number: int, lessons: Lessons) -> Nodes:
    """Draw nodes: half along residual gradients and their differences, half anywhere.

    With all of them along gradients there are holes where no gradient was seen.
    """
    dim = lessons.x.shape[1]
    share = lessons.weight / lessons.weight.sum()
    one, other, at = rng.choice(len(share), (3, number), p=share)
    grads, kind = lessons.grad, rng.integers(0, 4, number)[:, None]
    anywhere = rng.standard_normal((number, dim))
    directions = np.where(
        kind == 0,
        grads[one],
        np.where(kind == 1, grads[one] - grads[other], anywhere),
    )
    lengths = np.linalg.norm(directions, axis=1, keepdims=True)
    directions = np.where(lengths > 1e-8, directions, anywhere)
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    low, high = np.log(SCALES)
    directions *= np.exp(rng.uniform(low, high, (number, 1)))
    offsets = -np.sum(directions * lessons.x[at] * REACH, axis=1)
    return Nodes(directions, offsets)


class NormalSums(NamedTuple):
    """Sums over points from which the normal equations are made; they add up.

    matrix, right: of the gradients, in Hadamard form, and of the node outputs with
        themselves and with the energies.
    outputs, energy, weight: totals, which remove the energies' constant.
    """

    matrix: np.ndarray
    right: np.ndarray
    outputs: np.ndarray
    energy: float
    weight: float

    def plus(self, other: "NormalSums") -> "NormalSums":
        """Sums over the points of both."""
        pairs: list[tuple[Any, Any]] = list(zip(self, other, strict=True))
        return NormalSums(*(one + two for one, two in pairs))

    def minus(self, other: "NormalSums") -> "NormalSums":
        """Without the points of `other`."""
        pairs: list[tuple[Any, Any]] = list(zip(self, other, strict=True))
        return NormalSums(*(one - two for one, two in pairs))

    def equations(self) -> tuple[np.ndarray, np.ndarray]:
        """Matrix and right side for gradients and energies together."""
        mean = self.outputs / max(self.weight, 1e-300)
        matrix = self.matrix - np.outer(self.outputs, mean)
        return matrix, self.right - mean * self.energy


def normal_sums(nodes: Nodes, lessons: Lessons) -> NormalSums:
    r"""Sums of a batch; the gradients' matrix is $(S^\top S) \circ (W W^\top)$."""
    root = np.sqrt(lessons.weight)[:, None]
    outputs, slopes = nodes.outputs_and_slopes(lessons.x)
    slopes *= root
    shares = lessons.energy_weight
    weighted = outputs * np.sqrt(shares)[:, None]
    matrix = slopes.T @ slopes
    matrix *= nodes.directions @ nodes.directions.T
    matrix += weighted.T @ weighted
    right = np.sum(slopes * ((lessons.grad * root) @ nodes.directions.T), axis=0)
    return NormalSums(
        matrix=matrix,
        right=right + outputs.T @ (shares * lessons.energy),
        outputs=outputs.T @ shares,
        energy=float(shares @ lessons.energy),
        weight=float(shares.sum()),
    )


def solve(
    equations: tuple[np.ndarray, np.ndarray], ridge: float, num_features: int
) -> np.ndarray:
    """Weights of the first `num_features` nodes; the others get none."""
    matrix, right = equations
    weights = np.zeros(len(right))
    if num_features:
        some = matrix[:num_features, :num_features], right[:num_features]
        scale = max(float(np.diagonal(some[0]).mean()), 1e-300)
        weights[:num_features] = solve_with(some, ridge * scale)
    return weights


def solve_with(equations: tuple[np.ndarray, np.ndarray], ridge: float) -> np.ndarray:
    """Weights of all nodes, with this number added to the diagonal."""
    matrix, right = equations
    matrix = matrix.copy()
    matrix[np.diag_indices(len(right))] += ridge
    # LAPACK's own pair: scipy.linalg.solve took ten times as long.
    factor = scipy.linalg.cho_factor(matrix, overwrite_a=True, check_finite=False)
    return scipy.linalg.cho_solve(factor, right, check_finite=False)


def hold_out(rng: np.random.Generator, lessons: Lessons) -> np.ndarray:
    """Which points to hold out: a quarter of the typical ones."""
    return lessons.is_typical & (rng.uniform(size=len(lessons.weight)) < 0.25)


def error_of_none(lessons: Lessons, is_out: np.ndarray) -> float:
    """Score error without a network at the points held out; infinite if too few."""
    if is_out.sum() < 4:
        return np.inf
    share = lessons.weight[is_out] / lessons.weight[is_out].sum()
    return float(share @ np.mean(lessons.grad[is_out] ** 2, axis=1))


def sharpen(nodes: Nodes, lessons: Lessons, is_out: np.ndarray) -> Nodes:
    """The nodes at the scale of least held-out score error.

    A quarter of the nodes is asked, which costs little and ranks the scales alike.
    """
    few = nodes.first(-(-len(nodes.offsets) // 4))
    trials = [few.sharpened(factor) for factor in SHARPNESS]
    errors = [
        choose(trial, lessons, normal_sums(trial, lessons), is_out).error
        for trial in trials
    ]
    enough = SLACK * min(errors) + NEGLIGIBLE
    chosen = next(i for i, error in enumerate(errors) if error <= enough)
    return nodes.sharpened(SHARPNESS[chosen])


def choose(
    nodes: Nodes, lessons: Lessons, sums: NormalSums, is_out: np.ndarray
) -> Choice:
    """Ridge and number of nodes of least score error at the points held out."""
    number = len(nodes.offsets)
    if is_out.sum() < 4:
        return Choice(1.0, 0, np.inf)  # what nobody can judge is not used
    out = Lessons(*(rows[is_out] for rows in lessons))
    equations = sums.minus(normal_sums(nodes, out)).equations()
    slopes = nodes.slopes(out.x)
    share = out.weight / out.weight.sum() / lessons.x.shape[1]

    def trial(ridge, num_features):
        try:
            weights = solve(equations, ridge, num_features)
        except np.linalg.LinAlgError:
            return Choice(ridge, num_features, np.inf)
        errors = out.grad - (slopes * weights) @ nodes.directions
        return Choice(ridge, num_features, float(share @ np.sum(errors**2, axis=1)))

    trials = [Choice(1.0, 0, error_of_none(lessons, is_out))]
    ridges = RIDGES[::-1]
    for size in sorted({number // 4, number} - {0}):
        some = [trial(ridges[0], size)]
        for ridge in ridges[1:]:
            some.append(trial(ridge, size))
            lowest = min(one.error for one in some)
            if some[-1].error > 1.3 * lowest:
                break  # a smaller ridge only gets worse from here
        trials += some
        # More nodes want a ridge close to that of fewer, which are cheaper to ask.
        best = int(np.argmin([one.error for one in some]))
        ridges = ridges[max(0, best - 1) : best + 2]
    least = min(trial.error for trial in trials)
    return next(trial for trial in trials if trial.error <= SLACK * least + 1e-12)

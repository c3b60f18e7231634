r"""Fit a random-feature network: nodes where the data are, weights in one solve.

Everything here is in latent coordinates, on the host: BLAS beats JAX at these shapes.
"""

from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

from vhmc.surrogate.network import Network, Nodes
from vhmc.surrogate.residual import ZeroResidual
from vhmc.surrogate.residual_fit import (
    AbstractResidualFit,
    Fitted,
    mean_error,
    zero_error,
)
from vhmc.surrogate.training_set import TrainingSet

SCALES = 0.45, 2.25
"""Range of the lengths of the directions, which make hinges wide or narrow."""
SCALE_FACTORS = 1.0, 0.5, 2.0
"""Factors on these scales that are tried; the first unless another is better."""
REACH = 1.3
"""Hinges pass through training points times this: slightly beyond the data."""
RIDGES = 10.0 ** np.arange(-7.0, 0.0)
"""Ridges that are tried, in units of the mean diagonal of the normal equations."""
SLACK = 1.1
"""The largest ridge (and the fewest nodes) within this factor of the best is taken."""
NEGLIGIBLE = 0.01
"""Differences of squared score errors that are no reason to leave the usual scale."""


class NetworkFit(AbstractResidualFit):
    """Fits of networks to a training set that grows.

    capacity: nodes, at most; fewer are used where the held-out error says so.
    """

    def __init__(self, capacity: int):
        self._capacity = capacity
        self._nodes = Nodes(np.zeros((0, 0)), np.zeros(0))
        self._choice = Choice(1.0, 0, np.inf)
        self._sums: NormalSums | None = None
        self._num_fitted = 0

    def reset(self) -> None:
        """Forget the nodes: none are needed for now."""
        self._sums, self._choice = None, Choice(1.0, 0, np.inf)

    def fit(
        self,
        rng: np.random.Generator,
        training: TrainingSet,
        is_out: np.ndarray,
        *,
        redraw: bool,
        choose_anew: bool,
        least_ridge: float,
    ) -> Fitted:
        """Draw nodes if asked, add the new points, choose the ridge, solve."""
        if redraw or self._sums is None:
            redraw = True
            nodes = place(rng, self._capacity, training)
            self._nodes = choose_scale(nodes, training, is_out)
            self._sums = normal_sums(self._nodes, training)
        else:
            new = training.where(slice(self._num_fitted, None))
            self._sums = self._sums.plus(normal_sums(self._nodes, new))
        self._num_fitted = len(training.x)
        if redraw or choose_anew or not self._choice.num_features:
            self._choice = choose(self._nodes, training, self._sums, is_out)
        ridge, number, error = self._choice
        if not number:
            return Fitted(ZeroResidual(), error)
        equations = self._sums.equations()
        weights = solve(equations, max(ridge, least_ridge), number)[:number]
        return Fitted(
            Network(self._nodes.first(number), weights, self._capacity), error
        )


class Choice(NamedTuple):
    """Ridge and number of nodes with their held-out error.

    ridge: in units of the mean diagonal of the normal equations.
    num_features: nodes that are used.
    error: mean squared score error by dimension, on points held out.
    """

    ridge: float
    num_features: int
    error: float


def place(rng: np.random.Generator, number: int, training: TrainingSet) -> Nodes:
    """Draw nodes: half along residual gradients and their differences, half anywhere.

    With all of them along gradients there are holes where no gradient was seen.
    """
    dim = training.x.shape[1]
    chance = training.weight / training.weight.sum()
    one, other, at = rng.choice(len(chance), (3, number), p=chance)
    grads, kind = training.grad, rng.integers(0, 4, number)[:, None]
    anywhere = rng.standard_normal((number, dim))
    directions = np.where(
        kind == 0,
        grads[one],
        np.where(kind == 1, grads[one] - grads[other], anywhere),
    )
    if training.cliques is not None:
        support = _supports(rng, number, training, chance)
        directions, anywhere = directions * support, anywhere * support
    lengths = np.linalg.norm(directions, axis=1, keepdims=True)
    directions = np.where(lengths > 1e-8, directions, anywhere)
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    low, high = np.log(SCALES)
    directions *= np.exp(rng.uniform(low, high, (number, 1)))
    offsets = -np.sum(directions * training.x[at] * REACH, axis=1)
    return Nodes(directions, offsets)


def _supports(
    rng: np.random.Generator, number: int, training: TrainingSet, chance: np.ndarray
) -> np.ndarray:
    """Coordinates of each node: a clique, more often one of large errors.

    chance: of the points.
    """
    assert training.cliques is not None
    by_coordinate = np.sqrt(chance @ training.grad**2)
    error = np.array(
        [by_coordinate[clique].max(initial=0.0) for clique in training.cliques]
    )
    prior = np.full(len(error), 1 / len(error))
    likely = 0.3 * prior + 0.7 * error / max(error.sum(), 1e-300)
    support = np.zeros((number, training.x.shape[1]))
    chosen = rng.choice(len(error), number, p=likely / likely.sum())
    for node, index in enumerate(chosen):
        support[node, training.cliques[index]] = 1.0
    return support


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


def normal_sums(nodes: Nodes, training: TrainingSet) -> NormalSums:
    """Sums of a batch of points."""
    root = np.sqrt(training.weight)[:, None]
    outputs, slopes = nodes.outputs_and_slopes(training.x)
    slopes *= root
    matrix, right = nodes.hadamard_terms(slopes, training.grad * root)
    weights = training.energy_weight
    weighted = outputs * np.sqrt(weights)[:, None]
    matrix += weighted.T @ weighted
    return NormalSums(
        matrix=matrix,
        right=right + outputs.T @ (weights * training.energy),
        outputs=outputs.T @ weights,
        energy=float(weights @ training.energy),
        weight=float(weights.sum()),
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


def choose_scale(nodes: Nodes, training: TrainingSet, is_out: np.ndarray) -> Nodes:
    """The nodes at the scale of least held-out score error.

    A quarter of the nodes costs little and ranks the scales alike.
    """
    few = nodes.first(-(-len(nodes.offsets) // 4))
    trials = [few.scaled(factor) for factor in SCALE_FACTORS]
    errors = [
        choose(trial, training, normal_sums(trial, training), is_out).error
        for trial in trials
    ]
    enough = SLACK * min(errors) + NEGLIGIBLE
    chosen = next(i for i, error in enumerate(errors) if error <= enough)
    return nodes.scaled(SCALE_FACTORS[chosen])


def choose(
    nodes: Nodes, training: TrainingSet, sums: NormalSums, is_out: np.ndarray
) -> Choice:
    """Ridge and number of nodes of least score error at the points held out."""
    number = len(nodes.offsets)
    if is_out.sum() < 4:
        return Choice(1.0, 0, np.inf)  # a network that cannot be judged is not used
    out = training.where(is_out)
    equations = sums.minus(normal_sums(nodes, out)).equations()
    slopes = nodes.slopes(out.x)

    def trial(ridge, num_features):
        try:
            weights = solve(equations, ridge, num_features)
        except np.linalg.LinAlgError:
            return Choice(ridge, num_features, np.inf)
        errors = out.grad - (slopes * weights) @ nodes.directions
        return Choice(ridge, num_features, mean_error(errors, out.weight))

    trials = [Choice(1.0, 0, zero_error(training, is_out))]
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

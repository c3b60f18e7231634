"""Fit an emulator: groups of outputs, their weights, then one solve a group."""

from typing import NamedTuple

import numpy as np
import scipy.linalg

from vhmc.surrogate.emulator import Emulator, gaussians

NUM_GROUPS = 8
"""Groups of outputs; a power of two."""
LEAST_OUTPUTS = 4
"""Outputs of a group, at least, unless there are fewer in all."""
NUM_CENTRES = 400
"""Centres of every group, at most."""
CENTRES_A_DIMENSION = 25
LEAST_CENTRES = 60
LINEAR_SHARE = 0.3
"""Prior variance of the linear part over that of the kernel's."""
RIDGES = 10.0 ** np.arange(-8.0, 1.0)
"""Ridges that are tried, over the points' mean weight."""
SLACK = 1.02
"""The largest ridge within this factor of the least held-out error is taken."""
LEAST_WEIGHT = 0.02
"""Weight of a parameter over that of the weightiest, at least."""


class Measured(NamedTuple):
    """Outputs less data at evaluated points, one row a point.

    theta: unconstrained points.
    misfit: in standard deviations.
    weight: influence of each point.
    """

    theta: np.ndarray
    misfit: np.ndarray
    weight: np.ndarray

    def where(self, chosen: np.ndarray) -> "Measured":
        """Some of the points."""
        return Measured(*(rows[chosen] for rows in self))


class Design(NamedTuple):
    """What an emulator has before its coefficients are known.

    groups: numbers of the outputs of each group, -1 for none.
    center, scale, weights, centres: as in `Emulator`.
    ridges: one a group.
    """

    groups: np.ndarray
    center: np.ndarray
    scale: np.ndarray
    weights: np.ndarray
    centres: np.ndarray
    ridges: np.ndarray


def influence(misfit: np.ndarray) -> np.ndarray:
    """Weights that fall with the misfit beyond that of the better half of the points.

    Far from the data only the size of the outputs matters.
    """
    square = np.sum(misfit**2, axis=1)
    usual = 2 * np.median(np.sort(square)[: -(-len(square) // 2)]) + misfit.shape[1]
    return 1 / (1 + square / usual)


def design(
    rng: np.random.Generator, points: Measured, is_out: np.ndarray
) -> tuple[Design, Emulator]:
    """Groups, weights, centres and ridges, and the emulator without held-out points."""
    kept = points.where(~is_out)
    probability = kept.weight / kept.weight.sum()
    center = probability @ kept.theta
    scale = np.sqrt(probability @ (kept.theta - center) ** 2) + 1e-12
    standard = (kept.theta - center) / scale
    slopes = linear_slopes(standard, kept)
    groups = balanced_groups(slopes)
    chance = np.minimum(kept.weight, np.median(kept.weight))
    number = min(capacity(standard.shape[1]), len(standard))
    chosen = rng.choice(len(standard), number, replace=False, p=chance / chance.sum())
    padded = np.zeros((capacity(standard.shape[1]), standard.shape[1]))
    padded[:number] = standard[chosen]
    weights = np.stack(
        [_weights(slopes[:, members[members >= 0]]) for members in groups]
    )
    plan = Design(
        groups,
        center,
        scale,
        weights,
        padded * weights[:, None, :],
        np.zeros(len(groups)),
    )
    return _with_ridges(plan, points, is_out, number)


def capacity(dim: int) -> int:
    """Centres of the compiled programs, which have one size for a model."""
    return int(np.clip(CENTRES_A_DIMENSION * dim, LEAST_CENTRES, NUM_CENTRES))


def linear_slopes(standard: np.ndarray, points: Measured) -> np.ndarray:
    """Slopes of every output along every parameter, of shape (dim, output)."""
    root = np.sqrt(points.weight)[:, None]
    inputs = np.hstack([np.ones((len(standard), 1)), standard]) * root
    matrix = inputs.T @ inputs
    # Ten points' worth: with fewer points than parameters it must hold back.
    matrix[np.diag_indices(len(matrix))] += 10 * points.weight.mean()
    return scipy.linalg.solve(
        matrix, inputs.T @ (points.misfit * root), assume_a="pos"
    )[1:]


def balanced_groups(slopes: np.ndarray) -> np.ndarray:
    """Outputs in groups of equal size that depend on about the same parameters.

    By halves, along the direction in which their dependences differ most.
    """
    size = np.linalg.norm(slopes, axis=0)
    profiles = (np.abs(slopes) / np.maximum(size, 1e-300)).T
    groups = [np.arange(slopes.shape[1])]
    while len(groups) < NUM_GROUPS and len(groups[-1]) >= 2 * LEAST_OUTPUTS:
        halves = []
        for members in groups:
            rows = profiles[members] - profiles[members].mean(axis=0)
            direction = np.linalg.svd(rows, full_matrices=False)[2][0]
            order = members[np.argsort(rows @ direction, kind="stable")]
            middle = -(-len(order) // 2)
            halves += [order[:middle], order[middle:]]
        groups = halves
    padded = np.full((len(groups), max(map(len, groups))), -1)
    for row, members in zip(padded, groups, strict=True):
        row[: len(members)] = members
    return padded


def solved(plan: Design, points: Measured) -> Emulator:
    """The emulator of this design for all points."""
    number = _num_centres(plan)
    solutions = [
        _Equations(plan, group, points, number).solve(ridge)
        for group, ridge in enumerate(plan.ridges)
    ]
    return _emulator(plan, solutions, number)


class _Equations:
    """Normal equations of one group of outputs."""

    def __init__(self, plan: Design, group: int, points: Measured, number: int):
        centres = plan.centres[group, :number]
        self._right_rows = _members(plan.groups[group], points.misfit)
        features = self.features(plan, group, points.theta, number)
        weighted = features * points.weight[:, None]
        self._matrix = features.T @ weighted
        self._right = weighted.T @ self._right_rows
        dim = plan.weights.shape[1]
        self._prior = np.zeros_like(self._matrix)
        # The constant has next to no prior.
        self._prior[0, 0] = 1e-6
        linear = np.arange(1, dim + 1)
        self._prior[linear, linear] = 1 / LINEAR_SHARE
        self._prior[dim + 1 :, dim + 1 :] = gaussians(centres, centres)
        self._unit = points.weight.mean()

    @staticmethod
    def features(
        plan: Design, group: int, theta: np.ndarray, number: int
    ) -> np.ndarray:
        """A constant, the inputs and the kernel with every centre, one row a point."""
        inputs = (theta - plan.center) / plan.scale * plan.weights[group]
        bumps = gaussians(inputs, plan.centres[group, :number])
        return np.hstack([np.ones((len(theta), 1)), inputs, bumps])

    def solve(self, ridge: float) -> np.ndarray:
        """Coefficients of the features, one column an output."""
        matrix = self._matrix + ridge * self._unit * self._prior
        places = np.diag_indices(len(matrix))
        # Centres may lie close together: a little more keeps the factor real.
        matrix[places] += 1e-10 * np.trace(matrix) / len(matrix)
        try:
            factor = scipy.linalg.cho_factor(matrix, check_finite=False)
        except np.linalg.LinAlgError:
            matrix[places] += 1e-6 * np.trace(matrix) / len(matrix)
            factor = scipy.linalg.cho_factor(matrix, check_finite=False)
        return scipy.linalg.cho_solve(factor, self._right, check_finite=False)


def _with_ridges(
    plan: Design, points: Measured, is_out: np.ndarray, number: int
) -> tuple[Design, Emulator]:
    """The design with the ridges of least held-out error, and its emulator."""
    kept, out = points.where(~is_out), points.where(is_out)
    ridges, solutions = [], []
    for group in range(len(plan.groups)):
        equations = _Equations(plan, group, kept, number)
        features = equations.features(plan, group, out.theta, number)
        truth = _members(plan.groups[group], out.misfit)
        trials = [equations.solve(ridge) for ridge in RIDGES]
        errors = [
            out.weight @ np.sum((features @ trial - truth) ** 2, axis=1)
            for trial in trials
        ]
        enough = SLACK * min(errors)
        best = max(i for i, error in enumerate(errors) if error <= enough)
        ridges.append(RIDGES[best])
        solutions.append(trials[best])
    plan = plan._replace(ridges=np.array(ridges))
    return plan, _emulator(plan, solutions, number)


def _emulator(plan: Design, solutions: list[np.ndarray], number: int) -> Emulator:
    dim = plan.weights.shape[1]
    kernel = np.zeros((*plan.centres.shape[:2], plan.groups.shape[1]))
    for rows, solution in zip(kernel, solutions, strict=True):
        rows[:number] = solution[dim + 1 :]
    return Emulator(
        plan.center,
        plan.scale,
        plan.weights,
        plan.centres,
        kernel,
        np.stack([solution[1 : dim + 1] for solution in solutions]),
        np.stack([solution[0] for solution in solutions]),
    )


def _num_centres(plan: Design) -> int:
    """Centres that are points; the rest is padding."""
    return int(np.any(plan.centres != 0, axis=(0, 2)).sum())


def _members(group: np.ndarray, misfit: np.ndarray) -> np.ndarray:
    """Columns of a group, zeros where it has fewer members than others."""
    return np.where(group >= 0, misfit[:, group], 0.0)


def _weights(slopes: np.ndarray) -> np.ndarray:
    """Weights of the parameters for outputs with these slopes, of unit length."""
    weights = np.sqrt(np.mean(slopes**2, axis=1))
    weights = np.maximum(weights, LEAST_WEIGHT * max(weights.max(), 1e-300))
    return weights / np.linalg.norm(weights)

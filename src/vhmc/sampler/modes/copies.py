"""Copies of a mode under relabelling, as the components of a mixture model have them.

Parameters with an axis of the same length may be numbered in any order. If the density
does not change with the order, every mode has a copy for each.
"""

from collections.abc import Mapping, Sequence
from itertools import permutations
from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from vhmc.evaluation.evaluator import Evaluator
from vhmc.evaluation.space import Space
from vhmc.transport.affine import Affine
from vhmc.transport.transport_map import TransportMap

FEWEST, MOST = 2, 3
"""Labels whose orders are tried. Four have 24 orders, more than a budget can sample."""
MAX_SETS = 3
PASSES = 4
"""Over all draws, to match their labels, at most."""
EQUAL = 1e-7
"""Relative difference of energies up to which they are the same."""
DRAWS_BY_DIM, DRAWS = 20, 100
"""Draws of a map whose relabelled mean and covariance make another one."""
CLOSE, APART = 1.0, 3.0
"""Distances between centres, in sd of a parameter: up to the first one they are the
same, from the second one they are not."""


class Labels(NamedTuple):
    """Parameters that have an axis of the same length, and which axis that is."""

    size: int
    axes: dict[str, int]

    def reordered(
        self, values: Mapping[str, np.ndarray], order: Sequence[int]
    ) -> dict[str, np.ndarray]:
        """The same values, by name, with their labels in another order."""
        axes = self.axes
        return {
            name: np.take(value, order, axis=value.ndim - axes[name])
            if name in axes
            else value
            for name, value in values.items()
        }

    def distances(
        self, values: Mapping[str, np.ndarray], centre: Mapping[str, np.ndarray]
    ) -> np.ndarray:
        """Squared distances of every label of the values to every one of a centre.

        values: of one point, scaled as the centre is.
        """
        total = np.zeros((self.size, self.size))
        for name, axis in self.axes.items():
            here, there = (
                np.moveaxis(part[name], part[name].ndim - axis, 0).reshape(
                    self.size, 1, -1
                )
                for part in (values, centre)
            )
            total += np.sum((here - there.transpose(1, 0, 2)) ** 2, axis=-1)
        return total

    def matched(
        self, values: Mapping[str, np.ndarray], centre: Mapping[str, np.ndarray]
    ) -> list[int]:
        """The order of the labels of a point in which it is closest to a centre."""
        rows, columns = linear_sum_assignment(self.distances(values, centre))
        return [int(row) for row in rows[np.argsort(columns)]]


def label_sets(space: Space, most: float = MOST) -> list[Labels]:
    """Parameters that may be numbered in any order.

    most: labels at most.
    """
    found: dict[int, dict[str, int]] = {}
    for name, shape in space.shapes.items():
        for size in {size for size in shape if FEWEST <= size <= most}:
            found.setdefault(size, {})[name] = len(shape) - shape.index(size)
    return [Labels(size, axes) for size, axes in sorted(found.items())][:MAX_SETS]


def copies(
    rng: np.random.Generator, evaluator: Evaluator, transport: TransportMap
) -> list[TransportMap]:
    """Maps of the copies of a mode; it takes two evaluations a set of labels.

    transport: map of the mode.
    """
    space = evaluator.target.parameters
    if evaluator.layer is not None:
        return []
    found: list[TransportMap] = []
    centre = transport.forward(0.3 * rng.standard_normal((1, transport.dim)))
    for labels in label_sets(space):
        orders = list(permutations(range(labels.size)))[1:]
        other = _relabelled(space, centre, labels, orders[0])
        if other is None or evaluator.left < 2:
            continue
        energy = evaluator.evaluate(np.concatenate([centre, other]), "look").energy
        first, second = energy
        is_known = np.isfinite(first) and np.isfinite(second)
        if not (is_known and abs(second - first) <= EQUAL * (1 + abs(first))):
            continue
        number = DRAWS + DRAWS_BY_DIM * transport.dim
        draws = transport.forward(rng.standard_normal((number, transport.dim)))
        for order in orders:
            moved = _relabelled(space, draws, labels, order)
            if moved is not None:
                scatter = np.atleast_2d(np.cov(moved.T))
                layer = Affine(moved.mean(axis=0), np.linalg.cholesky(scatter))
                found.append(TransportMap((layer,)))
    return found


def _relabelled(
    space: Space, thetas: np.ndarray, labels: Labels, order: Sequence[int]
) -> np.ndarray | None:
    """Unconstrained points with labels in another order; None if that is not known."""
    sizes = dict(zip(space.names, space.unconstrained_sizes, strict=True))
    if all(sizes[name] == np.prod(space.shapes[name]) for name in labels.axes):
        ends = np.cumsum(space.unconstrained_sizes)[:-1]
        parts = dict(zip(space.names, np.split(thetas, ends, axis=1), strict=True))
        shaped = {
            name: parts[name].reshape(-1, *space.shapes[name]) for name in labels.axes
        }
        moved = parts | labels.reordered(shaped, order)
        flat = [moved[name].reshape(len(thetas), -1) for name in space.names]
        return np.concatenate(flat, axis=1)
    values = labels.reordered(space.constrain(thetas), order)
    try:
        rows = [
            space.flatten({name: value[i] for name, value in values.items()})
            for i in range(len(thetas))
        ]
    except ValueError:  # the front end does not know the way back
        return None
    return np.stack(rows)


def copies_among(
    space: Space, centres: np.ndarray, draws: np.ndarray
) -> list[int | None]:
    """For every mode the earlier one that it is a copy of, if there is one.

    centres: unconstrained, one a row.
    draws: of a mode, which tell how wide it is.
    """
    scales = _scales(space.constrain(draws))
    values = _scaled(space.constrain(centres), scales)
    rows = [_row(values, i) for i in range(len(centres))]
    found: list[int | None] = []
    for i, here in enumerate(rows):
        earlier = [j for j in range(i) if found[j] is None]
        copied = [j for j in earlier if _is_copy(space, here, rows[j])]
        found.append(copied[0] if copied else None)
    return found


def matched_draws(
    space: Space, values: Mapping[str, np.ndarray], centre: np.ndarray
) -> dict[str, np.ndarray]:
    """Named draws with the labels of every draw in the order closest to a centre.

    values: parameters by name, of shape (chain, draw, ...).
    centre: unconstrained.
    """
    middle = _row(space.constrain(centre[None]), 0)
    moved = {name: np.array(values[name]) for name in space.shapes}
    leading = next(iter(moved.values())).shape[:2]
    for labels in label_sets(space, np.inf):
        # Draws of all copies are wide; once they are matched their widths are known.
        for _ in range(PASSES):
            flat = {
                name: moved[name].reshape(-1, *space.shapes[name]) for name in moved
            }
            scales = _scales(flat)
            near, has_changed = _scaled(middle, scales), False
            for place in np.ndindex(*leading):
                own = {name: moved[name][place] for name in labels.axes}
                order = labels.matched(_scaled(own, scales), near)
                if order == list(range(labels.size)):
                    continue
                has_changed = True
                for name, value in labels.reordered(own, order).items():
                    moved[name][place] = value
            if not has_changed:
                break
    return moved


def _is_copy(
    space: Space, here: Mapping[str, np.ndarray], there: Mapping[str, np.ndarray]
) -> bool:
    """Whether two points are apart, but the same up to the order of some labels."""
    if _gap(here, there) < APART:
        return False
    for labels in label_sets(space, np.inf):
        order = labels.matched(here, there)
        moved = labels.reordered(here, order)
        if _gap(moved, there) < CLOSE and order != list(range(labels.size)):
            return True
    return False


def _row(values: Mapping[str, np.ndarray], index: int) -> dict[str, np.ndarray]:
    """One of several points; a number stays an array."""
    return {name: np.asarray(value[index]) for name, value in values.items()}


def _gap(here: Mapping[str, np.ndarray], there: Mapping[str, np.ndarray]) -> float:
    return max(float(np.abs(here[name] - there[name]).max()) for name in there)


def _scales(values: Mapping[str, np.ndarray]) -> dict[str, float]:
    """One standard deviation for each parameter; values of many points."""
    sds = {name: float(np.mean(np.std(v, axis=0))) for name, v in values.items()}
    return {name: sd if sd > 0 else 1.0 for name, sd in sds.items()}


def _scaled(
    values: Mapping[str, np.ndarray], scales: Mapping[str, float]
) -> dict[str, np.ndarray]:
    return {name: value / scales[name] for name, value in values.items()}

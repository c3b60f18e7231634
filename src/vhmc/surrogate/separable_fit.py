r"""Fit the energy of a separable model: sparse least squares for exact gradients.

With $\eta$ and its Jacobian known, the gradient is linear in the common function $F$,
in a slope $c_p$ for each datum and in the functions of single parameters. What the
effects have is seen along their scales, of which the data know nothing.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import jax
import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.special import expit

from vhmc.structure.separated import Separated
from vhmc.surrogate.separable import (
    NormalEffects,
    SeparableEnergy,
    Table,
    statistics,
)
from vhmc.transport.hub_functions import Link

NUM_KNOTS = 40
"""Of the common function."""
NUM_OWN_KNOTS = 6
"""Of a function of one parameter."""
RIDGE = 1e-9
"""In units of each unknown's mean square."""
POWERS = 2.0, 1.0, -1.0, -2.0
"""Of a scale in a precision, with the sign changed."""
FEWEST = 4
"""Members of a group of effects."""
UNEXPLAINED = 1e-3
"""Share of a scale's gradient that may be left, as a standard deviation."""
REACH = 6.0
"""Units around the middle beyond which there are no steps; in a unit of half the range
of nine values of ten."""
GRID = 600
"""Places of a table of a function."""
NUM_LAST = 30
"""Of these at either end, whose mean second derivative holds beyond."""
CHUNK = 16
"""Points whose full Jacobians are held at a time."""


class Group(NamedTuple):
    """Effects that share a scale, as the links say.

    scale, location: coordinates; None if there is no location.
    members: coordinates.
    """

    scale: int
    members: np.ndarray
    location: int | None


def groups_of(
    found: Separated, dim: int, links: Mapping[int, Link]
) -> list[Group] | None:
    """Groups that explain all links of the priors; None if there are none that do."""
    linked = np.zeros((dim, dim), dtype=bool)
    row, column = found.pairs.T
    linked[row, column] = linked[column, row] = True
    degree = linked.sum(axis=1)
    left, groups = linked.copy(), []
    for scale in np.flatnonzero(degree >= FEWEST).tolist():
        if scale not in links or not links[scale].is_scale:
            continue
        near = np.flatnonzero(linked[scale])
        wide = near[degree[near] >= FEWEST]
        members = np.setdiff1d(near, wide)
        if len(wide) > 1 or len(members) < FEWEST:
            return None
        group = [scale, *wide, *members]
        left[np.ix_([scale, *wide], group)] = False
        left[np.ix_(group, [scale, *wide])] = False
        location = int(wide[0]) if len(wide) else None
        groups.append(Group(scale, members, location))
    every = [int(member) for one in groups for member in one.members]
    if left.any() or len(set(every)) < len(every):
        return None
    return groups


class Steps(NamedTuple):
    """Smooth steps of one variable, whose integrals are hinges, and a line.

    knots: where the steps are.
    width: of each step.
    """

    knots: np.ndarray
    width: np.ndarray

    def slopes(self, x: np.ndarray) -> np.ndarray:
        """A line and the steps, along a new last axis."""
        steps = expit((x[..., None] - self.knots) / self.width)
        return np.concatenate([x[..., None], steps], axis=-1)

    def values(self, x: np.ndarray) -> np.ndarray:
        """Their integrals."""
        hinges = np.logaddexp((x[..., None] - self.knots) / self.width, 0.0)
        return np.concatenate([0.5 * x[..., None] ** 2, self.width * hinges], axis=-1)

    def table(self, weights: np.ndarray, slope: float = 0.0) -> Table:
        """The function of these weights, with a slope added."""
        grid = np.linspace(self.knots[0], self.knots[-1], GRID)
        values = self.values(grid) @ weights + slope * grid
        slopes = self.slopes(grid) @ weights + slope
        # Line and steps tell each other apart within the range only: what the line
        # alone says of the tails may be far off.
        bends = (slopes[NUM_LAST:] - slopes[:-NUM_LAST])[[0, -1]]
        bends = np.maximum(bends / (grid[NUM_LAST] - grid[0]), 0.0)
        parts = grid[0], grid[1] - grid[0], values, slopes, bends
        return Table(*(np.asarray(part) for part in parts))


def steps_over(x: np.ndarray, number: int) -> Steps:
    """Steps that cover the values: the farther from most of them, the wider."""
    low, middle, high = np.quantile(x, (0.05, 0.5, 0.95))
    unit = max(float(high - low) / 2, 1e-8)
    ends = np.clip((np.array([x.min(), x.max()]) - middle) / unit, -REACH, REACH)
    ends = np.arcsinh(ends)
    knots = middle + unit * np.sinh(np.linspace(ends[0], ends[1], number))
    return Steps(knots, np.maximum(np.gradient(knots), 1e-8))


class Jacobians(NamedTuple):
    """The quantity at points, with its derivatives where they are not zero.

    eta: one point a row.
    row, column: entry and parameter of each derivative.
    values: derivatives, one point a row.
    dim: number of parameters.
    """

    eta: np.ndarray
    row: np.ndarray
    column: np.ndarray
    values: np.ndarray
    dim: int

    def matrix(self, factors: np.ndarray) -> sp.csr_matrix:
        """Gradients that unit slopes of each entry give, points below each other.

        factors: of each entry at each point.
        """
        number, size = self.eta.shape
        rows = (np.arange(number)[:, None] * self.dim + self.column).ravel()
        data = (self.values * factors[:, self.row]).ravel()
        columns = np.tile(self.row, number)
        return sp.csr_matrix((data, (rows, columns)), shape=(number * self.dim, size))


def jacobians(quantity: Callable, thetas: np.ndarray) -> Jacobians:
    """The quantity and its derivatives at points, one a row."""
    both = jax.jit(jax.vmap(lambda one: (quantity(one), jax.jacfwd(quantity)(one))))
    missing = -len(thetas) % CHUNK
    padded = np.concatenate([thetas, np.repeat(thetas[:1], missing, axis=0)])
    first = np.asarray(both(padded[:CHUNK])[1])
    row, column = np.nonzero(np.any(first != 0, axis=0))
    eta, kept = [], []
    for i in range(0, len(padded), CHUNK):
        values, slopes = (np.asarray(part) for part in both(padded[i : i + CHUNK]))
        eta.append(values)
        kept.append(slopes[:, row, column])
    number, dim = thetas.shape
    found = np.concatenate(eta)[:number], row, column, np.concatenate(kept)[:number]
    return Jacobians(*found, dim)


def fit_separable(
    found: Separated,
    groups: list[Group],
    thetas: np.ndarray,
    grads: np.ndarray,
    scalars: tuple[int, ...],
) -> SeparableEnergy | None:
    """The energy with these gradients; None if the scales are not those of effects.

    scalars: parameters that have functions of their own.
    """
    dim = thetas.shape[1]
    unit = np.maximum(thetas.std(axis=0), 1e-12)
    left, effects, curves = grads.copy(), [], []
    for group in groups:
        one = _effects(group, thetas, grads)
        if one is None:
            return None
        effects.append(one[0])
        curves.append((np.array(group.scale), one[1]))
        left -= _grads_of(one[0], group, thetas)
    scales = [group.scale for group in groups]
    others = np.setdiff1d(np.arange(dim), scales)
    known = jacobians(found.quantity, thetas)
    shared = steps_over(known.eta, NUM_KNOTS)
    own = [(k, steps_over(thetas[:, k], NUM_OWN_KNOTS)) for k in scalars if k in others]
    rows = np.repeat(unit[None], len(thetas), axis=0).ravel()
    is_used = np.isin(np.arange(dim), others)
    rows = rows * np.tile(is_used, len(thetas))
    right = rows * left.ravel()
    singles = _single(dim, others, thetas, own)
    common = np.stack(
        [
            known.matrix(slopes) @ np.ones(found.size)
            for slopes in np.moveaxis(shared.slopes(known.eta), -1, 0)
        ],
        axis=1,
    )
    linear_columns = known.matrix(np.ones_like(known.eta))
    columns = sp.hstack([sp.csr_matrix(common), linear_columns, singles]).tocsr()
    weights = _solved(columns, rows, right)
    ends = np.cumsum([common.shape[1], found.size])
    by_common, linear, single = np.split(weights, ends)
    slope, bend = np.zeros((2, dim))
    slope[others], bend[others] = np.split(single[: 2 * len(others)], 2)
    rest = single[2 * len(others) :].reshape(len(own), NUM_OWN_KNOTS)
    for (place, steps), weight in zip(own, rest, strict=True):
        table = steps.table(np.append(0.0, weight))
        curves.append((np.array(place), table))
    return SeparableEnergy(
        *(found.quantity, shared.table(by_common), linear, slope, bend),
        *(tuple(curves), tuple(effects)),
    )


def _single(
    dim: int, others: np.ndarray, thetas: np.ndarray, own: list[tuple[int, Steps]]
) -> sp.csr_matrix:
    """Columns of single parameters: constants, lines, then steps of some."""
    number = len(thetas)
    eye = sp.identity(dim, format="csc")[:, others]
    constants = sp.vstack([eye] * number)
    lines = sp.vstack([eye.multiply(theta[:, None]) for theta in thetas])
    blocks = [constants, lines]
    for place, steps in own:
        values = steps.slopes(thetas[:, place])[:, 1:]
        at = np.arange(number) * dim + place
        block = sp.lil_matrix((number * dim, values.shape[1]))
        block[at] = values
        blocks.append(block)
    return sp.hstack(blocks).tocsr()


def _solved(matrix: sp.csr_matrix, rows: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Ridge solution of weighted equations."""
    scaled = sp.diags(rows) @ matrix
    unit = np.sqrt(np.asarray(scaled.multiply(scaled).sum(axis=0)).ravel())
    unit = np.where(unit > 0, unit, 1.0)
    scaled = (scaled @ sp.diags(1 / unit)).tocsr()
    square = (scaled.T @ scaled).toarray()
    square[np.diag_indices(len(unit))] += RIDGE
    factor = scipy.linalg.cho_factor(square, overwrite_a=True, check_finite=False)
    weights = scipy.linalg.cho_solve(factor, scaled.T @ right)
    # Once more for what rounding has left: the steps are alike.
    weights += scipy.linalg.cho_solve(factor, scaled.T @ (right - scaled @ weights))
    return weights / unit


def _effects(
    group: Group, thetas: np.ndarray, grads: np.ndarray
) -> tuple[NormalEffects, Table] | None:
    """Effects of a scale, and the scale's own function, from its gradients."""
    c, slope = thetas[:, group.scale], grads[:, group.scale]
    m = np.zeros(len(c)) if group.location is None else thetas[:, group.location]
    parts = statistics(thetas[:, group.members].T, m)
    steps = steps_over(c, NUM_OWN_KNOTS)
    own = np.concatenate([np.ones((len(c), 1)), steps.slopes(c)], axis=1)
    best = None
    for power in POWERS:
        columns = (-power * np.exp(-power * c) * parts).T
        design = np.concatenate([columns, own], axis=1)
        unit = np.sqrt(np.mean(design**2, axis=0)) + 1e-300
        weights = np.linalg.lstsq(design / unit, slope, rcond=1e-10)[0] / unit
        error = np.std(slope - design @ weights)
        if best is None or error < best[0]:
            best = error, power, weights
    assert best is not None
    error, power, weights = best
    if error > UNEXPLAINED * np.std(slope):
        return None
    place = group.scale if group.location is None else group.location
    if group.location is None:
        weights[2:5] = 0.0
    arrays = group.scale, group.members, place, power, weights[:6]
    return (
        NormalEffects(*(np.asarray(part) for part in arrays)),
        steps.table(weights[7:], weights[6]),
    )


def _grads_of(effects: NormalEffects, group: Group, thetas: np.ndarray) -> np.ndarray:
    """Gradients along members and location, one point a row."""
    grad = np.zeros_like(thetas)
    r = thetas[:, group.members]
    level = np.exp(-effects.power * thetas[:, group.scale])[:, None]
    square, linear, cross, other, single, _ = effects.weights
    m = np.zeros((len(r), 1))
    if group.location is not None:
        m = thetas[:, [group.location]]
        total = r.sum(axis=1, keepdims=True)
        grad[:, [group.location]] = level * (cross * total + other * m + single)
    grad[:, group.members] = level * (square * r + linear + cross * m)
    return grad

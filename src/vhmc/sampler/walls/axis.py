"""Walls at one value of one parameter, as undeclared constraints have them."""

import numpy as np

from vhmc.sampler.walls.probe import Probe, halve, simplest
from vhmc.sampler.walls.wall import Wall

HALVINGS = 4, 5
"""Before a round number is tried, and before another one is."""
LAST = 8
"""Halvings after neither was the place."""
BESIDE = 1e-9
"""Distance from a round number, over the segment, at which that is tried."""
TOLERANCE = 2.0**-9
"""Distance from a wall, over the segment, at which its place is tried elsewhere."""
SHARE = 0.25
"""Of the way to a point without a density, by which other parameters are moved."""
NUM_TRIALS = 3
"""Moves of the other parameters, each a quarter of the last."""


def axis_walls(
    rng: np.random.Generator,
    probe: Probe,
    inside: np.ndarray,
    outside: np.ndarray,
    scales: np.ndarray,
) -> list[Wall]:
    """Walls between two points that are values of one parameter each.

    All that separate the two are found at once: a parameter whose value at `outside`
    leaves `inside` without a density is beyond one.

    inside, outside: points with and without a density.
    scales: of the parameters.
    """
    steps = outside - inside
    axes = np.flatnonzero(steps)
    moves = np.zeros((len(axes), len(inside)))
    moves[np.arange(len(axes)), axes] = steps[axes]
    is_beyond = ~probe(inside + moves)
    axes, moves = axes[is_beyond], moves[is_beyond]
    if not len(axes):
        return []
    ends, values = _bracketed(probe, inside, axes, moves)
    others = np.where(steps == 0, scales, SHARE * np.abs(steps))
    found = []
    for axis, move, pair, value in zip(axes, moves, ends, values, strict=True):
        if _is_straight(rng, probe, inside, int(axis), move, pair, others):
            normal = np.zeros(len(inside))
            normal[axis] = -np.sign(steps[axis])
            found.append(Wall(normal, float(normal[axis] * value)))
    return found


def _bracketed(
    probe: Probe, inside: np.ndarray, axes: np.ndarray, moves: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Fractions of moves between which the density ends, and values where it does."""
    steps, from_ = moves[np.arange(len(axes)), axes], inside[axes]
    ends = np.tile([0.0, 1.0], (len(axes), 1))
    values, is_exact = np.zeros(len(axes)), np.zeros(len(axes), dtype=bool)
    for number in HALVINGS:
        rest = np.flatnonzero(~is_exact)
        ends[rest] = halve(probe, inside, moves[rest], ends[rest], number)
        # Constraints end at round numbers more often than not.
        sides = from_[rest, None] + ends[rest] * steps[rest, None]
        values[rest] = [simplest(*pair) for pair in sides]
        at = (values[rest] - from_[rest]) / steps[rest]
        trials = at[:, None] + BESIDE * np.array([-1.0, 1.0])
        points = inside + trials[:, :, None] * moves[rest, None, :]
        is_inside = probe(points.reshape(-1, len(inside))).reshape(-1, 2)
        is_exact[rest] = is_inside[:, 0] & ~is_inside[:, 1]
        # If not the place, it is at least on one side of it.
        ends[rest, 0] = np.where(is_inside[:, 0], at, ends[rest, 0])
        ends[rest, 1] = np.where(is_inside[:, 1], ends[rest, 1], at)
    rest = np.flatnonzero(~is_exact)
    ends[rest] = halve(probe, inside, moves[rest], ends[rest], LAST)
    values[rest] = from_[rest] + ends[rest, 1] * steps[rest]
    return ends, values


def _is_straight(
    rng: np.random.Generator,
    probe: Probe,
    inside: np.ndarray,
    axis: int,
    move: np.ndarray,
    ends: np.ndarray,
    others: np.ndarray,
) -> bool:
    """Whether a wall is at the same value when the other parameters are others.

    others: by how much they are moved.
    """
    if len(inside) == 1:
        return True
    near, far = ends
    at = np.array([near - TOLERANCE, far + TOLERANCE])
    for trial in range(NUM_TRIALS):
        aside = rng.uniform(0.5, 1.0, len(inside)) * rng.choice([-1, 1], len(inside))
        aside = aside * others / 4**trial
        aside[axis] = 0.0
        bases = inside + np.array([aside, -aside])
        points = bases[:, None] + at[:, None] * move
        is_inside = probe(points.reshape(-1, len(inside))).reshape(2, 2)
        if is_inside[:, 1].any():
            return False
        if is_inside[:, 0].any():
            return True
    return False

"""Find the walls that explain where the log density is minus infinity."""

from typing import NamedTuple

import numpy as np

from vhmc.evaluation.evaluator import EvaluationLog
from vhmc.evaluation.user_code import NO_DENSITY
from vhmc.sampler.walls.axis import axis_walls
from vhmc.sampler.walls.oblique import plane
from vhmc.sampler.walls.probe import Exhausted, Probe
from vhmc.sampler.walls.wall import Wall, beyond

MAX_FAILED = 2
"""Points whose wall is not a plane, after which no more are tried."""


class Found(NamedTuple):
    """Walls, and whether they explain all points without a density."""

    walls: list[Wall]
    is_complete: bool


def find_walls(
    rng: np.random.Generator, probe: Probe, log: EvaluationLog, known: list[Wall]
) -> Found:
    """Walls that explain which points of a log have no density.

    log: in the coordinates of the user.
    known: walls that were found before.
    """
    walls = [*known]
    inside = log.theta[log.is_finite]
    points = np.concatenate([inside, log.theta[unexplained(log, walls)]])
    scales = np.ptp(points, axis=0) / 4
    scales = np.where(scales > 0, scales, 1.0)
    failed: list[int] = []
    while True:
        left = np.setdiff1d(np.flatnonzero(unexplained(log, walls)), failed)
        if not len(left):
            return Found(walls, not failed)
        if len(failed) >= MAX_FAILED:
            return Found(walls, False)
        # Nearby points are the least likely to be beyond several walls.
        away = (log.theta[left][:, None] - inside[None]) / scales
        distance = np.linalg.norm(away, axis=2)
        row, nearest = np.unravel_index(np.argmin(distance), distance.shape)
        pair = inside[nearest], log.theta[left[row]]
        try:
            new = axis_walls(rng, probe, *pair, scales)
            if not new:
                oblique = plane(rng, probe, *pair, scales)
                new = [] if oblique is None else [oblique]
        except Exhausted:
            return Found(walls, False)
        new = [wall for wall in new if not (inside @ wall.normal < wall.bound).any()]
        walls += new
        if not beyond(new, pair[1][None]).any():
            failed.append(int(left[row]))


def unexplained(log: EvaluationLog, walls: list[Wall]) -> np.ndarray:
    """Which points have no density, though they are not beyond any known wall."""
    return (log.reason == NO_DENSITY) & ~beyond(walls, log.theta)

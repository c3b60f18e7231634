"""Ask whether points have a density, and bracket where it ends."""

from collections.abc import Callable

import numpy as np

from vhmc.evaluation.target import Evaluations
from vhmc.evaluation.user_code import NO_DENSITY


class Exhausted(Exception):
    """The evaluations that a look for walls may take are used up."""


class Probe:
    """Which points have a density, within an allowance of evaluations.

    evaluate: in the coordinates of the user.
    allowance: evaluations.
    """

    def __init__(
        self, evaluate: Callable[[np.ndarray], Evaluations], allowance: int
    ) -> None:
        self._evaluate, self._left = evaluate, allowance

    def __call__(self, thetas: np.ndarray) -> np.ndarray:
        """Whether each point has a density; also where the model failed.

        Raises `Exhausted` if they are too many.
        """
        self.require(len(thetas))
        if not len(thetas):
            return np.zeros(0, dtype=bool)
        self._left -= len(thetas)
        return np.asarray(self._evaluate(thetas).reason != NO_DENSITY, dtype=bool)

    def require(self, number: int) -> None:
        """Raise `Exhausted` unless as many points can be asked for."""
        if number > self._left:
            raise Exhausted


def halve(
    probe: Probe, starts: np.ndarray, moves: np.ndarray, ends: np.ndarray, number: int
) -> np.ndarray:
    """Halve segments on which the density ends, all at once.

    starts, moves: points on the segments are starts plus fractions of the moves.
    ends: fractions with and without a density, of shape (segment, 2).
    number: halvings.
    """
    ends = ends.copy()
    rows = np.arange(len(ends))
    for _ in range(number):
        middle = ends.mean(axis=1)
        is_inside = probe(starts + middle[:, None] * moves)
        ends[rows, np.where(is_inside, 0, 1)] = middle
    return ends


def simplest(one: float, other: float) -> float:
    """The number of the fewest decimals between two others."""
    low, high = sorted((one, other))
    if low <= 0 <= high:
        return 0.0
    digits = int(np.floor(-np.log10(high - low)))
    for places in range(min(digits, 0) - 2, digits + 2):
        unit = 10.0**-places
        nearest = np.round((low + high) / 2 / unit) * unit
        if low <= nearest <= high:
            return float(np.round(nearest, max(places, 0)))
    return (low + high) / 2

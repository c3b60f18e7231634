"""Parameters whose spread changes with another one, as in a funnel."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import rankdata

from vhmc.evaluation.evaluator import EvaluationLog
from vhmc.surrogate.training_set import AWAY

MOST_POINTS = 1000
"""Evaluated points that are looked at, the last ones."""
FEWEST_POINTS = 50
STEEPER = 0.6
"""Rank correlation of one parameter with the steepness of others: in 14 models that
are no funnels at most 0.56, in five that are 0.65 to 1."""
LARGER = 0.3
"""The same with the size of their gradients, at least. On a curved ridge points are
farther apart at one of its ends, but gradients are as large."""
LEAST_FACTOR, MOST_FACTOR = 3.0, 100.0
"""Between the fifths of points with the lowest and highest scale, at least, and the
largest that is said: points of a warm-up may be far out."""
FEWEST = 2
"""Parameters that change their spread together, at least."""


class Spread(NamedTuple):
    """Parameters whose spread changes with another one.

    scale: label of that.
    others: theirs.
    factor: by which it changes.
    """

    scale: str
    others: tuple[str, ...]
    factor: float

    def __str__(self) -> str:
        is_huge = self.factor > MOST_FACTOR
        size = f"{'more than ' * is_huge}{min(self.factor, MOST_FACTOR):.0f}-fold"
        return (
            f"the spread of {self._named} changes {size} with {self.scale}, as in a "
            "centred hierarchical model"
        )

    @property
    def advice(self) -> str:
        """What to do about it."""
        return (
            f"write {self._named} as a location plus a scale times standard normals "
            "(non-centred)"
        )

    @property
    def _named(self) -> str:
        first, *rest = self.others
        return f"{first} to {rest[-1]}" if len(rest) > 1 else ", ".join(self.others)


def changing_spread(log: EvaluationLog, labels: Sequence[str]) -> Spread | None:
    r"""The parameter with which the spread of most others changes, if there is one.

    The steepness $|g_j| / |\theta_j - m_j|$ of a normal $\theta_j$ is its precision,
    wherever it is evaluated: points of a surrogate that leaves out most of a funnel
    show it as well.

    log: of points in the coordinates of the model.
    labels: of the parameters.
    """
    near = log.is_finite & ~np.isin(log.phase, AWAY)
    theta, grad = (rows[near][-MOST_POINTS:] for rows in (log.theta, log.grad))
    if len(theta) < FEWEST_POINTS or theta.shape[1] <= FEWEST:
        return None
    apart = np.abs(theta - np.median(theta, axis=0))
    steepness = np.abs(grad) / np.maximum(apart, 1e-300)
    own, with_size = _scores(theta), _scores(np.abs(grad))
    steeper, larger = own.T @ _scores(steepness), own.T @ with_size
    is_scaled = np.abs(steeper) > STEEPER
    is_scaled &= np.sign(steeper) * larger > LARGER
    np.fill_diagonal(is_scaled, False)
    scale = int(np.argmax(np.sum(np.abs(steeper) * is_scaled, axis=1)))
    others = np.flatnonzero(is_scaled[scale])
    if len(others) < FEWEST:
        return None
    order = np.argsort(theta[:, scale])
    fifth = len(order) // 5
    ends = order[:fifth], order[-fifth:]
    low, high = (np.median(steepness[one][:, others], axis=0) for one in ends)
    with np.errstate(all="ignore"):
        factor = float(np.exp(np.median(np.abs(np.log(high / low))) / 2))
    if not LEAST_FACTOR < factor < np.inf:
        return None
    named = tuple(labels[int(place)] for place in others)
    return Spread(labels[scale], named, factor)


def _scores(values: np.ndarray) -> np.ndarray:
    """Ranks with mean zero and length one, by column."""
    ranks = rankdata(values, axis=0)
    ranks = ranks - ranks.mean(axis=0)
    return ranks / np.maximum(np.linalg.norm(ranks, axis=0), 1e-300)

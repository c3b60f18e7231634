r"""Tails without moments: whether a quantity has a mean and a standard deviation.

A density that falls like $|x|^{-1 - 1/k}$ has the tail index $k$: its mean exists if
$k < 1$ and its standard deviation if $k < 1/2$. Draws have an average whatever $k$.
"""

import numpy as np
import scipy.special

from vhmc.numerics.effective_size import FEWEST_DRAWS, bulk_ess
from vhmc.numerics.importance import FEWEST, pareto_smooth

WORDS = ("no mean", "no sd", "")
"""What to say of a quantity, by the number of its moments that exist, up to two."""
EFFICIENCY = 0.25
"""Relative efficiency at which ArviZ's rule gives tails of six roots of the number of
draws: twice its usual length, as a border is to be told from what is near it."""
LARGEST_TAIL = 0.2
"""Fraction of the draws that a tail has at most, as in ArviZ's rule."""
SURE = 2.0
"""Standard errors of the tail index by which a border must be passed."""
SHORT = 5.0
"""Sample sds from the mean within which all draws lie if no tail needs a fit."""
USUAL = 0.25
"""Tail index beyond which the square of a sample sd has no finite variance."""


def num_moments(values: np.ndarray) -> np.ndarray:
    r"""How many of mean and sd exist, as far as draws can tell: 2, 1 or 0.

    The moment of order $r$ needs $k < 1/r$; its average over draws has a finite
    variance if $k < 1/(2r)$. It is said not to exist where the draws exclude the second
    and not the first, by `SURE` standard errors $(1 + k) / \sqrt{m}$ of an index from
    $m$ effective draws of the tail.

    values: shape (chain, draw, quantity).
    """
    found = np.full(values.shape[2], 2)
    indices, count = _indices(values)
    for order, left in ((2, 1), (1, 0)):
        found[_lacks(indices, count, order)] = left
    return found


def needs_ranks(values: np.ndarray) -> np.ndarray:
    r"""Whether the sample sd of a quantity says little of its sd.

    Its square has no finite variance if $k > 1/4$, here by one standard error. That is
    so for all quantities without an sd, and for many with one: two samples of a
    thousand draws from the same density may have sds that differ by half.

    values: shape (chain, draw, quantity).
    """
    indices, count = _indices(values)
    with np.errstate(invalid="ignore"):
        return indices - (1 + USUAL) / np.sqrt(count) > USUAL


def _indices(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Tail indices of quantities, and the effective draws that each rests on."""
    chains, draws, width = values.shape
    indices, count = np.zeros(width), np.ones(width)
    if draws < FEWEST_DRAWS or chains * draws < FEWEST:
        return indices, count
    indices = tail_indices(values.reshape(-1, width))
    doubtful = np.flatnonzero(indices > USUAL)
    if len(doubtful):
        total = chains * draws
        length = min(LARGEST_TAIL * total, 3 * np.sqrt(total / EFFICIENCY))
        share = np.nan_to_num(bulk_ess(values[..., doubtful]), nan=total) / total
        count[doubtful] = np.maximum(length * np.minimum(share, 1.0), 1.0)
    return indices, count


def _lacks(index: np.ndarray, count: np.ndarray, order: int) -> np.ndarray:
    usual = 1 / (2 * order)
    with np.errstate(invalid="ignore"):
        least = index - SURE * (1 + usual) / np.sqrt(count)
        most = index + SURE * (1 + index) / np.sqrt(count)
    return (least > usual) & (most >= 1 / order)


def tail_indices(values: np.ndarray) -> np.ndarray:
    """Pareto's k of the heavier tail of each column, by a generalised Pareto fit.

    Zero where the draws are all near the mean, or cannot be fitted; infinite where
    some overflow.
    """
    with np.errstate(all="ignore"):
        centred = np.abs(values - values.mean(axis=0))
        is_long = ~(centred.max(axis=0) <= SHORT * values.std(axis=0))
    found = np.zeros(values.shape[1])
    for column in np.flatnonzero(is_long):
        found[column] = _heavier(values[:, column])
    return found


def _heavier(column: np.ndarray) -> float:
    if np.isnan(column).any():
        return 0.0
    if np.isinf(column).any():
        return np.inf
    distance = column - np.median(column)
    tails = [_index(sign * distance) for sign in (1, -1)]
    return max(k if np.isfinite(k) else 0.0 for k in tails)


def _index(distance: np.ndarray) -> float:
    # Weights and distances have the same tail: one fit serves both.
    logs = np.log(np.maximum(distance, np.finfo(float).tiny))
    with np.errstate(over="ignore", invalid="ignore"):  # in likelihoods of far shapes
        return pareto_smooth(logs, EFFICIENCY)[1]


def normal_scores(values: np.ndarray, draws: np.ndarray) -> np.ndarray:
    """Normal quantiles of the ranks that values have among draws.

    They have all moments, and errors of theirs are errors of quantiles.
    """
    ordered = np.sort(draws)
    low, high = (np.searchsorted(ordered, values, side) for side in ("left", "right"))
    return np.asarray(scipy.special.ndtri((low + high + 1) / (2 * len(draws) + 2)))

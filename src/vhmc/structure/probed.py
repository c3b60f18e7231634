"""Find the graph of a black box's parameters from gradients already evaluated."""

import numpy as np
import scipy.sparse as sp

from vhmc.structure.held_out import HeldOut, Kernels
from vhmc.structure.leftovers import Leftovers

POINTS_PER_PARAMETER = 4
"""With fewer of them, weak effects of many parameters together go unseen."""

MIN_POINTS = 60

MOST_POINTS = 600
"""Beyond which points are left out, evenly: more would cost time and tell little."""

TOLERANCE = 0.012
"""Error of a prediction, times the root of the number of points, that counts as exact.

An effect of about four times this, relative to the spread, does not escape the tests.
"""

MAX_TOLERANCE = 0.2

GAIN = 0.97
"""Ratio of errors below which one more parameter is taken in."""

MAX_NEIGHBOURS = 7
"""Beyond which a function of the parameters cannot be told from a few points."""

LEVEL = 0.001
"""Significance of effects of the parameters left out at which some get an edge."""

MAX_DENSITY = 0.6
"""Share of all pairs beyond which a graph is no use."""


def graph_from_gradients(thetas: np.ndarray, grads: np.ndarray) -> sp.csr_matrix | None:
    """Graph of the parameters from points scattered over the posterior.

    An entry of the gradient is a function, without noise, of a parameter and of its
    neighbours. For each entry the neighbours are taken in one by one, while they help
    to predict it at points held out. An edge is left out only if predictions of both
    its entries are nearly exact without it, and no test shows that the errors depend
    on it. An entry that cannot be predicted, such as that of a hub, gets all edges.

    Costs about 0.1 s for an entry at 300 points.

    Returns a symmetric boolean matrix with its diagonal; None if there are too few
    points or if nearly all edges would be kept.

    thetas, grads: of shape (n, dim).
    """
    thetas, grads = np.asarray(thetas, float), np.asarray(grads, float)
    is_finite = np.isfinite(thetas).all(axis=1) & np.isfinite(grads).all(axis=1)
    thetas, grads = thetas[is_finite], grads[is_finite]
    step = max(1, len(thetas) // MOST_POINTS)
    thetas, grads = thetas[::step], grads[::step]
    num, dim = thetas.shape
    if dim < 3 or num < num_points_needed(dim):
        return None
    kernels = Kernels(standardised(thetas))
    is_edge = np.eye(dim, dtype=bool)
    for i in range(dim):
        found = neighbours(kernels, grads[:, i], i)
        chosen = slice(None) if found is None else found
        is_edge[i, chosen] = is_edge[chosen, i] = True
        if is_edge.mean() > MAX_DENSITY:
            return None
    return sp.csr_matrix(is_edge)


def num_points_needed(dim: int) -> int:
    """Points below which no graph is found."""
    return max(MIN_POINTS, POINTS_PER_PARAMETER * dim)


def neighbours(kernels: Kernels, grad: np.ndarray, entry: int) -> list[int] | None:
    """Parameters that an entry of the gradient may depend on; None if any may.

    kernels: of the standardised parameters.
    grad: the entry at all points.
    entry: its own parameter.
    """
    fit, table = HeldOut(kernels, grad), kernels.table
    grown = _grown(fit, table, entry)
    used = _pruned(fit, grown, entry)
    allowed = min(TOLERANCE * np.sqrt(len(grad)), MAX_TOLERANCE)
    is_exact = fit.size(used) <= allowed
    if not is_exact or len(grown) > MAX_NEIGHBOURS:
        return None
    left = Leftovers(table, used, fit.errors(used).standard, fit.values)
    suspects = left.suspects(LEVEL, MAX_NEIGHBOURS - len(used))
    return None if suspects is None else used + suspects


def _grown(fit: HeldOut, table: np.ndarray, entry: int) -> list[int]:
    """Take in the parameter that helps most, while one does."""
    used = [entry]
    before = fit.quick_size(used)
    while len(used) < min(MAX_NEIGHBOURS + 1, table.shape[1]):
        left = Leftovers(table, used, fit.errors(used).standard, fit.values)
        trials = [[*used, j] for j in left.likely(2)]
        after, best = min((fit.quick_size(trial), trial) for trial in trials)
        if after > GAIN * before:
            break
        used, before = best, after
    return used


def _pruned(fit: HeldOut, used: list[int], entry: int) -> list[int]:
    """Drop parameters without which the prediction is no worse."""
    for j in [j for j in used if j != entry]:
        fewer = [k for k in used if k != j]
        if fit.size(fewer) < fit.size(used):
            used = fewer
    return used


def standardised(thetas: np.ndarray) -> np.ndarray:
    """By medians, with far points drawn in."""
    middle = np.median(thetas, axis=0)
    spread = 1.4826 * np.median(np.abs(thetas - middle), axis=0)
    return np.clip((thetas - middle) / np.where(spread > 0, spread, 1.0), -6.0, 6.0)

"""Look for wrong gradients among points that were evaluated anyway."""

import numpy as np

from vhmc.evaluation.evaluator import EvaluationLog
from vhmc.sampler.descents import Evaluated
from vhmc.sampler.locate import Modes
from vhmc.transport.transport_map import TransportMap

MOST_POINTS = 48
"""Points, the last ones, of which all pairs are compared."""
FEWEST = 4
"""Points of low energy, at least."""
UNEXPLAINED = 0.15
"""Median error of predicted changes of energies, over their median, that is looked
into."""
APART = 10.0
"""Distance in sd at which two ends of descents are looked at."""
AS_LOW = 5.0
"""Nats above the lowest end, at which another is nearly as low."""
SMALL = 0.1
"""Part of a parameter in a wide direction, over the largest, that is left out."""
OFF = 0.02
"""Error of the factor between predicted and seen changes that is looked into."""


def near_points(log: EvaluationLog) -> EvaluationLog:
    """Finite points of low energy, or the lowest ones where these are few.

    Whatever their phase: maps that are still being found have draws far away.
    """
    known = log.where(log.is_finite)
    dim = known.theta.shape[1]
    order = np.argsort(known.energy, kind="stable")
    limit = known.energy[order[0]] + 10 + 2 * dim
    number = max(int(np.sum(known.energy <= limit)), FEWEST, dim + 2)
    chosen = np.zeros(len(order), dtype=bool)
    chosen[order[:number]] = True
    return known.where(chosen)


def is_suspicious(near: EvaluationLog) -> bool:
    """Whether changes of energies between points are not those of their gradients.

    Exact for a Gaussian. Elsewhere the errors of the trapezoid rule look like those of
    a gradient, so this is a reason to look, not a finding.
    """
    theta, energy, grad = (rows[-MOST_POINTS:] for rows in near[:3])
    first, second = np.triu_indices(len(theta), 1)
    if not len(first):
        return True
    change = energy[second] - energy[first]
    middle = 0.5 * (grad[first] + grad[second])
    predicted = np.sum(middle * (theta[second] - theta[first]), axis=1)
    size = np.median(np.abs(change))
    if not size > 0:
        return bool(predicted.any())
    error = float(np.median(np.abs(change - predicted)) / size)
    bound = 10 * size  # a few pairs far from the mass would decide alone
    inside = (np.abs(change) < bound) & (np.abs(predicted) < bound)
    x, y = predicted[inside], change[inside]
    factor = float(x @ y / max(x @ x, 1e-300))
    return not (error < UNEXPLAINED and abs(factor - 1) < OFF)


def generic(near: EvaluationLog) -> Evaluated:
    """A point near the mass at which every parameter has a slope."""
    size = np.maximum(np.sqrt(np.mean(near.grad**2, axis=0)), 1e-300)
    slopes = np.abs(near.grad) / size
    is_low = near.energy <= np.median(near.energy)
    row = int(np.argmax(np.where(is_low, slopes.min(axis=1), -1.0)))
    return Evaluated(near.theta[row], float(near.energy[row]), near.grad[row])


def apart_directions(modes: Modes, transport: TransportMap) -> np.ndarray:
    """From the lowest end of the descents to the farthest one that is nearly as low.

    Two modes have such ends, and a density that does not fall. One row, as long as a
    standard deviation of the map, or none.
    """
    if len(modes.ends) < 2:
        return np.zeros((0, transport.dim))
    x = transport.inverse(modes.ends)
    lowest = int(np.argmin(modes.energies))
    is_low = modes.energies < modes.energies[lowest] + AS_LOW
    distance = np.where(is_low, np.linalg.norm(x - x[lowest], axis=1), 0.0)
    farthest = int(np.argmax(np.nan_to_num(distance)))
    if not distance[farthest] > APART:
        return np.zeros((0, transport.dim))
    way = modes.ends[farthest] - modes.ends[lowest]
    return (way / distance[farthest])[None]


def falling_direction(log: EvaluationLog) -> tuple[Evaluated, np.ndarray] | None:
    """A start, and the direction from there to the lowest point, of slope one."""
    rows = log.where(log.is_finite & (log.phase == "search"))
    if len(rows.theta) < FEWEST:
        return None
    # Not the first start, which may have parameters that happen to be equal.
    base = Evaluated(rows.theta[1], float(rows.energy[1]), rows.grad[1])
    way = rows.theta[int(np.argmin(rows.energy))] - base.theta
    slope = abs(base.grad @ way)
    with np.errstate(all="ignore"):
        direction = way / slope
    return (base, direction) if np.isfinite(direction).all() and slope > 0 else None


def wide_directions(near: EvaluationLog, number: int, least: float = 0) -> np.ndarray:
    r"""Directions in which points are spread widely for the slopes there.

    For draws of a Gaussian the product of the sds of points and slopes is one.

    least: of that product.
    number: of directions; one a row, as long as a standard deviation.
    """
    size = np.sqrt(np.mean(near.grad**2, axis=0))
    unit = np.where(size > 0, size, 1.0)
    apart = (near.theta - np.median(near.theta, axis=0)) * unit
    _, values, rows = np.linalg.svd(apart / np.sqrt(len(apart)), full_matrices=False)
    # A small part of another parameter would rise far away, whatever the rest does.
    rows = np.where(np.abs(rows) > SMALL * np.abs(rows).max(axis=1)[:, None], rows, 0.0)
    return (values[:, None] * rows / unit)[values >= least][:number]

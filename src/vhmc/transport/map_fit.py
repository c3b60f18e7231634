"""Fit a transport map: an affine layer, then curved ones while they help."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from vhmc.transport import coupling_fit
from vhmc.transport.affine_fit import fit_affine
from vhmc.transport.influence import influence, robust_score_errors
from vhmc.transport.layer import AbstractLayer
from vhmc.transport.transport_map import TransportMap

LayerFit = Callable[[np.ndarray, np.ndarray, np.ndarray], AbstractLayer]
"""From latent points, gradients of their energy and unit vectors along parameters, one
a row, to the layer of a family that brings them closest to a standard normal."""

FAMILIES: tuple[LayerFit, ...] = (coupling_fit.fit,)
"""Curved layers that are tried; held-out points choose."""
HELD_OUT = 0.25
STRAIGHT = 0.02
"""Score error of a map below which no further layer is tried."""
WORTHWHILE = 0.9
"""A further layer must leave less than this of the held-out score error."""
MAX_CURVED = 8
LEAST_POINTS = 4
"""Points by dimension below which no curved layer is tried."""
NUM_REFITS = 4
"""Of the affine layer: each depends less on the layer that it began with."""
LOST = 1e3
"""Score error of a point that a map cannot represent."""
HUB_REACH = 4.5
"""Latent distance of a hub beyond which points count less."""
MAX_SQUARE = 1e6
WORST = 8.0
"""Times the mean error that the worst coordinate may have."""
USABLE = 0.05
"""Weight below which a point is left out of the fit of a curved layer."""


class EvaluatedPoints(NamedTuple):
    """Points with their true energies and gradients, one a row."""

    theta: np.ndarray
    energy: np.ndarray
    grad: np.ndarray

    def where(self, chosen: np.ndarray) -> "EvaluatedPoints":
        """Some of the points."""
        return EvaluatedPoints(*(rows[chosen] for rows in self))


def fit_map(
    rng: np.random.Generator,
    points: EvaluatedPoints,
    start: AbstractLayer,
    families: tuple[LayerFit, ...] = FAMILIES,
) -> TransportMap:
    """Map in which the points' gradients are closest to those of a standard normal.

    rng: holds points out, which say when to stop.
    start: layer to begin with.
    families: fits of curved layers.
    """
    is_out = rng.uniform(size=len(points.theta)) < HELD_OUT
    kept, out = points.where(~is_out), points.where(is_out)
    transport = TransportMap((start,))
    for _ in range(NUM_REFITS):
        transport = _refitted(transport, kept)
    if len(kept.theta) < LEAST_POINTS * transport.dim or not is_out.any():
        return transport
    # The same weights for all maps, or each would be measured on other points.
    weights = typicality(transport, out)
    error = weighted_error(transport, out, weights)
    for _ in range(MAX_CURVED):
        if error < STRAIGHT:
            break
        usable = kept.where(typicality(transport, kept) > USABLE)
        scores = transport.pull_back(usable.theta, usable.grad)
        layers = [fit(*scores, transport.directions) for fit in families]
        trials = [_refitted(transport.then(layer), kept) for layer in layers]
        errors = [weighted_error(trial, out, weights) for trial in trials]
        best = int(np.argmin(errors))
        if not errors[best] < WORTHWHILE * error:
            break
        transport, error = trials[best], errors[best]
    return transport


def typicality(transport: TransportMap, points: EvaluatedPoints) -> np.ndarray:
    """Weights that fall with the energy beyond that of draws from the posterior."""
    dim = points.theta.shape[1]
    with np.errstate(over="ignore", invalid="ignore"):
        x, log_det = transport.inverse_and_log_det(points.theta)
        energy = points.energy - log_det
    known = np.isfinite(energy)
    if not known.any():
        return np.ones(len(energy))
    excess = np.where(known, energy, np.inf) - np.quantile(energy[known], 0.02)
    weights = np.exp(-np.maximum(excess - 1.5 * dim - 3, 0) / (0.5 * dim))
    if transport.hubs:
        # Down a neck the energy is low and gradients are huge, with no mass at all.
        hubs = np.max(np.abs(x[:, transport.hubs]), axis=1)
        hubs = np.nan_to_num(hubs, nan=np.inf)
        weights = weights * np.exp(-(np.maximum(hubs - HUB_REACH, 0.0) ** 2))
    return weights


def weighted_error(
    transport: TransportMap, points: EvaluatedPoints, weights: np.ndarray
) -> float:
    """Weighted mean of the squared score errors by dimension."""
    with np.errstate(all="ignore"):
        x, grad = transport.pull_back(points.theta, points.grad)
        # A point where a map overflows counts as a very large error.
        is_known = np.isfinite(np.sum(x + grad, axis=1))
        x, grad = (np.where(is_known[:, None], rows, 0.0) for rows in (x, grad))
    errors = np.where(is_known, robust_score_errors(x, grad), LOST)
    return float(weights @ errors / weights.sum())


def typical_error(
    transport: TransportMap, points: EvaluatedPoints, weights: np.ndarray
) -> float:
    """Weighted mean of the squared score errors by dimension, each at most one.

    Unlike `weighted_error` it says how good a map is where it is good: a few points
    far out do not decide. That of the worst coordinate counts as well.
    """
    with np.errstate(all="ignore"):
        x, grad = transport.pull_back(points.theta, points.grad)
        square = np.minimum(np.nan_to_num((grad - x) ** 2, nan=np.inf), MAX_SQUARE)
    mean = np.minimum(np.mean(square, axis=1), 1.0)
    worst = float(np.max(weights @ np.minimum(square, 1.0))) / WORST
    return max(float(weights @ mean), worst) / float(weights.sum())


def _refitted(transport: TransportMap, points: EvaluatedPoints) -> TransportMap:
    """The map with its innermost affine layer fitted anew."""
    x, grad = transport.pull_back(points.theta, points.grad)
    weights = influence(x, grad) * typicality(transport, points)
    return transport.then(fit_affine(x, grad, weights))

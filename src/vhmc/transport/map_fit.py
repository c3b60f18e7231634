"""A chart from all that was paid for: a Gaussian, and bends while they help."""

from typing import NamedTuple

import numpy as np

from vhmc.transport import coupling_fit as bend_fit
from vhmc.transport.affine import Frame
from vhmc.transport.affine_fit import refit
from vhmc.transport.transport_map import Chart

HELD_OUT = 0.25
STRAIGHT = 0.02
"""Score error of a chart below which it needs no further bend."""
WORTHWHILE = 0.9
"""A bend must leave less than this of the held-out score error."""
MOST_BENDS = 8
LEAST_POINTS = 4
"""Points a dimension below which no bend is tried."""
REFITS = 4
"""Of the Gaussian: each forgets more of the frame that it began with."""
USABLE = 0.05
"""Weight below which a point is left out of the fit of a bend."""


class Points(NamedTuple):
    """What the model said, one row a point."""

    theta: np.ndarray
    energy: np.ndarray
    grad: np.ndarray

    def where(self, chosen: np.ndarray) -> "Points":
        """Some of the points."""
        return Points(*(rows[chosen] for rows in self))


def straighten(rng: np.random.Generator, points: Points, frame: Frame) -> Chart:
    """Chart in which the points' gradients are closest to those of a standard normal.

    rng: holds points out, which say when to stop.
    frame: Gaussian to begin with.
    """
    is_out = rng.uniform(size=len(points.theta)) < HELD_OUT
    taught, out = points.where(~is_out), points.where(is_out)
    chart = Chart((frame,))
    for _ in range(REFITS):
        chart = _whitened(chart, taught)
    if len(taught.theta) < LEAST_POINTS * len(frame.mean) or not is_out.any():
        return chart
    # The same weights for all charts, or each would be measured on other points.
    share = typicality(chart, out)
    error = weighted_error(chart, out, share)
    for _ in range(MOST_BENDS):
        if error < STRAIGHT:
            break
        usable = taught.where(typicality(chart, taught) > USABLE)
        scores = chart.scores(usable.theta, usable.grad)
        bent = chart.then(bend_fit.fit(*scores, chart.directions))
        bent = _whitened(bent, taught)
        new_error = weighted_error(bent, out, share)
        if not new_error < WORTHWHILE * error:
            break
        chart, error = bent, new_error
    return chart


def typicality(chart: Chart, points: Points) -> np.ndarray:
    """Weights that fall with the energy beyond that of draws from the posterior."""
    dim = points.theta.shape[1]
    energy = points.energy - chart.locate(points.theta)[1]
    excess = energy - np.quantile(energy, 0.02)
    return np.exp(-np.maximum(excess - 1.5 * dim - 3, 0) / (0.5 * dim))


def weighted_error(chart: Chart, points: Points, share: np.ndarray) -> float:
    """Weighted mean of the squared score errors by dimension."""
    errors = bend_fit.score_errors(*chart.scores(points.theta, points.grad))
    return float(share @ errors / share.sum())


def _whitened(chart: Chart, points: Points) -> Chart:
    x, grad = chart.scores(points.theta, points.grad)
    weights = bend_fit.influence(x, grad) * typicality(chart, points)
    return chart.then(refit(x, grad, weights))

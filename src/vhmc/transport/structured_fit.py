"""Fit a map along the model's graph: a conditional layer, then one of the hubs."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import scipy.sparse

from vhmc.transport.conditional_fit import Choice, Scores, fit_conditional
from vhmc.transport.hub_fit import HubEnergy, fit_hub_map
from vhmc.transport.hub_functions import Link
from vhmc.transport.map_fit import EvaluatedPoints, typicality
from vhmc.transport.transport_map import TransportMap

NUM_PASSES = 2
"""Fits in a row, each with the weights that the one before gives to the points."""
FRONTIER = 0.4, 1.2
"""Distances beyond the evaluated hubs that are looked at, in their ranges."""
MAX_WIDTH = 4.0
"""Range of hubs that counts for these distances, at most."""
NUM_DRAWS = 200
MAX_REACH = 3.0
"""How far from the points draws of a map may be, in ranges of the points."""


class Graph(NamedTuple):
    """What is known of a model before it is sampled.

    edges: symmetric and sparse; the diagonal is set.
    links: of parameters that are not real numbers, by index.
    hubs: the only parameters that may be hubs; any of high degree if none are given.
    """

    edges: scipy.sparse.csr_matrix
    links: Mapping[int, Link] = {}
    hubs: tuple[int, ...] | None = None


class Structured(NamedTuple):
    """A map along a graph.

    transport: the map, whose first layer is the conditional one.
    choice: of hubs and functions.
    low, high: least and largest hubs of the points that it was fitted to.
    """

    transport: TransportMap
    choice: Choice
    low: np.ndarray
    high: np.ndarray

    def frontier(self, rng: np.random.Generator) -> np.ndarray:
        """Points with one hub beyond those that were evaluated, all else as drawn."""
        hubs, steps = list(self.choice.hubs), len(FRONTIER)
        if not hubs:
            return np.zeros((0, self.transport.dim))
        draws = self.transport.forward(
            rng.standard_normal((2 * steps * len(hubs), self.transport.dim))
        )
        conditional = self.transport.layers[0]
        x = conditional.inverse(draws)
        widths = np.minimum(self.high - self.low, MAX_WIDTH)
        row = 0
        for j, hub in enumerate(hubs):
            for step in FRONTIER:
                x[row, hub] = self.low[j] - step * widths[j]
                x[row + 1, hub] = self.high[j] + step * widths[j]
                row += 2
        return conditional.forward(x)


def fit_structured(
    rng: np.random.Generator,
    points: EvaluatedPoints,
    graph: Graph,
    weights: np.ndarray,
    choice: Choice | None = None,
) -> Structured:
    """The map for these points.

    weights: of the points in the first pass.
    choice: of hubs and functions, if it is known: then one pass will do.
    """
    for _ in range(NUM_PASSES if choice is None else 1):
        scores = Scores(points.theta, points.grad, weights)
        conditional, found = fit_conditional(rng, scores, *graph, choice)
        transport = TransportMap((conditional,))
        if found.hubs:
            energy = HubEnergy(rng, conditional, scores, points.energy)
            hubs = fit_hub_map(energy, conditional.hubs, points.theta.shape[1])
            transport = TransportMap((conditional, hubs))
        weights = typicality(transport, points)
    c = points.theta[weights > 0.01 * weights.max()][:, list(found.hubs)]
    return Structured(transport, found, c.min(axis=0), c.max(axis=0))


def is_sane(
    rng: np.random.Generator,
    transport: TransportMap,
    points: EvaluatedPoints,
    weights: np.ndarray,
) -> bool:
    """Whether draws of a map are about where the points are that it was fitted to."""
    chosen = rng.choice(len(weights), NUM_DRAWS, p=weights / weights.sum())
    with np.errstate(all="ignore"):
        draws = transport.forward(rng.standard_normal((NUM_DRAWS, transport.dim)))
    if not np.isfinite(draws).all():
        return False
    low, middle, high = np.quantile(points.theta[chosen], (0.05, 0.5, 0.95), axis=0)
    below, above = np.quantile(draws, (0.05, 0.95), axis=0)
    reach = MAX_REACH * np.maximum(high - low, 1e-12)
    return bool(np.all(below > middle - reach) and np.all(above < middle + reach))


def first_weights(points: EvaluatedPoints) -> np.ndarray:
    """Weights before anything is known: they fall with the energy, slowly."""
    dim = points.theta.shape[1]
    excess = points.energy - points.energy.min()
    return 1 / (1 + (excess / (5 * dim + 20)) ** 2)

"""Fit a map along the model's graph: a conditional layer, then one of the hubs."""

import contextlib
import itertools
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import scipy.sparse

from vhmc.transport.conditional import AbstractConditional
from vhmc.transport.conditional_fit import ConditionalFit, Scores
from vhmc.transport.explicit_energy import explicit_energy
from vhmc.transport.hub_dictionary import Choice
from vhmc.transport.hub_fit import HubEnergy, marginal_data
from vhmc.transport.hub_functions import Link
from vhmc.transport.hub_grid import fit_hub_map
from vhmc.transport.joint import Joint
from vhmc.transport.layer import AbstractLayer
from vhmc.transport.map_fit import EvaluatedPoints, typical_error, typicality
from vhmc.transport.marginal import AbstractMarginal
from vhmc.transport.transport_map import TransportMap

NUM_PASSES = 2
"""Fits in a row, each with the weights that the one before gives to the points."""
FRONTIER = 3.0, 4.0
"""Latent places of a hub at which a map that is too narrow shows it."""
MAX_CANDIDATES = 12
"""Parameters that may be hubs."""
HUB_DEGREE = 0.5
"""Least degree of a hub that is no scale, over the largest one."""
SCALE_DEGREE = 0.05
"""Least degree of a scale, over the number of parameters."""
SPARSE = 0.9
"""Share of all pairs below which a graph is sparse."""
MAX_DEGREE = 24
"""Of most parameters: rows with more unknowns need more points than there are."""
NUM_FUNCTIONS = 3
"""Functions of the scales in such a model, about."""
LEAST_KEPT = 0.4
"""Share of the effective number of points that new weights must leave."""
NUM_DRAWS = 200
MAX_REACH = 3.0
"""How far from the points draws of a map may be as a rule."""


class Graph(NamedTuple):
    """What is known of a model before it is sampled.

    edges: symmetric and sparse; the diagonal is set.
    links: of parameters that are not real numbers, by index.
    hubs: the only parameters that may be hubs; any of high degree if none are given.
    scalars: parameters that are no entry of an array: hubs are mostly among them.
    coordinates: in which the edges are those of the model; its parameters if None.
    """

    edges: scipy.sparse.csr_matrix
    links: Mapping[int, Link] = {}
    hubs: tuple[int, ...] | None = None
    scalars: tuple[int, ...] = ()
    coordinates: AbstractLayer | None = None

    def inside(self, points: EvaluatedPoints) -> EvaluatedPoints:
        """The points in the coordinates of the graph."""
        if self.coordinates is None:
            return points
        outer = TransportMap((self.coordinates,))
        with np.errstate(all="ignore"):
            theta, log_det = outer.inverse_and_log_det(points.theta)
            _, grad = outer.pull_back(points.theta, points.grad)
        return EvaluatedPoints(theta, points.energy - log_det, grad)

    def outside(self, transport: TransportMap) -> TransportMap:
        """The map of the model's parameters, from one of the graph's coordinates."""
        if self.coordinates is None:
            return transport
        return TransportMap((self.coordinates, *transport.layers))

    @property
    def scales(self) -> tuple[int, ...]:
        """Positive scalars that have many neighbours, most first."""
        if self.hubs is not None:
            return self.hubs
        degree = np.diff(self.edges.indptr)
        least = max(SCALE_DEGREE * len(degree), 4)
        found = [
            i
            for i in self.scalars
            if degree[i] >= least and i in self.links and self.links[i].is_scale
        ]
        return tuple(sorted(found, key=lambda i: -degree[i]))

    @property
    def has_gaps(self) -> bool:
        """Whether given the scales many parameters do not interact."""
        inner = self._inner
        return bool(0 < inner.nnz < SPARSE * inner.shape[0] ** 2)

    @property
    def is_sparse(self) -> bool:
        """Whether given the scales most parameters interact with few others."""
        degree = np.diff(self._inner.indptr)
        return self.has_gaps and bool(np.median(degree) <= MAX_DEGREE)

    @property
    def _inner(self) -> scipy.sparse.csr_matrix:
        """The graph of all parameters but the scales."""
        rest = np.setdiff1d(np.arange(self.edges.shape[0]), self.scales)
        return scipy.sparse.csr_matrix(self.edges[rest][:, rest])

    @property
    def num_unknowns(self) -> int:
        """Of a typical variable in a model that is Gaussian given its scales."""
        near = np.median(np.diff(self.edges.indptr)) - len(self.scales)
        return int((NUM_FUNCTIONS + 1) * max(near, 1))

    @property
    def candidates(self) -> tuple[int, ...]:
        """Parameters that may be hubs: scales, then others of high degree."""
        if self.hubs is not None:
            return self.hubs
        degree = np.diff(self.edges.indptr)
        order = np.argsort(-degree, kind="stable")
        high = [int(i) for i in order if degree[i] >= HUB_DEGREE * degree.max()]
        return tuple(dict.fromkeys([*self.scales, *high]))[:MAX_CANDIDATES]


class Structured(NamedTuple):
    """A map along a graph.

    transport: the map, whose first layer is the conditional one.
    choice: of hubs and functions.
    """

    transport: TransportMap
    choice: Choice

    def frontier(self, rng: np.random.Generator) -> np.ndarray:
        """Points with one hub where the map has next to no mass, all else as drawn."""
        hubs = self.transport.hubs
        x = rng.standard_normal((2 * len(FRONTIER) * len(hubs), self.transport.dim))
        for row, (hub, place, side) in enumerate(
            itertools.product(hubs, FRONTIER, (-1, 1))
        ):
            x[row, hub] = side * place
        return self.transport.forward(x)


def fit_structured(
    rng: np.random.Generator,
    points: EvaluatedPoints,
    graph: Graph,
    weights: np.ndarray,
    choice: Choice | None = None,
) -> Structured:
    """The map for these points, which are in the graph's coordinates.

    weights: of the points in the first pass.
    choice: of hubs and functions, if it is known: then one pass will do.
    """
    for _ in range(NUM_PASSES if choice is None else 1):
        scores = Scores(points.theta, points.grad, weights)
        fit = ConditionalFit(
            rng, scores, graph.edges, graph.links, graph.candidates, graph.scales
        )
        # One matrix for all is exact or, with its small differences of large numbers,
        # worse than fits by level.
        exact = fit.exact() if choice is None else None
        found = exact or choice or fit.choose()
        layer = fit.joint(found) if exact else fit.by_level(found)
        transport = with_hub_map(rng, layer, scores, points.energy)
        # A bad map finds few points typical, and one fitted to these would be worse.
        new = typicality(transport, points)
        if _effective_size(new) > LEAST_KEPT * _effective_size(weights):
            weights = new
    return Structured(transport, found)


def _effective_size(weights: np.ndarray) -> float:
    return float(weights.sum() ** 2 / max(np.sum(weights**2), 1e-300))


def best_structured(
    rng: np.random.Generator,
    points: EvaluatedPoints,
    graph: Graph,
    weights: np.ndarray,
    choice: Choice | None,
) -> Structured | None:
    """The better of two maps: with hubs and functions chosen anew, or as before.

    choice: of hubs and functions; none if there is no map yet.

    Returns None if the points are too few or too far apart for any.
    """
    points = graph.inside(points)
    trials = []
    for one in [None] if choice is None else [None, choice]:
        # Points scattered over many orders of magnitude leave nothing to solve with.
        with contextlib.suppress(np.linalg.LinAlgError, ValueError):
            trials.append(fit_structured(rng, points, graph, weights, one))
    if not trials:
        return None
    common = np.min([typicality(one.transport, points) for one in trials], axis=0)
    common = common + 1e-3 * weights
    best = min(trials, key=lambda one: typical_error(one.transport, points, common))
    return best._replace(transport=graph.outside(best.transport))


def with_hub_map(
    rng: np.random.Generator,
    conditional: AbstractConditional,
    scores: Scores,
    energy: np.ndarray,
) -> TransportMap:
    """The map of a conditional layer, and of the hubs' marginal if there are any."""
    if not len(conditional.hubs):
        return TransportMap((conditional,))
    level, slopes = marginal_data(conditional, scores, energy)
    marginal: AbstractMarginal | None = None
    if isinstance(conditional, Joint):
        marginal = explicit_energy(rng, conditional, scores, level, slopes)
    if marginal is None:
        marginal = HubEnergy(rng, conditional.hubs, scores, level, slopes)
    hubs = fit_hub_map(marginal, conditional.hubs, scores.theta.shape[1])
    return TransportMap((conditional, hubs))


def is_sane(
    rng: np.random.Generator,
    transport: TransportMap,
    points: EvaluatedPoints,
    weights: np.ndarray,
    max_reach: float = MAX_REACH,
) -> bool:
    """Whether draws of a map are about where the points are that it was fitted to.

    max_reach: how far from the points they may be, in ranges of the points.
    """
    if not weights.sum() > 0:
        return False
    chosen = rng.choice(len(weights), NUM_DRAWS, p=weights / weights.sum())
    with np.errstate(all="ignore"):
        draws = transport.forward(rng.standard_normal((NUM_DRAWS, transport.dim)))
    if not np.isfinite(draws).all():
        return False
    low, middle, high = np.quantile(points.theta[chosen], (0.05, 0.5, 0.95), axis=0)
    below, above = np.quantile(draws, (0.05, 0.95), axis=0)
    reach = max_reach * np.maximum(high - low, 1e-12)
    return bool(np.all(below > middle - reach) and np.all(above < middle + reach))


def first_weights(points: EvaluatedPoints) -> np.ndarray:
    """Weights before anything is known: they fall with the energy, slowly."""
    dim = points.theta.shape[1]
    excess = points.energy - points.energy.min()
    return 1 / (1 + (excess / (5 * dim + 20)) ** 2)

"""Fit a map along the model's graph: a conditional layer, then one of the hubs."""

import contextlib
import itertools
from typing import NamedTuple

import numpy as np

from vhmc.transport.conditional import AbstractConditional
from vhmc.transport.conditional_fit import ConditionalFit, Scores
from vhmc.transport.explicit_energy import ExplicitEnergy, explicit_energy
from vhmc.transport.graph import Graph
from vhmc.transport.hub_copula import fit_hub_copula
from vhmc.transport.hub_dictionary import MAX_HUBS, Choice
from vhmc.transport.hub_fit import HubEnergy, marginal_data
from vhmc.transport.hub_functions import Atom
from vhmc.transport.hub_grid import fit_hub_map
from vhmc.transport.joint import Joint
from vhmc.transport.latent_gaussian import LatentGaussian
from vhmc.transport.latent_gaussian_fit import LatentGaussianFit
from vhmc.transport.map_fit import EvaluatedPoints, typical_error, typicality
from vhmc.transport.transport_map import TransportMap

NUM_PASSES = 2
"""Fits in a row, each with the weights that the one before gives to the points."""
FRONTIER = 3.0, 4.0
"""Latent places of a hub at which a map that is too narrow shows it."""
FAIR = 0.05
"""Squared error by dimension at which functions that were chosen before are kept."""
LEAST_KEPT = 0.4
"""Share of the effective number of points that new weights must leave."""
NUM_DRAWS = 200
MAX_REACH = 3.0
"""How far from the points draws of a map may be as a rule."""


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
    """The map for these points.

    weights: of the points in the first pass.
    choice: of hubs and functions, if it is known: then one pass will do.
    """
    marginal: tuple[Atom, ...] = () if choice is None else choice.marginal
    for _ in range(NUM_PASSES if choice is None else 1):
        scores = Scores(points.theta, points.grad, weights)
        layer, found = _conditional(rng, scores, graph, choice)
        transport, marginal = with_hub_map(rng, layer, scores, points.energy, marginal)
        # A bad map finds few points typical, and one fitted to these would be worse.
        new = typicality(transport, points)
        if _effective_size(new) > LEAST_KEPT * _effective_size(weights):
            weights = new
    return Structured(transport, found._replace(marginal=marginal))


def _conditional(
    rng: np.random.Generator, scores: Scores, graph: Graph, choice: Choice | None
) -> tuple[AbstractConditional | LatentGaussian, Choice]:
    """The layer of all parameters but the hubs, with hubs and functions of them."""
    if graph.predictor is not None:
        latent = LatentGaussianFit(rng, scores, graph.predictor, graph.links)
        found = choice or latent.choose()
        return latent.layer(found), found
    fit = ConditionalFit(
        rng, scores, graph.edges, graph.links, graph.candidates, graph.scales
    )
    # One matrix for all is exact or, with its small differences of large numbers,
    # worse than fits by level.
    exact = fit.exact() if choice is None else None
    found = exact or choice or fit.choose()
    return fit.joint(found) if exact else fit.by_level(found), found


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
    trials: list[Structured] = []
    options = [None] if choice is None else [None, choice]
    for one in options if graph.predictor is None else reversed(options):
        if graph.predictor is not None and _is_fair(trials, points, weights):
            break  # a search among functions takes many times as long
        # Points scattered over many orders of magnitude leave nothing to solve with.
        with contextlib.suppress(np.linalg.LinAlgError, ValueError):
            trials.append(fit_structured(rng, points, graph, weights, one))
    if not trials:
        return None
    common = np.min([typicality(one.transport, points) for one in trials], axis=0)
    common = common + 1e-3 * weights
    return min(trials, key=lambda one: typical_error(one.transport, points, common))


def _is_fair(
    trials: list[Structured], points: EvaluatedPoints, weights: np.ndarray
) -> bool:
    """Whether a map leaves little for other functions to explain."""
    for one in trials:
        typical = typicality(one.transport, points) + 1e-3 * weights
        if typical_error(one.transport, points, typical) < FAIR:
            return True
    return False


def with_hub_map(
    rng: np.random.Generator,
    conditional: AbstractConditional | LatentGaussian,
    scores: Scores,
    energy: np.ndarray,
    known: tuple[Atom, ...] = (),
) -> tuple[TransportMap, tuple[Atom, ...]]:
    """The map of a conditional layer, and of the hubs' marginal if there are any.

    known: functions of the marginal energy in closed form, if they are known.

    Returns the map, and these functions, which are none without a closed form.
    """
    if not len(conditional.hubs):
        return TransportMap((conditional,)), ()
    level, slopes = marginal_data(conditional, scores, energy)
    marginal: ExplicitEnergy | None = None
    if isinstance(conditional, Joint | LatentGaussian):
        marginal = explicit_energy(rng, conditional, scores, level, slopes, known)
    if len(conditional.hubs) > MAX_HUBS:
        if marginal is None:
            raise ValueError("so many hubs need a marginal energy in closed form")
        hubs = fit_hub_copula(rng, marginal, conditional.hubs, scores.theta.shape[1])
        return TransportMap((conditional, hubs)), tuple(marginal.functions)
    functions = () if marginal is None else tuple(marginal.functions)
    density = marginal or HubEnergy(rng, conditional.hubs, scores, level, slopes)
    hubs = fit_hub_map(density, conditional.hubs, scores.theta.shape[1])
    return TransportMap((conditional, hubs)), functions


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

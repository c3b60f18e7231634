"""Find the posterior of a model that is Gaussian given its scales without a search.

Gradients of such a model are linear in a few unknowns for each variable, wherever they
are evaluated: some dozens of points around the start determine the posterior.
"""

from collections.abc import Callable

import numpy as np

from vhmc.evaluation.evaluator import EvaluationLog, Evaluator
from vhmc.report.watch import LOG
from vhmc.sampler.starts import HALF_WIDTH
from vhmc.sampler.warm_up import NARROW, spread_of_log_weights
from vhmc.transport.conditional_fit import ConditionalFit, Scores
from vhmc.transport.graph import Graph
from vhmc.transport.hub_dictionary import MAX_HUBS
from vhmc.transport.hub_functions import Atom
from vhmc.transport.joint import Joint
from vhmc.transport.latent_gaussian import LatentGaussian
from vhmc.transport.latent_gaussian_fit import LatentGaussianFit
from vhmc.transport.structured_fit import with_hub_map
from vhmc.transport.transport_map import TransportMap

NUM_FIRST = 28
"""Points after which it is decided whether the model is of this kind, at least."""
NUM_DESIGN = 64
"""Points to which the map is fitted, at least."""
SPARE = 1.5
"""Points over unknowns of a variable."""
LEAST_FINITE = 0.75
"""Fraction of the points that must have a finite energy."""
NUM_TERMS = 2
"""Functions of the scales that the data's precision depends on, about."""
EXACT = 1e-8
"""Held-out squared error, by dimension, of a predictor that is exact."""
NUM_TRIALS = 4
"""Fits, each to the draws of the ones before as well."""
NARROW_MANY = 1.5
"""Spread of log weights, in nats, where the hubs' ranks have a normal copula."""


def closed_form(
    rng: np.random.Generator,
    evaluator: Evaluator,
    origin: np.ndarray,
    graph: Graph,
    allowance: int,
    batch_size: int,
) -> TransportMap | None:
    """The map of the posterior, if the model is Gaussian given its scales.

    origin: the user's start, unconstrained.
    graph: of the model.
    allowance: evaluations.
    """
    design = _Design(rng, evaluator, origin, allowance)
    family = None
    if graph.predictor is not None:
        family = _through_predictor(rng, evaluator, graph, design)
    if family is None and 0 < len(graph.scales) < len(origin):
        family = _given_scales(rng, evaluator, graph, design)
    if family is None:
        return None
    LOG.info("the model is Gaussian given its scales: no search is needed")
    return _confirmed(rng, evaluator, family, batch_size)


class _Design:
    """Points of the closed form, as many as are needed so far.

    rng, evaluator, origin, allowance: those of `closed_form`.
    """

    def __init__(
        self,
        rng: np.random.Generator,
        evaluator: Evaluator,
        origin: np.ndarray,
        allowance: int,
    ):
        self._rng, self._evaluator, self.origin = rng, evaluator, origin
        self.allowance, self._number = allowance, 0

    def extend(self, number: int) -> None:
        """Evaluate points around zero and the start in turn, as a search would begin.

        number: of them in all.
        """
        new = max(0, number - self._number)
        if not new:
            return
        shape = new, len(self.origin)
        box = self._rng.uniform(-HALF_WIDTH, HALF_WIDTH, shape)
        theta = box + self.origin * (np.arange(new) % 2)[:, None]
        self._evaluator.evaluate(theta, "search")
        self._number += new


_Family = Callable[[Scores], Joint | LatentGaussian]
"""Fits the layer of all parameters but the scales to points."""


def _given_scales(
    rng: np.random.Generator, evaluator: Evaluator, graph: Graph, design: _Design
) -> _Family | None:
    """The family whose precisions are functions of the scales, if one is exact."""
    first, most = (
        max(NUM_FIRST, int(SPARE * graph.num_unknowns(is_local=is_local)))
        for is_local in (True, False)
    )
    first = max(first, most) if most <= design.allowance // 2 else first
    if first > design.allowance // 2:
        return None
    design.extend(first)
    choice = _fit(rng, _scores(evaluator.log), graph).exact()
    if choice is None or evaluator.log.is_finite.mean() < LEAST_FINITE:
        return None
    unknowns = _fit(rng, _scores(evaluator.log), graph).num_unknowns(choice)
    more = max(NUM_DESIGN, int(SPARE * unknowns))
    if more > design.allowance:
        return None
    design.extend(more)
    return lambda scores: _fit(rng, scores, graph).joint(choice)


def _through_predictor(
    rng: np.random.Generator, evaluator: Evaluator, graph: Graph, design: _Design
) -> _Family | None:
    """The family that a linear predictor separates from the data, if it is exact.

    That is where the errors of the data are normal.
    """
    predictor = graph.predictor
    assert predictor is not None
    dim = len(design.origin)
    unknowns = len(predictor.links) + len(predictor.own_links) + 2 * dim
    first = max(NUM_FIRST, int(SPARE * NUM_TERMS * unknowns / dim))
    if max(first, NUM_DESIGN) > design.allowance // 2:
        return None
    design.extend(first)
    if evaluator.log.is_finite.mean() < LEAST_FINITE:
        return None
    fit = LatentGaussianFit(rng, _scores(evaluator.log), predictor, graph.links)
    choice = fit.choose()
    if not fit.held_out_error(choice) < EXACT:
        return None
    design.extend(NUM_DESIGN)

    def layer(scores: Scores) -> LatentGaussian:
        return LatentGaussianFit(rng, scores, predictor, graph.links).layer(choice)

    return layer


def _confirmed(
    rng: np.random.Generator, evaluator: Evaluator, family: _Family, batch_size: int
) -> TransportMap | None:
    """The map of a family, once its own draws show it; None if they never do."""
    functions: tuple[Atom, ...] = ()
    for _ in range(NUM_TRIALS):
        scores, energy = _scores(evaluator.log), _energy(evaluator.log)
        with np.errstate(all="ignore"):
            try:
                transport, functions = with_hub_map(
                    rng, family(scores), scores, energy, functions
                )
            except (ValueError, np.linalg.LinAlgError):
                return None
            white = rng.standard_normal((batch_size, transport.dim))
            draws = transport.forward(white)
        if not np.isfinite(draws).all():
            return None
        answer = evaluator.evaluate(draws, "warm-up")
        limit = NARROW if len(transport.hubs) <= MAX_HUBS else NARROW_MANY
        if spread_of_log_weights(transport, draws, answer.energy) < limit:
            return transport
    return None


def _scores(log: EvaluationLog) -> Scores:
    known = log.is_finite
    return Scores(log.theta[known], log.grad[known], np.ones(known.sum()))


def _energy(log: EvaluationLog) -> np.ndarray:
    return log.energy[log.is_finite]


def _fit(rng: np.random.Generator, scores: Scores, graph: Graph) -> ConditionalFit:
    return ConditionalFit(
        rng, scores, graph.edges, graph.links, graph.candidates, graph.scales
    )

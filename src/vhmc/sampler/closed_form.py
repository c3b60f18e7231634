"""Find the posterior of a model that is Gaussian given its scales without a search.

Gradients of such a model are linear in a few unknowns for each variable, wherever they
are evaluated: some dozens of points around the start determine the posterior.
"""

import numpy as np

from vhmc.evaluation.evaluator import EvaluationLog, Evaluator
from vhmc.report.watch import LOG
from vhmc.sampler.starts import HALF_WIDTH
from vhmc.sampler.warm_up import NARROW, spread_of_log_weights
from vhmc.transport.conditional_fit import ConditionalFit, Scores
from vhmc.transport.graph import Graph
from vhmc.transport.hub_dictionary import Choice
from vhmc.transport.map_fit import EvaluatedPoints
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
NUM_TRIALS = 4
"""Fits, each to the draws of the ones before as well."""


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
    if not 0 < len(graph.scales) < len(origin):
        return None
    first, most = (
        max(NUM_FIRST, int(SPARE * graph.num_unknowns(is_local=is_local)))
        for is_local in (True, False)
    )
    first = max(first, most) if most <= allowance // 2 else first
    if first > allowance // 2:
        return None
    evaluator.evaluate(_design(rng, origin, first), "search")
    choice = _fit(rng, evaluator.log, graph).exact()
    if choice is None or evaluator.log.is_finite.mean() < LEAST_FINITE:
        return None
    more = max(NUM_DESIGN, int(SPARE * _num_unknowns(rng, evaluator, graph, choice)))
    if more > allowance:
        return None
    if more > first:
        evaluator.evaluate(_design(rng, origin, more - first), "search")
    LOG.info("the model is Gaussian given its scales: no search is needed")
    for _ in range(NUM_TRIALS):
        log = evaluator.log
        layer = _fit(rng, log, graph).joint(choice)
        points = _finite(log)
        scores = Scores(points.theta, points.grad, np.ones(len(points.theta)))
        with np.errstate(all="ignore"):
            transport = with_hub_map(rng, layer, scores, points.energy)
            draws = transport.forward(rng.standard_normal((batch_size, len(origin))))
        if not np.isfinite(draws).all():
            return None
        answer = evaluator.evaluate(draws, "warm-up")
        if spread_of_log_weights(transport, draws, answer.energy) < NARROW:
            return transport
    return None


def _design(rng: np.random.Generator, origin: np.ndarray, number: int) -> np.ndarray:
    """Points around zero and around the start in turn, as the search would begin."""
    box = rng.uniform(-HALF_WIDTH, HALF_WIDTH, (number, len(origin)))
    return box + origin * (np.arange(number) % 2)[:, None]


def _finite(log: EvaluationLog) -> EvaluatedPoints:
    known = log.is_finite
    return EvaluatedPoints(log.theta[known], log.energy[known], log.grad[known])


def _fit(rng: np.random.Generator, log: EvaluationLog, graph: Graph) -> ConditionalFit:
    points = _finite(log)
    scores = Scores(points.theta, points.grad, np.ones(len(points.theta)))
    return ConditionalFit(
        rng, scores, graph.edges, graph.links, graph.candidates, graph.scales
    )


def _num_unknowns(
    rng: np.random.Generator, evaluator: Evaluator, graph: Graph, choice: Choice
) -> int:
    return _fit(rng, evaluator.log, graph).num_unknowns(choice)

"""The search that suits a model: with its scales held where they may lead astray."""

from collections.abc import Callable
from functools import partial

import numpy as np

from vhmc.evaluation.evaluator import Evaluator
from vhmc.sampler.locate import Located, locate
from vhmc.sampler.locate_given import locate_given
from vhmc.sampler.plan import Plan
from vhmc.transport.hub_dictionary import MAX_HUBS
from vhmc.transport.structured_fit import Graph


def search(
    rng: np.random.Generator,
    evaluator: Evaluator,
    origin: np.ndarray,
    plan: Plan,
    graph: Graph | None,
    hessian: Callable[[np.ndarray], np.ndarray] | None,
) -> Located:
    """Search, with the scales held in a model whose graph shows what they scale.

    The graph of a black box is not known yet: its scales are held where a search
    without that finds no mode.

    origin: the first start, unconstrained.
    graph: as far as it is known.
    hessian: of the energy at a point, if it is affordable.
    """
    evaluate, number = evaluator.evaluate, plan.search
    scales = graph.scales if graph else ()
    given = partial(locate_given, rng, evaluate, origin)
    if scales and graph is not None and graph.is_sparse:
        return given(number, scales, hessian)
    located = locate(rng, evaluate, origin, number, hessian)
    is_affordable = plan.training > 2 * number
    has_few = 0 < len(scales) <= MAX_HUBS and len(scales) < len(origin) / 2
    if has_few and is_affordable and not located.modes.has_mode:
        return given(number // 2, scales, hessian)
    return located

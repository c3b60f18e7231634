"""The search that suits a model: with its scales held where they may lead astray."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from vhmc.evaluation.evaluator import Evaluator
from vhmc.sampler.effects import find_effects
from vhmc.sampler.locate import Located, locate
from vhmc.sampler.locate_given import locate_given
from vhmc.sampler.locate_pooled import locate_pooled
from vhmc.sampler.plan import Plan
from vhmc.transport.graph import Graph
from vhmc.transport.hub_dictionary import MAX_HUBS


def search(
    rng: np.random.Generator,
    evaluator: Evaluator,
    origin: np.ndarray,
    plan: Plan,
    graph: Graph | None,
    hessian: Callable[[np.ndarray], np.ndarray] | None,
    places: Sequence[np.ndarray] = (),
) -> Located:
    """Search, with the scales held in a model whose graph shows what they scale.

    The graph of a black box is not known yet: its scales are held where a search
    without that finds no mode.

    origin: the first start, unconstrained.
    graph: as far as it is known.
    hessian: of the energy at a point, if it is affordable.
    places: where to begin instead, if there are any.
    """
    evaluate, number = evaluator.evaluate, plan.search
    scales = graph.scales if graph else ()
    given = partial(locate_given, rng, evaluate, origin, places=places)
    if scales and graph is not None and graph.is_sparse:
        return given(number, scales, hessian)
    is_cheap = 2 * len(scales) + 1 <= number // 4
    is_first = not places  # another search finds what it would only by chance
    if is_first and scales and is_cheap and graph is not None and graph.has_gaps:
        before = evaluator.left
        groups = find_effects(rng, evaluate, origin, graph)
        if len(groups) == len(scales):
            allowance = number + plan.hessian - (before - evaluator.left)
            pooled = locate_pooled(rng, evaluate, origin, allowance, groups)
            if pooled is not None:
                return pooled
        number = max(number - (before - evaluator.left), 1)
    spare = plan.warm_up * 2 // 3
    most = number, hessian, plan.hessian, spare
    located = locate(rng, evaluate, origin, *most, places)
    is_affordable = plan.training > 2 * number
    has_few = 0 < len(scales) <= MAX_HUBS and len(scales) < len(origin) / 2
    if has_few and is_affordable and not located.modes.has_mode:
        return given(number // 2, scales, hessian)
    return located

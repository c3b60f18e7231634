"""The first map of a run: an old one, a closed form, or a search and a warm-up."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from vhmc.evaluation.centred_evaluator import CentredEvaluator
from vhmc.sampler.again import places_around
from vhmc.sampler.black_box_graph import num_missing
from vhmc.sampler.closed_form import closed_form
from vhmc.sampler.differenced_graph import SOURCE
from vhmc.sampler.known_graph import KnownGraph
from vhmc.sampler.locate import Modes, modes_of
from vhmc.sampler.plan import Plan
from vhmc.sampler.search import search
from vhmc.sampler.sparse_hessian import SparseHessian
from vhmc.sampler.training import LAST
from vhmc.sampler.walls.watch import WallWatch
from vhmc.sampler.warm_start import confirm
from vhmc.sampler.warm_up import warm_up, warm_up_along
from vhmc.sampler.warm_up_skewed import warm_up_skewed
from vhmc.surrogate.residual_fit import hold_out
from vhmc.surrogate.separated_fit import SeparatedFit, separable_model
from vhmc.surrogate.surrogate import Surrogate
from vhmc.surrogate.training_set import training_set
from vhmc.transport.transport_map import TransportMap

SEPARABLE = 0.05
"""Squared score error by dimension of an energy that explains held-out gradients."""


class FirstMap(NamedTuple):
    """Where the posterior is, before any surrogate is trained.

    transport: map of the mode that was found.
    modes: where the descents of the search ended.
    """

    transport: TransportMap
    modes: Modes


class Finder:
    """Finds the first map of a run.

    rng: of all points.
    evaluator: of the model.
    plan: of the run.
    known: graph of the model, which may be found on the way.
    walls: that the run has met.
    """

    def __init__(
        self,
        rng: np.random.Generator,
        evaluator: CentredEvaluator,
        plan: Plan,
        known: KnownGraph,
        walls: WallWatch,
    ):
        self._rng, self._evaluator, self._plan = rng, evaluator, plan
        self._known, self._walls = known, walls

    def find(self, old: Surrogate | None) -> FirstMap:
        """The old surrogate's map if it holds, a closed form, or that of a search."""
        rng, evaluator, plan = self._rng, self._evaluator, self._plan
        origin, transport = evaluator.origin, None
        if old is not None and not old.has_walls:
            old = old if evaluator.layer is None else old.inside()
            transport, thetas = confirm(rng, evaluator.evaluate, old, 2 * plan.chains)
            origin = np.mean(thetas, axis=0)
        if transport is None:
            self._known.read(rng, evaluator, origin, plan)
        graph, has_walls = self._known.graph, self._walls.layer is not None
        if transport is None and graph is not None and not has_walls:
            transport = closed_form(
                rng, evaluator, origin, graph, plan.search, plan.chains
            )
        if transport is None:
            self._known.keep_few_hubs()
            return self._searched(origin)
        return FirstMap(transport, no_modes(evaluator.target.dim))

    def again(self, transport: TransportMap) -> FirstMap:
        """Search once more, from other starts.

        transport: map so far, in whose coordinates they are far apart.
        """
        evaluator, origin = self._evaluator, self._evaluator.origin
        places = places_around(self._rng, evaluator.log, transport, origin)
        return self._searched(origin, places)

    def _searched(
        self, origin: np.ndarray, places: Sequence[np.ndarray] = ()
    ) -> FirstMap:
        """Descents, a Gaussian, and a map along the graph if that tells something.

        origin: the first start.
        places: all starts instead, if there are any.
        """
        rng, evaluator = self._rng, self._evaluator
        curvature, price = self._curvature()
        plan = self._plan._replace(hessian=price)
        graph = self._known.graph
        located = search(rng, evaluator, origin, plan, graph, curvature, places)
        allowance, chains = plan.warm_up, plan.chains
        layer = warm_up(rng, evaluator.evaluate, located, allowance, chains)
        layer, modes = self._walls.adapt(rng, layer, located.modes)
        transport = TransportMap((layer,))
        if evaluator.target.observable is not None:
            most = evaluator.left - plan.reserve - LAST * chains
            transport = warm_up_skewed(rng, evaluator, layer, most, chains)
        self._known.test(rng, evaluator, layer, allowance)
        missing = num_missing(self._known.structure, evaluator.log)
        if 0 < missing <= allowance * 2 // 3:
            # Along the right graph from the start: a wrong map may lose the mass.
            white = rng.standard_normal((missing, evaluator.target.dim))
            evaluator.evaluate(layer.forward(white), "warm-up")
        self._known.look(evaluator.log)
        if self._is_separable(transport):
            return FirstMap(transport, modes)
        if (graph := self._known.structured) is not None:
            most = (evaluator.left - plan.reserve) // 2
            allowance = min(allowance * 2 // 3 + plan.training // 3, most)
            transport = warm_up_along(
                rng, evaluator, transport, graph, allowance, chains
            )
        return FirstMap(transport, modes)

    def _curvature(self) -> tuple[Callable[[np.ndarray], np.ndarray] | None, int]:
        """Hessians of the search, none if they are too expensive; points for one."""
        plan, structure = self._plan, self._known.structure
        if structure.source == SOURCE:
            sparse = SparseHessian(self._evaluator, structure)
            if sparse.price <= (plan.hessian or plan.search // 2):
                return sparse, sparse.price
        if not plan.hessian:
            return None, 0
        return partial(self._evaluator.hessian, phase="hessian"), plan.hessian

    def _is_separable(self, transport: TransportMap) -> bool:
        """Whether a quantity of the program explains the gradients so far.

        Its energy is then the residual of an affine map. If not, it is forgotten.
        """
        graph, dim = self._known.graph, transport.dim
        if graph is None or graph.separated is None:
            return False
        model = separable_model(graph, dim)
        if model is not None:
            training = training_set(self._evaluator.log, transport)
            fit = SeparatedFit(model)
            if fit.serves(training):
                is_out = hold_out(self._rng, training)
                if fit.error_of(self._rng, training, is_out) < SEPARABLE:
                    return True
        self._known.forget_separated()
        return False


def no_modes(dim: int) -> Modes:
    """No search was made, so no other mode is known."""
    return modes_of([], dim, has_mode=True)

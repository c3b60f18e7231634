"""What a run knows of its model's graph, which may be found on the way."""

from dataclasses import replace

import numpy as np

from vhmc.evaluation.evaluator import EvaluationLog, Evaluator
from vhmc.evaluation.space import Space
from vhmc.report.watch import LOG
from vhmc.sampler.black_box_graph import refined
from vhmc.sampler.differenced_graph import confirmed, differenced, is_affordable
from vhmc.sampler.model_graph import fitting_graph
from vhmc.sampler.plan import Plan
from vhmc.structure.record import Structure
from vhmc.transport.affine import Affine
from vhmc.transport.graph import Graph


class KnownGraph:
    """The structure of a model, and the graph along which maps are fitted.

    structure: that is known at first.
    space: of the parameters.

    graph: None if there is nothing to fit along.
    """

    def __init__(self, structure: Structure, space: Space):
        self._space = space
        self.use(structure)

    def use(self, structure: Structure) -> None:
        """Fit maps along this structure from now on."""
        self.structure = structure
        self.graph: Graph | None = fitting_graph(structure, self._space)

    def look(self, log: EvaluationLog) -> bool:
        """Find the graph of a black box from the points so far; whether it is new."""
        return self._learn(refined(self.structure, log))

    def _learn(self, found: Structure) -> bool:
        """Use a structure if it is new; whether it is."""
        is_new = found is not self.structure
        if is_new:
            LOG.info("structure: %s", found)
            self.use(found)
        return is_new

    def read(
        self,
        rng: np.random.Generator,
        evaluator: Evaluator,
        origin: np.ndarray,
        plan: Plan,
    ) -> None:
        """Read the graph of a black box off gradient differences, if it is unknown.

        origin: around which they are taken.
        """
        if is_affordable(self.structure, evaluator.target, plan.search):
            self._learn(differenced(rng, evaluator, self.structure, origin))

    def test(
        self,
        rng: np.random.Generator,
        evaluator: Evaluator,
        layer: Affine,
        allowance: int,
    ) -> None:
        """Look for links near the mass that such differences missed.

        layer, allowance: as in `confirmed`.
        """
        self._learn(confirmed(rng, evaluator, self.structure, layer, allowance))

    def keep_few_hubs(self) -> None:
        """Forget a predictor with more hubs than can be fitted without a closed form.

        It is called when there is none.
        """
        found = self.structure.predictor
        if found is not None and not found.has_few_hubs:
            self.use(replace(self.structure, predictor=None))

    def forget_separated(self) -> None:
        """Fit maps along the graph: the quantity that was found does not explain it."""
        self.use(replace(self.structure, separated=None))

    @property
    def structured(self) -> Graph | None:
        """The graph, if it tells something."""
        tells = self.graph is not None and self.graph.is_structured
        return self.graph if tells else None

"""The second search of a run, where the first fit was hopeless."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from vhmc.evaluation.centred_evaluator import CentredEvaluator
from vhmc.report.watch import LOG
from vhmc.sampler.again import heaviest, is_affordable, joined, planned
from vhmc.sampler.first_map import Finder
from vhmc.sampler.known_graph import KnownGraph
from vhmc.sampler.modes.surroundings import Surroundings
from vhmc.sampler.plan import Plan
from vhmc.sampler.soundness.inspection import Inspection
from vhmc.sampler.walls.watch import WallWatch
from vhmc.transport.transport_map import TransportMap

NOTE = (
    "the first fit was hopeless, so the posterior was searched for anew after {spent} "
    "evaluations"
)


class Renewed(NamedTuple):
    """What a run goes on with after another search.

    transports: maps of what it has found; none if it has no mass beside the old ones.
    surroundings: what is known of other modes.
    plan: for what was left before.
    """

    transports: list[TransportMap]
    surroundings: Surroundings
    plan: Plan


class SecondSearch:
    """Searches once more, if that is called for and the budget allows it.

    rng: of all points.
    evaluator: of the run.
    known: graph of the model.
    walls: of the run, behind which there is no second search.
    inspection: of the model, as there is none if that is wrong.

    first: the first map of the run, in whose coordinates starts are far apart: later
        ones may be fitted to points of several places.
    remarks: that tell of it.
    """

    def __init__(
        self,
        rng: np.random.Generator,
        evaluator: CentredEvaluator,
        known: KnownGraph,
        walls: WallWatch,
        inspection: Inspection,
    ):
        self._rng, self._evaluator = rng, evaluator
        self._known, self._walls, self._inspection = known, walls, inspection
        self.first: TransportMap | None = None
        self.remarks: tuple[str, ...] = ()

    def is_possible(self, plan: Plan) -> bool:
        """Whether there was none yet, and there is budget for one."""
        if self.remarks or self._walls.layer is not None:
            return False
        is_sound = not self._inspection.is_hopeless
        return is_sound and is_affordable(plan, self._evaluator.left)

    def search(
        self, old: Sequence[TransportMap], around: Surroundings, plan: Plan
    ) -> Renewed:
        """Search from other starts, and leave the old maps if there is next to no mass.

        old: maps so far.
        around: what is known of other modes.
        plan: of the run so far.
        """
        evaluator = self._evaluator
        self.remarks = (NOTE.format(spent=evaluator.spent),)
        LOG.info("%s", *self.remarks)
        begun, plan = evaluator.num_rounds, planned(plan, evaluator.left)
        finder = Finder(self._rng, evaluator, plan, self._known, self._walls)
        found = finder.again(self.first or old[0])
        modes = joined(around.modes, found.modes)
        maps = heaviest(evaluator.log, old, found.transport)
        if found.transport not in maps:
            evaluator.leave_behind(begun, evaluator.num_rounds)
            around.modes = modes
            return Renewed([], around, plan)
        around = Surroundings(self._rng, evaluator, modes)
        if len(maps) == 1:
            evaluator.leave_behind(0, begun)
            maps = around.first(found.transport, plan)
        return Renewed(maps, around, plan)

"""One run of the default sampler: search, training, draws, check, correction."""

import warnings
from collections.abc import Sequence

import numpy as np

from vhmc.evaluation.centred_evaluator import CentredEvaluator
from vhmc.evaluation.evaluator import Interrupted
from vhmc.evaluation.replay import Diverged
from vhmc.numerics.threads import one_thread
from vhmc.report.watch import LOG, Watch
from vhmc.sampler.again import Lost, is_astray, is_lost
from vhmc.sampler.assessment import assess
from vhmc.sampler.attempt import Attempt
from vhmc.sampler.black_box_graph import ROUNDS
from vhmc.sampler.clock import Clock
from vhmc.sampler.ending import Ending, moment
from vhmc.sampler.first_map import Finder, no_modes
from vhmc.sampler.known_graph import KnownGraph
from vhmc.sampler.model_graph import behind, labels_of
from vhmc.sampler.modes.ensemble import Ensemble, Setting
from vhmc.sampler.modes.surroundings import Surroundings
from vhmc.sampler.plan import Plan, Settings, plan
from vhmc.sampler.posterior import Posterior
from vhmc.sampler.reasons import Concern
from vhmc.sampler.rounds import RoundReport
from vhmc.sampler.second_search import SecondSearch
from vhmc.sampler.soundness.inspection import Inspection
from vhmc.sampler.training import LAST
from vhmc.sampler.verdict import unchecked
from vhmc.sampler.walls.recast import recast
from vhmc.sampler.walls.watch import MetWall, WallWatch
from vhmc.structure.record import Structure
from vhmc.surrogate.near_mass import affine_map
from vhmc.surrogate.surrogate import Surrogate
from vhmc.transport.affine import Affine
from vhmc.transport.layer import AbstractLayer
from vhmc.transport.transport_map import TransportMap

LEAST_ROUNDS = 8
"""Rounds' worth of evaluations below which another attempt is not begun."""
FEWEST_TO_CHECK, FEWEST_OF_EACH = 4, 8
"""Evaluations below which nothing can be checked, of one mode and of several each."""


class Run:
    """A run, determined by its seed and the model's answers.

    evaluator: of the model, within its budget.
    settings: what the user chose.
    watch: is told how far the run is.
    structure: of the model, along which maps are fitted.
    """

    def __init__(
        self,
        evaluator: CentredEvaluator,
        settings: Settings,
        watch: Watch,
        structure: Structure,
    ):
        self._evaluator, self._settings, self._watch = evaluator, settings, watch
        self._target = evaluator.target
        self._clock = Clock()
        self._first_structure, self._first_layer = structure, evaluator.layer
        self.is_complete = False
        self._reset()

    def execute(self, budgets: list[int], old: Surrogate | None) -> Posterior:
        """Run to the end, or to where the user interrupts it.

        budgets: that the run was given, one after the other.
        old: surrogate of a related run.
        """
        try:
            with one_thread():
                posterior = self._to_end(budgets, old)
        except Interrupted:
            return self._ending.cut_short(self._attempts, self._ensemble)
        self.is_complete = True
        return posterior

    def _to_end(self, budgets: list[int], old: Surrogate | None) -> Posterior:
        try:
            self._begin(old)
            for budget in budgets:
                self._allow(budget)
                self._train()
                posterior = self._finish()
            return posterior
        except Diverged:
            warnings.warn(
                "the ledger was written by another machine or other versions: its "
                "points are kept, but the draws will differ from that run's",
                stacklevel=4,
            )
        self._evaluator.absorb()
        self._evaluator.raise_budget(budgets[-1])
        self._reset()
        log = self._evaluator.log
        self._start_training([affine_map(log)])
        self._train()
        return self._finish()

    def _reset(self) -> None:
        """Nothing has happened yet."""
        self._plan = self._planned(self._evaluator.budget)
        self._rng = np.random.default_rng(self._settings.seed)
        self._attempts: list[Attempt] = []
        self._ensemble: Ensemble | None = None
        nowhere = no_modes(self._target.dim)
        self._surroundings = Surroundings(self._rng, self._evaluator, nowhere)
        self._evaluator.use(self._first_layer)
        reserve = self._plan.reserve + LEAST_ROUNDS * self._plan.chains
        self._walls = WallWatch(self._evaluator, reserve)
        labels = labels_of(self._target.parameters)
        self._inspection = Inspection(self._evaluator, labels)
        self._known = KnownGraph(self._first_structure, self._target.parameters)
        shared = self._rng, self._evaluator, self._known, self._walls
        self._second = SecondSearch(*shared, self._inspection)

    def _planned(self, budget: int) -> Plan:
        return plan(self._target, budget, self._settings.correction)

    def _for_what_is_left(self) -> Plan:
        """The plan, or that of what is left if walls have taken too much of it."""
        plan, left = self._plan, self._evaluator.left
        first = plan.search + plan.hessian + plan.warm_up
        needed = first + plan.reserve + LEAST_ROUNDS * plan.chains
        if left >= needed or not self._evaluator.spent:
            return plan
        return self._planned(left * self._target.price)

    def _allow(self, budget: int) -> None:
        """Go on with a budget; check and correction take their part of it."""
        self._evaluator.raise_budget(budget)
        new = self._planned(budget)
        self._plan = self._plan._replace(check=new.check, correction=new.correction)

    def _begin(self, old: Surrogate | None) -> None:
        """Find the posterior, by an old surrogate or by a search.

        Once more wherever it has met a wall, which is then out of the way.
        """
        while True:
            try:
                self._find(old)
                break
            except MetWall:
                old = None
            self._pass_walls()

    def _find(self, old: Surrogate | None) -> None:
        evaluator, rng = self._evaluator, self._rng
        self._plan = plan = self._for_what_is_left()
        self._inspection.at_start()
        finder = Finder(rng, evaluator, plan, self._known, self._walls)
        transport, modes = finder.find(old)
        self._inspection.near_mass(modes, transport)
        self._surroundings = Surroundings(rng, evaluator, modes)
        transports = self._surroundings.first(transport, plan)
        self._second.first = transport
        is_possible = self._second.is_possible(plan)
        if is_possible and is_astray(evaluator.log, transport, modes):
            transports = self._searched_again(transports) or transports
        self._start_training(transports)

    def _searched_again(self, old: list[TransportMap]) -> list[TransportMap]:
        """Maps of what another search has found; none if the old ones are to stay."""
        found = self._second.search(old, self._surroundings, self._plan)
        self._surroundings, self._plan = found.surroundings, found.plan
        return found.transports

    def _start_training(self, transports: list[TransportMap]) -> None:
        """A component for every mode's map."""
        self._clock.lap("search")
        setting = Setting(
            self._evaluator, self._settings, self._rng, self._watch, self._tell_round
        )
        self._ensemble = Ensemble(setting, transports, self._known.graph, self._plan)

    def _look_for_graph(self) -> None:
        """Find the graph of a black box from the points evaluated so far."""
        if self._known.look(self._evaluator.log) and self._ensemble is not None:
            self._ensemble.use_graph(self._known.graph)

    def _train(self) -> None:
        """Train, draw and check until the draws are good or the budget is spent.

        All anew where a wall is met.
        """
        while True:
            try:
                self._attempt_often()
                break
            except MetWall:
                before = self._evaluator.layer
            self._pass_walls()
            if self._evaluator.layer is not before:
                self._begin_behind(before)
        assert self._ensemble is not None
        doubts = self._surroundings.doubts(len(self._ensemble.components))
        self._attempts = [self._judged(attempt, doubts) for attempt in self._attempts]

    def _attempt_often(self) -> None:
        while not self._attempts or self._widens() or self._goes_on() or self._looks():
            try:
                attempt = self._attempt()  # which may begin a new list
            except Lost:
                assert self._ensemble is not None
                if maps := self._searched_again(self._ensemble.transports):
                    self._attempts = []
                    self._start_training(maps)
                continue
            self._attempts.append(attempt)

    def _begin_behind(self, before: AbstractLayer | None) -> None:
        """Train anew behind walls that were met in training.

        before: the layer to the coordinates in which they were met.
        """
        evaluator = self._evaluator
        (layer,) = affine_map(evaluator.log).layers
        assert isinstance(layer, Affine) and evaluator.layer is not None
        modes = recast(self._surroundings.modes, before, evaluator.layer)
        layer, modes = self._walls.adapt(self._rng, layer, modes)
        self._attempts = []
        self._surroundings = Surroundings(self._rng, evaluator, modes)
        self._start_training([TransportMap((layer,))])

    def _pass_walls(self) -> None:
        """Go on in coordinates in which walls that were met are none."""
        before = self._evaluator.layer
        self._walls.learn(self._rng)
        layer = self._walls.layer
        if layer is not None and layer is not before:
            self._ensemble = None
            space = self._target.parameters
            self._known.use(behind(self._first_structure, layer, space))

    def _looks(self) -> bool:
        """Look around the modes; whether there are more, and draws have to be made."""
        assert self._ensemble is not None
        if self._inspection.is_hopeless:
            return False
        found = self._surroundings.look(self._ensemble.transports, self._plan)
        self._plan = self._plan._replace(look=0)
        self._clock.lap("look")
        return self._adds(found)

    def _widens(self) -> bool:
        """Add a mode as wide as the mass outside of the draws, if there is much."""
        if self._inspection.is_hopeless:
            return False
        return self._adds(self._surroundings.wider(self._attempts[-1], self._plan))

    def _adds(self, transports: list[TransportMap]) -> bool:
        """More modes, if there are any; all are to be drawn from."""
        assert self._ensemble is not None
        if transports:
            self._ensemble.add(transports, self._plan)
            self._attempts = []
        return bool(transports)

    def _goes_on(self) -> bool:
        """Whether the last attempt is not good and there is budget for another."""
        plan = self._plan
        spare = self._evaluator.left - plan.reserve
        verdict = self._attempts[-1].verdict
        goes_on = verdict.status != "good" and spare >= LEAST_ROUNDS * plan.chains
        goes_on &= not self._inspection.is_hopeless
        if goes_on:
            LOG.info("not good yet, training goes on: %s", verdict.reasons[0])
        return goes_on

    def _attempt(self) -> Attempt:
        """Train every mode, draw from all, and check the draws."""
        ensemble, plan = self._ensemble, self._plan
        assert ensemble is not None
        last = self._attempts[-1] if self._attempts else None
        if last is not None and last.check is not None:
            ensemble.begin_again(last.surrogate, last.check)
            self._look_for_graph()
            ensemble.refit()
        if not self._inspection.is_hopeless:
            ensemble.train(plan, self._looks)
        self._clock.lap("training")
        drawn = ensemble.draw()
        self._clock.lap("drawing")
        plan = self._plan
        spare = plan.correction + self._inspection.reserve
        number = min(plan.check, self._evaluator.left - spare)
        least = FEWEST_TO_CHECK if len(drawn) == 1 else FEWEST_OF_EACH
        if number // len(drawn) < least:
            verdict = unchecked("no evaluation was left to check the draws")
            surrogate = ensemble.components[0].surrogate
            return Attempt(surrogate, drawn[0], None, verdict)
        attempt = ensemble.checked(drawn, number)
        reports = [
            row for one in ensemble.components for row in one.rounds.reports[-LAST:]
        ]
        attempt = self._judged(attempt._replace(last=tuple(reports)))
        if attempt.verdict.status != "good":
            self._inspection.in_doubt()
            attempt = self._judged(attempt)
        self._clock.lap("check")
        return attempt

    def _judged(self, attempt: Attempt, doubts: Sequence[Concern] = ()) -> Attempt:
        """The attempt with the verdict on it, by all that is known of other modes."""
        if attempt.check is None:
            return attempt
        labels = labels_of(self._target.parameters)
        log = self._evaluator.log
        around = self._surroundings
        parts = attempt, around.modes, around.wide, log, labels
        verdict = assess(*parts, self._target.parameters, doubts)
        verdict = verdict.because_of(self._inspection.concerns)
        return attempt._replace(verdict=verdict)

    def _tell_round(self, report: RoundReport) -> None:
        self._watch.round(moment(report))
        ensemble = self._ensemble
        assert ensemble is not None
        if max(len(one.rounds.reports) for one in ensemble.components) in ROUNDS:
            self._look_for_graph()
        is_possible = len(ensemble.components) == 1
        is_possible = is_possible and self._second.is_possible(self._plan)
        if is_possible and is_lost(ensemble.reports):
            raise Lost

    def _finish(self) -> Posterior:
        """The best attempt, with the requested correction."""
        number = self._plan.correction
        return self._ending.finished(self._rng, self._attempts, number)

    @property
    def _ending(self) -> Ending:
        reports = [] if self._ensemble is None else self._ensemble.reports
        return Ending(
            self._evaluator,
            self._settings,
            self._clock,
            self._known.structure,
            self._walls,
            self._surroundings,
            reports,
            self._second.remarks,
        )

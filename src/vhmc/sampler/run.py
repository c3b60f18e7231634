"""One run of the default sampler: search, training, draws, check, correction."""

import warnings

import numpy as np

from vhmc.evaluation.evaluator import Evaluator, Interrupted, RunFailure
from vhmc.evaluation.replay import Diverged
from vhmc.numerics.threads import one_thread
from vhmc.report.status import Moment
from vhmc.report.watch import LOG, Watch
from vhmc.sampler.assessment import LAST, assess
from vhmc.sampler.attempt import Attempt
from vhmc.sampler.black_box_graph import ROUNDS, num_missing, refined
from vhmc.sampler.check import check, choose, with_moments
from vhmc.sampler.clock import Clock
from vhmc.sampler.closed_form import closed_form
from vhmc.sampler.correction import (
    CORRECTIONS,
    NONE,
    Corrected,
    Uncorrected,
    resolve,
)
from vhmc.sampler.drawing import Drawn, draw
from vhmc.sampler.locate import Modes, modes_of
from vhmc.sampler.model_graph import fitting_graph, labels_of
from vhmc.sampler.plan import Plan, Settings, plan
from vhmc.sampler.posterior import Posterior
from vhmc.sampler.result import result
from vhmc.sampler.rounds import RoundReport, Rounds
from vhmc.sampler.search import search
from vhmc.sampler.training import repair, train
from vhmc.sampler.verdict import RANKS, Verdict, unchecked
from vhmc.sampler.warm_start import confirm
from vhmc.sampler.warm_up import warm_up, warm_up_along
from vhmc.sampler.warm_up_skewed import warm_up_skewed
from vhmc.structure.record import Structure
from vhmc.surrogate.near_mass import affine_map
from vhmc.surrogate.surrogate import Surrogate
from vhmc.surrogate.trainer import Trainer, default_num_features
from vhmc.transport.graph import Graph
from vhmc.transport.transport_map import TransportMap

LEAST_ROUNDS = 8
"""Rounds' worth of evaluations below which another attempt is not begun."""
FEWEST_TO_CHECK = 4
"""Evaluations below which nothing can be checked."""


class Run:
    """A run, determined by its seed and the model's answers.

    evaluator: of the model, within its budget.
    settings: what the user chose.
    watch: is told how far the run is.
    structure: of the model, along which maps are fitted.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        settings: Settings,
        watch: Watch,
        structure: Structure,
    ):
        self._evaluator, self._settings, self._watch = evaluator, settings, watch
        self._target = evaluator.target
        self._clock = Clock()
        self._first_structure = structure
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
            return self._cut_short()
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
        self._start_training(affine_map(log), _no_modes(log.theta.shape[1]))
        self._train()
        return self._finish()

    def _reset(self) -> None:
        """Nothing has happened yet."""
        self._plan = self._planned(self._evaluator.budget)
        self._rng = np.random.default_rng(self._settings.seed)
        self._attempts: list[Attempt] = []
        self._rounds: Rounds | None = None
        self._use(self._first_structure)

    def _planned(self, budget: int) -> Plan:
        return plan(self._target, budget, self._settings.correction)

    def _allow(self, budget: int) -> None:
        """Go on with a budget; check and correction take their part of it."""
        self._evaluator.raise_budget(budget)
        new = self._planned(budget)
        self._plan = self._plan._replace(check=new.check, correction=new.correction)

    def _begin(self, old: Surrogate | None) -> None:
        """Find the posterior, by an old surrogate or by a search."""
        evaluator, rng, plan = self._evaluator, self._rng, self._plan
        origin, transport = evaluator.origin, None
        modes = _no_modes(self._target.dim)
        if old is not None:
            old = old if evaluator.layer is None else old.inside()
            transport, thetas = confirm(rng, evaluator.evaluate, old, 2 * plan.chains)
            origin = np.mean(thetas, axis=0)
        if transport is None and self._graph is not None:
            transport = closed_form(
                rng, evaluator, origin, self._graph, plan.search, plan.chains
            )
        if transport is None:

            def hessian(theta: np.ndarray) -> np.ndarray:
                return evaluator.hessian(theta, "hessian")

            curvature = hessian if plan.hessian else None
            located = search(rng, evaluator, origin, plan, self._graph, curvature)
            modes = located.modes
            allowance, chains = plan.warm_up, plan.chains
            layer = warm_up(rng, evaluator.evaluate, located, allowance, chains)
            transport = TransportMap((layer,))
            if self._target.observable is not None:
                most = evaluator.left - plan.check - plan.correction
                most -= LAST * plan.chains
                transport = warm_up_skewed(rng, evaluator, layer, most, chains)
            missing = num_missing(self._structure, evaluator.log)
            if 0 < missing <= allowance * 2 // 3:
                # Along the right graph from the start: a wrong map may lose the mass.
                white = rng.standard_normal((missing, self._target.dim))
                evaluator.evaluate(layer.forward(white), "warm-up")
            self._look_for_graph()
            if (graph := self._structured_graph) is not None:
                most = (evaluator.left - plan.check - plan.correction) // 2
                allowance = min(allowance * 2 // 3 + plan.training // 3, most)
                transport = warm_up_along(
                    rng, evaluator, transport, graph, allowance, chains
                )
        self._start_training(transport, modes)

    @property
    def _structured_graph(self) -> Graph | None:
        """The graph, if it tells something."""
        tells = self._graph is not None and self._graph.is_structured
        return self._graph if tells else None

    def _start_training(self, transport: TransportMap, modes: Modes) -> None:
        size = self._settings.num_features
        size = default_num_features(self._target.dim) if size is None else size
        if transport.is_skewed:
            # Where such a map is needed, a network has more holes than it mends.
            size = 0
        self._clock.lap("search")
        self._modes = modes
        trainer = Trainer(
            transport,
            size,
            self._rng,
            graph=self._graph,
            observable=self._target.observable,
        )
        self._rounds = Rounds(
            trainer,
            self._evaluator,
            self._plan.chains,
            self._rng,
            self._values,
        )
        trainer.start(self._evaluator.log)

    def _look_for_graph(self) -> None:
        """Find the graph of a black box from the points evaluated so far."""
        found = refined(self._structure, self._evaluator.log)
        if found is not self._structure:
            LOG.info("structure: %s", found)
            self._use(found)

    def _use(self, structure: Structure) -> None:
        """Fit maps along this structure from now on."""
        self._structure = structure
        self._graph = fitting_graph(structure, self._target.parameters)
        if self._rounds is not None:
            self._rounds.trainer.use_graph(self._graph)

    def _train(self) -> None:
        """Train, draw and check until the draws are good or the budget is spent."""
        while not self._attempts or self._goes_on():
            self._attempts.append(self._attempt())

    def _goes_on(self) -> bool:
        """Whether the last attempt is not good and there is budget for another."""
        plan = self._plan
        spare = self._evaluator.left - plan.correction - plan.check
        verdict = self._attempts[-1].verdict
        goes_on = verdict.status != "good" and spare >= LEAST_ROUNDS * plan.chains
        if goes_on:
            LOG.info("not good yet, training goes on: %s", verdict.reasons[0])
        return goes_on

    def _attempt(self) -> Attempt:
        rounds, evaluator, rng = self._rounds, self._evaluator, self._rng
        assert rounds is not None
        trainer, plan = rounds.trainer, self._plan
        last = self._attempts[-1].check if self._attempts else None
        if last is not None:
            # The checked draws are training data now, and better starts. Those of the
            # last attempt: its surrogate, which weighs them, is still the trainer's.
            rounds.restart(last)
            trainer.require_residual()
            self._look_for_graph()
            trainer.refit(evaluator.log, *rounds.recent())
        train(rounds, evaluator, plan, self._tell_round)
        repair(rng, rounds, evaluator, plan, self._settings.chains)
        self._clock.lap("training")
        surrogate, drawn = trainer.surrogate, self._draw(rounds)
        number = min(plan.check, evaluator.left - plan.correction)
        if number < FEWEST_TO_CHECK:
            verdict = unchecked("no evaluation was left to check the draws")
            return Attempt(surrogate, drawn, None, verdict)
        attempt = Attempt(surrogate, drawn, None, unchecked(""))
        flat = attempt.theta.reshape(-1, self._target.dim)
        values = with_moments(self._values, flat)
        chosen = choose(rng, values, flat, number - number // 4)
        tempered = rounds.tempered_draws(number // 4)
        checked = check(surrogate, evaluator.evaluate, values, chosen, tempered)
        labels = list(labels_of(self._target.parameters))
        verdict = assess(
            surrogate,
            drawn,
            checked,
            rounds.reports,
            self._modes,
            evaluator.log,
            labels,
        )
        self._clock.lap("check")
        return attempt._replace(check=checked, verdict=verdict)

    def _values(self, theta: np.ndarray) -> np.ndarray:
        """All values in the user's space, of points as the evaluator takes them."""
        return self._target.parameters.values(self._evaluator.outward(theta))

    def _draw(self, rounds: Rounds) -> Drawn:
        """Chains on the surrogate, from dispersed starts."""
        starts = rounds.dispersed_starts(self._settings.chains)
        self._watch.phase("drawing")
        drawn = draw(
            self._rng,
            rounds.trainer.surrogate,
            starts,
            rounds.step_size,
            self._settings.draws,
            self._watch.draws,
        )
        self._clock.lap("drawing")
        return drawn

    def _tell_round(self, report: RoundReport) -> None:
        self._watch.round(_moment(report))
        assert self._rounds is not None
        if len(self._rounds.reports) in ROUNDS:
            self._look_for_graph()

    def _finish(self) -> Posterior:
        """The best attempt, with the requested correction."""
        best = min(self._attempts, key=lambda attempt: attempt.badness)
        theta = best.theta
        if best.check is None:
            return self._posterior(best, theta, NONE, best.verdict)
        flat = theta.reshape(-1, theta.shape[-1])
        name = resolve(self._settings.correction, best.check, flat)
        uncorrected = Uncorrected(
            best.surrogate,
            best.drawn,
            best.check,
            theta,
            self._evaluator.evaluate,
            min(self._plan.correction, self._evaluator.left),
        )
        corrected = CORRECTIONS[name].draw(self._rng, uncorrected, best.verdict)
        self._clock.lap("correction")
        return self._posterior(best, corrected.theta, name, corrected.verdict)

    def _cut_short(self) -> Posterior:
        """What there is when the user ends the run, with an honest verdict."""
        if self._attempts:
            best = min(self._attempts, key=lambda attempt: attempt.badness)
            reasons = ("the run was interrupted", *best.verdict.reasons)
            status = max(best.verdict.status, "caution", key=RANKS.index)
            verdict = best.verdict._replace(status=status, reasons=reasons)
            return self._posterior(best, best.theta, NONE, verdict)
        log = self._evaluator.log
        if self._rounds is None:
            raise RunFailure(
                "the run was interrupted during the search: there is nothing to draw "
                "from yet",
                evaluation_log=self._evaluator.evaluation_log,
            )
        surrogate = self._rounds.trainer.update(log)
        verdict = unchecked("the run was interrupted before its draws were checked")
        attempt = Attempt(surrogate, self._draw(self._rounds), None, verdict)
        return self._posterior(attempt, attempt.theta, NONE, verdict)

    def _posterior(
        self, attempt: Attempt, theta: np.ndarray, correction: str, verdict: Verdict
    ) -> Posterior:
        evaluator = self._evaluator
        reports = self._rounds.reports if self._rounds else []
        return result(
            evaluator,
            attempt,
            Corrected(theta, verdict),
            correction=correction,
            seconds=self._clock.seconds,
            history=tuple(_moment(report) for report in reports),
            settings={"budget": evaluator.budget, **self._settings._asdict()},
            structure=self._structure,
        )


def _moment(report: RoundReport) -> Moment:
    return Moment(report.spent, report.score_error, report.delayed_acceptance)


def _no_modes(dim: int) -> Modes:
    """No search was made, so no other mode is known."""
    return modes_of([], dim, has_mode=True)

"""One run of the default sampler: search, training, draws, checks, correction."""

import copy
import time
import warnings
from typing import NamedTuple

import numpy as np

from vhmc.evaluation.evaluator import Account, Paid, RunFailure
from vhmc.report.watch import LOG
from vhmc.sampler.check import Check, check, choose
from vhmc.sampler.correction import best_rung, exact_draws, importance_draws
from vhmc.sampler.drawing import Frozen, draw
from vhmc.sampler.judge import judge_corrected, judge_run
from vhmc.sampler.locate import Located, locate
from vhmc.sampler.plan import Plan
from vhmc.sampler.posterior import Posterior
from vhmc.sampler.rounds import Rounds
from vhmc.sampler.training import repair, starts_of, train
from vhmc.sampler.verdict import RANKS, Verdict
from vhmc.sampler.warm_start import located_at, try_old
from vhmc.sampler.warm_up import settle
from vhmc.surrogate.log_density import LogDensity
from vhmc.surrogate.residual import Charted
from vhmc.surrogate.trainer import AWAY, Learner, default_num_features
from vhmc.transport.affine import Frame
from vhmc.transport.affine_fit import refit
from vhmc.transport.coupling_fit import influence
from vhmc.transport.transport_map import Chart

LEAST_ROUNDS = 8
"""Rounds' worth of calls below which another attempt is not begun."""
FEWEST_CHECKS = 4
"""Calls below which nothing can be checked."""


class Settings(NamedTuple):
    """What the user chose beside the budget.

    draws, chains, correction, seed, num_features: as in `sample`.
    """

    draws: int
    chains: int
    correction: str
    seed: int
    num_features: int | None


class Attempt(NamedTuple):
    """A frozen surrogate with its draws and what the truth says of them."""

    learner: Learner
    frozen: Frozen
    checked: Check | None
    verdict: Verdict


class Clock:
    """Seconds by phase; laps of the same name add up."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        """Book the time since the last lap."""
        now = time.perf_counter()
        self.seconds[name] = self.seconds.get(name, 0.0) + now - self._last
        self._last = now


class Campaign:
    """A run under way: everything that happens is determined by seed and answers.

    account: the model, the budget, and what was paid for.
    shares: of the budget.
    settings: what the user chose.
    """

    def __init__(self, account: Account, shares: Plan, settings: Settings):
        self._account, self._settings = account, settings
        self.shares = shares
        self._rng = np.random.default_rng(settings.seed)
        self._clock = Clock()
        self._attempts: list[Attempt] = []
        self._learner: Learner | None = None

    def begin(self, old: Charted | None) -> None:
        """Find the posterior, by an old surrogate or by a search."""
        account, rng, shares = self._account, self._rng, self.shares
        origin, chart = account.target.start, None
        if old is not None:
            chart, thetas = try_old(account, rng, old, 2 * shares.chains)
            origin = np.mean(thetas, axis=0)
        if chart is None:
            with_hessian = shares.hessian > 0
            located = locate(account, rng, shares.search, with_hessian, origin)
            frame = settle(account, located, rng, shares.settling, shares.chains)
            chart = Chart((frame,))
        else:
            located = located_at(account.paid, chart)
        self._learn_first(chart, located)

    def begin_with_paid(self) -> None:
        """Begin with points that another run has paid for."""
        chart = chart_of(self._account.paid)
        self._learn_first(chart, located_at(self._account.paid, chart))

    def _learn_first(self, chart: Chart, located: Located) -> None:
        target = self._account.target
        size = self._settings.num_features
        size = default_num_features(target.dim) if size is None else size
        self._clock.lap("search")
        self._located = located
        self._learner = Learner(self._account, chart, size, self._rng)
        self._rounds = Rounds(
            self._learner, self.shares.chains, self._rng, target.parameters
        )
        self._learner.learn(redraw=True)

    def go(self) -> None:
        """Train, draw and check until the draws are good or the calls are spent."""
        while not self._attempts or self._goes_on():
            self._attempt()

    def _goes_on(self) -> bool:
        """Whether no attempt is good yet and calls are left for another."""
        shares = self.shares
        spare = self._account.left - shares.correcting - shares.checking
        is_good = self._attempts[-1].verdict.status == "good"
        goes_on = not is_good and spare >= LEAST_ROUNDS * shares.chains
        if goes_on:
            reason = self._attempts[-1].verdict.reasons[0]
            LOG.info("not good yet, training goes on: %s", reason)
        return goes_on

    def _attempt(self) -> None:
        learner, rounds, shares = self._learner, self._rounds, self.shares
        assert learner is not None
        account, rng, target = self._account, self._rng, self._account.target
        if self._attempts and self._attempts[-1].checked is not None:
            # The checked draws are lessons now, and better places to go on from. Those
            # of the last attempt: its surrogate, which weighs them, is still there.
            rounds.restart(*self._attempts[-1].checked[:4])
            learner.try_harder()
            learner.reframe(*rounds.recent())
            learner.learn(redraw=True)
        train(rounds, shares)
        repair(rng, rounds, shares, self._settings.chains)
        self._clock.lap("training")
        frozen = self._draw(learner)
        number = min(shares.checking, account.left - shares.correcting)
        if number < FEWEST_CHECKS:
            verdict = unchecked("no call of the model was left to check its draws")
            self._attempts.append(Attempt(copy.copy(learner), frozen, None, verdict))
            return
        flat = learner.chart.to_theta(frozen.x.reshape(-1, target.dim))
        some = choose(rng, target.parameters, flat, number - number // 4)
        hot = rounds.hot_draws(number // 4)
        checked = check(learner, target.parameters, some, hot)
        verdict = judge_run(self._located, rounds, frozen, checked, target)
        self._attempts.append(Attempt(copy.copy(learner), frozen, checked, verdict))
        self._clock.lap("checking")

    def _draw(self, learner: Learner) -> Frozen:
        starts = starts_of(self._rng, self._rounds, self._settings.chains)
        step_size, number = self._rounds.step_size, self._settings.draws
        residual = learner.residual()
        watch = self._account.watch
        watch.phase("drawing")
        frozen = draw(self._rng, residual, starts, step_size, number, watch)
        self._clock.lap("drawing")
        return frozen

    def finish(self) -> Posterior:
        """The best attempt, corrected as was asked for."""
        best = min(self._attempts, key=_badness)
        learner, frozen, checked, verdict = best
        free = self._unconstrained(best)
        rung = self._settings.correction
        if checked is None:
            return self._posterior(best, free, "none", verdict)
        if rung == "auto":
            rung = best_rung(checked, free.reshape(-1, free.shape[-1]))
        drawn = free
        if rung == "importance":
            drawn = importance_draws(self._rng, checked, frozen.energy.shape)
        elif rung == "exact":
            number = min(self.shares.correcting, self._account.left)
            chains = self._settings.chains
            made = exact_draws(self._rng, learner, frozen, checked, number, chains)
            drawn, verdict = made.theta, judge_corrected(verdict, made)
        self._clock.lap("correcting")
        return self._posterior(best, drawn, rung, verdict)

    def cut_short(self) -> Posterior:
        """What there is when the user ends the run: draws, and an honest verdict."""
        if self._attempts:
            best = min(self._attempts, key=_badness)
            status, reasons, statistics = best.verdict
            reasons = ("the run was interrupted", *reasons)
            status = max(status, "caution", key=RANKS.index)
            verdict = Verdict(status, reasons, statistics)
            return self._posterior(best, self._unconstrained(best), "none", verdict)
        if self._learner is None:
            raise RunFailure(
                "the run was interrupted during the search: there is nothing to draw "
                "from yet",
                paid=self._account.paid,
            )
        self._learner.learn(redraw=False)
        frozen = self._draw(self._learner)
        verdict = unchecked("the run was interrupted before its draws were checked")
        attempt = Attempt(self._learner, frozen, None, verdict)
        return self._posterior(attempt, self._unconstrained(attempt), "none", verdict)

    def _unconstrained(self, attempt: Attempt) -> np.ndarray:
        x = attempt.frozen.x
        flat = attempt.learner.chart.to_theta(x.reshape(-1, x.shape[-1]))
        return flat.reshape(x.shape)

    def _posterior(
        self, attempt: Attempt, drawn: np.ndarray, rung: str, verdict: Verdict
    ) -> Posterior:
        account, learner = self._account, attempt.learner
        flat = drawn.reshape(-1, drawn.shape[-1])
        if rung == "none":
            # Known since they were drawn, up to the volume of the coordinates.
            log_volumes = learner.chart.locate(flat)[1]
            energies = attempt.frozen.energy.ravel() + log_volumes
        else:
            energies = learner.energies(flat)
        return Posterior(
            parameters=account.target.parameters,
            unconstrained=drawn,
            stats={"surrogate_lp": -energies.reshape(drawn.shape[:2])},
            costs=dict(account.costs),
            seconds=self._clock.seconds,
            surrogate=LogDensity(learner.potential),
            warnings=verdict.reasons,
            verdict=verdict,
            correction=rung,
            check=attempt.checked,
            free=self._unconstrained(attempt),
            paid=account.paid,
            history=tuple(account.watch.status.history),
            settings={"budget": account.budget, **self._settings._asdict()},
        )


def unchecked(reason: str) -> Verdict:
    """Draws that nobody has looked at are not to be trusted."""
    return Verdict("bad", (reason,), {})


def chart_of(paid: Paid) -> Chart:
    """Coordinates from points alone: the Gaussian of least Fisher divergence."""
    usable = paid.is_finite & ~np.isin(paid.phase, AWAY)
    usable = usable if usable.any() else paid.is_finite
    theta, grad = paid.theta[usable], paid.grad[usable]
    # The later points know better where the mass is.
    theta, grad = theta[-max(len(theta) // 2, 1) :], grad[-max(len(grad) // 2, 1) :]
    spread = np.maximum(theta.std(axis=0), 1e-8)
    frame = Frame(theta.mean(axis=0), np.diag(spread))
    x = frame.to_x(theta)
    whitened = frame.grad_to_x(x, grad)
    return Chart((frame.then(refit(x, whitened, influence(x, whitened))),))


def _badness(attempt: Attempt) -> tuple[int, float]:
    efficiency = attempt.checked.efficiency if attempt.checked is not None else 0.0
    return RANKS.index(attempt.verdict.status), -efficiency


def warn_if_bad(posterior: Posterior) -> None:
    """Say aloud what a user must not miss."""
    verdict = posterior.verdict
    if verdict is not None and verdict.status == "bad":
        warnings.warn(f"verdict bad: {verdict.reasons[0]}", stacklevel=3)


def outcome(posterior: Posterior) -> str:
    """How a run ended, in a line."""
    verdict = posterior.verdict
    assert verdict is not None
    reason = f" ({verdict.reasons[0]})" if verdict.reasons else ""
    return f"verdict {verdict.status}{reason}"

"""The default sampler: a budget of calls of the model in, draws and a verdict out."""

import copy
import time
import warnings
from typing import Any, NamedTuple

import numpy as np

from vhmc.core.chart import Chart
from vhmc.core.residual import Charted
from vhmc.methods.learner import AWAY, Learner, default_num_features
from vhmc.methods.locate import Located, locate
from vhmc.methods.rounds import Rounds
from vhmc.methods.settle import settle
from vhmc.runs.check import Check, check, choose
from vhmc.runs.corrections import best_rung, exact_draws, importance_draws
from vhmc.runs.frozen import Frozen, draw, some_draws
from vhmc.runs.log_density import LogDensity
from vhmc.runs.plan import Plan, plan
from vhmc.runs.posterior import Posterior
from vhmc.runs.verdict import RANKS, Verdict, judge, mode_concerns
from vhmc.runs.warm_start import located_at, old_surrogate, try_old
from vhmc.targets.account import Account
from vhmc.targets.target import Target

REDRAWN = (2, 4, 8, 16, 24)
"""Rounds after which frame and nodes are drawn anew."""
DRIFTED = 0.05
"""Divergence by dimension at which the frame is refitted between these rounds."""
REPAIR_SHARE = 0.3
"""Of the training calls, kept for draws of the surrogate itself."""
LAST = 4
"""Rounds whose reports say how well the surrogate does now."""
LEAST_REPAIRS = 3
"""Rounds of repair for which training leaves calls even if the budget is small."""
LEAST_ROUNDS = 8
"""Rounds' worth of calls below which another attempt is not begun."""
EARLIEST = 8
"""Rounds before training may stop early."""
EASY = {"explorers": 0.96, "score_error": 0.02, "excess": 1.0, "rhat": 1.2}
"""What the last rounds must show to stop early: acceptance, score error, excess of the
audits, and R-hat of the chains."""


def sample(
    target: Target,
    budget: int = 1000,
    *,
    draws: int = 1000,
    chains: int = 8,
    correction: str = "auto",
    seed: int = 0,
    num_features: int | None = None,
    warm_start: Posterior | LogDensity | None = None,
) -> Posterior:
    """Sample a posterior within a budget of calls of the model.

    target: the model.
    budget: calls of the model, at most: one value, one gradient or both together is
        one. Whatever is not needed for a good verdict is not spent.
    draws: draws of every chain; the exact rung returns as many as it could pay for.
    chains: chains on the surrogate, run in one batch.
    correction: `none` (draws of the surrogate), `importance` (checked draws, resampled
        by their weights), `exact` (delayed acceptance, one call a draw, for which 40 %
        of the budget are set aside) or `auto`: `none` or `importance`, whichever has
        the smaller estimated error.
    seed: of all random numbers of the run.
    num_features: nodes of the network, at most; 0 leaves the Gaussian of least Fisher
        divergence.
    warm_start: a posterior of a related model (new data, another prior), or its
        surrogate. If the model confirms at a few of its draws that the posterior is
        there, its coordinates are used and nothing is searched for, other modes
        neither; if not, the search begins where it was.
    """
    shares = plan(target, budget, correction)
    old = None if warm_start is None else old_surrogate(warm_start, target)
    for name, number, least in (("draws", draws, 4), ("chains", chains, 1)):
        if number < least:
            raise ValueError(f"{name} must be at least {least}, got {number}")
    if num_features is not None and num_features < 0:
        raise ValueError(f"num_features must be at least 0, got {num_features}")
    rng = np.random.default_rng(seed)
    account = Account(target, budget)
    clock = Clock()

    chart, located = _begin(account, rng, shares, old)
    clock.lap("search")
    size = default_num_features(target.dim) if num_features is None else num_features
    learner = Learner(account, chart, size, rng)
    rounds = Rounds(learner, shares.chains, rng, target.parameters)
    learner.learn(redraw=True)
    attempts: list[Attempt] = []
    while not attempts or _goes_on(attempts, account, shares):
        if attempts:
            # The checked draws are lessons now, and better places to go on from. Those
            # of the last attempt: its surrogate, which weighs them, is still there.
            rounds.restart(*attempts[-1].checked[:4])
            learner.reframe(*rounds.recent())
            learner.learn(redraw=True)
        train(rounds, shares)
        repair(rng, rounds, shares, chains)
        clock.lap("training")
        starts = _starts(rng, rounds, chains)
        frozen = draw(rng, learner.residual(), starts, rounds.step_size, draws)
        clock.lap("drawing")
        number = min(shares.checking, account.left - shares.correcting)
        flat = learner.chart.to_theta(frozen.x.reshape(-1, target.dim))
        some = choose(rng, target.parameters, flat, number - number // 4)
        hot = rounds.hot_draws(number // 4)
        checked = check(learner, target.parameters, some, hot)
        verdict = _judge(located, rounds, frozen, checked, target)
        attempts.append(Attempt(copy.copy(learner), frozen, checked, verdict))
        clock.lap("checking")

    learner, frozen, checked, verdict = min(attempts, key=_badness)
    flat = learner.chart.to_theta(frozen.x.reshape(-1, target.dim))
    free = flat.reshape(frozen.x.shape)
    rung = best_rung(checked, flat) if correction == "auto" else correction
    unconstrained = free
    if rung == "importance":
        unconstrained = importance_draws(rng, checked, frozen.energy.shape)
    elif rung == "exact":
        exact = exact_draws(rng, learner, frozen, checked, shares.correcting, chains)
        unconstrained = exact.theta
    energies = learner.energies(unconstrained.reshape(-1, target.dim))
    clock.lap("correcting")
    if verdict.status == "bad":
        warnings.warn(f"verdict bad: {verdict.reasons[0]}", stacklevel=2)
    return Posterior(
        parameters=target.parameters,
        unconstrained=unconstrained,
        stats={"surrogate_lp": -energies.reshape(unconstrained.shape[:2])},
        costs=account.costs,
        seconds=clock.seconds,
        surrogate=LogDensity(learner.potential),
        warnings=verdict.reasons,
        verdict=verdict,
        correction=rung,
        check=checked,
        free=free,
        paid=account.paid,
    )


def _begin(
    account: Account, rng: np.random.Generator, shares: Plan, old: Charted | None
) -> tuple[Chart, Located]:
    """Where the posterior is, by an old surrogate or by a search."""
    origin = account.target.start
    if old is not None:
        chart, thetas = try_old(account, rng, old, 2 * shares.chains)
        if chart is not None:
            return chart, located_at(account.paid, chart)
        origin = np.mean(thetas, axis=0)
    located = locate(account, rng, shares.search, shares.hessian > 0, origin)
    frame = settle(account, located, rng, shares.settling, shares.chains)
    return Chart((frame,)), located


class Attempt(NamedTuple):
    """A frozen surrogate with its draws and what the truth says of them."""

    learner: Learner
    frozen: Frozen
    checked: Check
    verdict: Verdict


def _badness(attempt: Attempt) -> tuple[int, float]:
    status = attempt.verdict.status
    return RANKS.index(status), -attempt.checked.efficiency


def _goes_on(attempts: list[Attempt], account: Account, shares: Plan) -> bool:
    """Whether no attempt is good yet and calls are left for another."""
    spare = account.left - shares.correcting - shares.checking
    is_good = attempts[-1].verdict.status == "good"
    return not is_good and spare >= LEAST_ROUNDS * shares.chains


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


def train(rounds: Rounds, shares: Plan) -> None:
    """Rounds until the surrogate predicts what it has not seen, or calls run out."""
    learner, account = rounds.learner, rounds.learner.account
    reserve = shares.checking + shares.correcting + _repairs(shares)
    total = len(rounds.reports) + max(0, account.left - reserve) // shares.chains
    since = len(rounds.reports)
    while account.left - reserve >= shares.chains:
        count = len(rounds.reports) + 1
        is_late = count > total / 2
        # Late explorers go farther: the surrogate has earned it, and holes are rare.
        rounds.advance(
            shares.chains * 3 // 4 if is_late else shares.chains // 2,
            40 if is_late else 10,
        )
        recent = rounds.recent()
        redraw = count in REDRAWN and count <= total / 2
        if not redraw and count % 2 == 0 and count <= 0.8 * total:
            redraw = learner.drift(*recent) > DRIFTED
        if redraw:
            learner.reframe(*recent)
        # Late rounds add little to what is known: every other one learns for two.
        if redraw or not is_late or count % 2 == 0:
            learner.learn(redraw=redraw, choose=count % 8 == 0)
        if count - since >= EARLIEST and _is_easy(rounds):
            return


def _repairs(shares: Plan) -> int:
    """Calls that training leaves for repair: three rounds of it at least, if it can.

    Few lessons leave many holes, so a small budget needs them most.
    """
    least = min(LEAST_REPAIRS * 2 * shares.chains, shares.training * 2 // 3)
    return max(int(REPAIR_SHARE * shares.training), least)


def _is_easy(rounds: Rounds) -> bool:
    last = rounds.reports[-LAST:]
    explorers = np.mean([report.explorers for report in last])
    score_error = np.mean([report.score_error for report in last])
    excess = np.max([report.excess for report in last])
    return bool(
        explorers > EASY["explorers"]
        and score_error < EASY["score_error"]
        and excess < EASY["excess"]
        and rounds.rhat() < EASY["rhat"]
    )


def repair(rng: np.random.Generator, rounds: Rounds, shares: Plan, chains: int) -> None:
    """Look where the surrogate's own draws go, until they hold or calls run out."""
    learner, account = rounds.learner, rounds.learner.account
    reserve = shares.checking + shares.correcting
    while account.left - reserve >= 2 * shares.chains:
        starts = _starts(rng, rounds, chains)
        pool = some_draws(rng, learner.residual(), starts, rounds.step_size)
        is_whole = rounds.repair(2 * shares.chains, pool)
        learner.learn(redraw=False)
        if is_whole and _is_easy(rounds):
            return


def _starts(rng: np.random.Generator, rounds: Rounds, chains: int) -> np.ndarray:
    """Dispersed starts: typical points from all over the training."""
    lessons = rounds.learner.lessons()
    pool = lessons.x[lessons.is_typical]
    if not len(pool):
        pool = rounds.learner.chart.to_x(rounds.states.theta)
    return pool[rng.choice(len(pool), chains, replace=len(pool) < chains)]


def _judge(
    located: Located, rounds: Rounds, frozen: Frozen, checked: Check, target: Target
) -> Verdict:
    learner = rounds.learner
    paid = learner.account.paid
    asked = ~np.isin(paid.phase, AWAY)
    last = rounds.reports[-LAST:]
    worst = int(np.argmax(checked.parameter_errors))
    statistics: dict[str, Any] = {
        "efficiency": checked.efficiency,
        "delayed_acceptance": checked.delayed_acceptance,
        "spread": checked.spread,
        "low_share": checked.low_share,
        "high": checked.high,
        "pareto_k": checked.pareto_k,
        "wide_efficiency": checked.wide_efficiency,
        "score_error": checked.score_error,
        "mean_error": float(np.max(np.abs(checked.mean_errors))),
        "sd_error": float(np.max(np.abs(checked.sd_errors))),
        "mean_shift": float(np.max(np.abs(checked.mean_shifts))),
        "sd_shift": float(np.max(np.abs(checked.sd_shifts))),
        "rhat": frozen.rhat,
        "ess": frozen.ess,
        "worth": frozen.ess / frozen.energy.size,
        "num_checks": len(checked.theta),
        "failed_share": float(np.mean(~paid.is_finite[asked])),
        "worst_parameter": target.parameters.label(worst),
        "parameter_errors": checked.parameter_errors,
        "surrogate_acceptance": frozen.acceptance,
    }
    if last:
        statistics["explorers"] = float(np.mean([r.explorers for r in last]))
        statistics["shooters"] = float(np.mean([r.shooters for r in last]))
    draws = frozen.x.reshape(-1, learner.dim)
    thinned = draws[:: max(1, len(draws) // 1000)]
    ends = learner.chart.to_x(located.ends)
    if located.has_mode:
        energies, is_finished = located.energies, located.is_finished
        concerns = mode_concerns(ends, energies, is_finished, thinned)
        return judge(statistics, concerns)
    # Chains may sit in the neck of a funnel, where a surrogate does nearly well.
    status = "caution" if judge(statistics, []).status == "good" else "bad"
    message = (
        "the search found no mode: the energy may fall without end, as in a centred "
        "hierarchical model; use its non-centred form"
    )
    return judge(statistics, [(status, message)])

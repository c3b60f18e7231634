"""When the rounds of the default sampler end, refit, repair and start."""

import numpy as np

from vhmc.sampler.drawing import some_draws
from vhmc.sampler.plan import Plan
from vhmc.sampler.rounds import Rounds

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
EARLIEST = 8
"""Rounds before training may stop early."""
EASY = {"explorers": 0.96, "score_error": 0.02, "excess": 1.0, "rhat": 1.2}
"""What the last rounds must show to stop early: acceptance, score error, excess of the
audits, and R-hat of the chains."""
EASY_PLAIN = {"explorers": 0.8, "excess": 1.0}
"""The same where no network is needed. Explorers are independent draws then, so R-hat
of a few rounds would only measure chance."""


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
        earliest = LAST if learner.is_plain else EARLIEST
        if count - since >= earliest and _is_easy(rounds):
            return


def _repairs(shares: Plan) -> int:
    """Calls that training leaves for repair: three rounds of it at least, if it can.

    Few lessons leave many holes, so a small budget needs them most.
    """
    least = min(LEAST_REPAIRS * 2 * shares.chains, shares.training * 2 // 3)
    return max(int(REPAIR_SHARE * shares.training), least)


def _is_easy(rounds: Rounds) -> bool:
    last = rounds.reports[-LAST:]
    if not last:
        return False
    explorers = np.mean([report.explorers for report in last])
    score_error = np.mean([report.score_error for report in last])
    excess = np.max([report.excess for report in last])
    if rounds.learner.is_plain:  # more rounds would have nothing to teach
        return bool(
            explorers > EASY_PLAIN["explorers"] and excess < EASY_PLAIN["excess"]
        )
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
        starts = starts_of(rng, rounds, chains)
        pool = some_draws(rng, learner.residual(), starts, rounds.step_size)
        is_whole = rounds.repair(2 * shares.chains, pool)
        learner.learn(redraw=False)
        if is_whole and _is_easy(rounds):
            return


def starts_of(rng: np.random.Generator, rounds: Rounds, chains: int) -> np.ndarray:
    """Dispersed starts: typical points from all over the training."""
    lessons = rounds.learner.lessons()
    pool = lessons.x[lessons.is_typical]
    if not len(pool):
        pool = rounds.learner.chart.to_x(rounds.states.theta)
    return pool[rng.choice(len(pool), chains, replace=len(pool) < chains)]

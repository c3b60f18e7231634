"""The training loop: when to refit the surrogate, when to repair it, when to stop."""

from collections.abc import Callable

import numpy as np

from vhmc.sampler.drawing import some_draws
from vhmc.sampler.modes.part import Evaluates
from vhmc.sampler.plan import Plan
from vhmc.sampler.rounds import RoundReport, Rounds

REFITTED = (2, 4, 8, 16, 24)
"""Rounds after which the map is refitted and the nodes are drawn again."""
DRIFTED = 0.05
"""Divergence by dimension at which the map is refitted between these rounds."""
REPAIR_FRACTION = 0.3
"""Of the evaluations for training, kept for draws of the surrogate itself."""
LEAST_REPAIRS = 3
"""Rounds of repair for which training leaves evaluations even on a small budget."""
LAST = 4
"""Rounds whose reports say how well the surrogate does now."""
EARLIEST = 8
"""Rounds before training may stop early; `LAST` where no residual is needed."""
EASY = {"delayed_acceptance": 0.96, "score_error": 0.02, "excess": 1.0, "rhat": 1.2}
"""What the last rounds must show to stop early: least acceptance of delayed-acceptance
proposals, largest score error, excess at tempered proposals, R-hat of the chains."""
EASY_MAP = {"delayed_acceptance": 0.8, "excess": 1.0}
"""The same where the map suffices. Proposals are independent draws then, so R-hat of a
few rounds would only measure chance."""


def num_rounds(rounds: Rounds, evaluator: Evaluates, plan: Plan) -> int:
    """Rounds made so far, and those that the budget still allows."""
    left = max(0, evaluator.left - plan.reserve)
    if not rounds.trainer.surrogate.transport.is_skewed:
        left -= min(_repairs(plan), left // 2)
    return len(rounds.reports) + left // plan.chains


def train(
    rounds: Rounds,
    evaluator: Evaluates,
    plan: Plan,
    total: int,
    share: float = 1.0,
    on_round: Callable[[RoundReport], None] = lambda report: None,
) -> bool:
    """Rounds until the surrogate predicts what it has not seen; returns whether.

    total: rounds that the budget allows, those made so far included.
    share: of them after which to return in any case.
    """
    trainer = rounds.trainer
    begun = len(rounds.reports)
    while len(rounds.reports) < int(share * total):
        count = len(rounds.reports) + 1
        is_late = count > total / 2
        # Late proposals go farther: the surrogate is better, and its holes are rare.
        num_delayed = plan.chains * 3 // 4 if is_late else plan.chains // 2
        on_round(rounds.advance(num_delayed, 40 if is_late else 10))
        recent = rounds.recent()
        is_refitted = count in REFITTED and count <= total / 2
        if not is_refitted and count % 2 == 0 and count <= 0.8 * total:
            is_refitted = trainer.drift(*recent) > DRIFTED
        if is_refitted:
            trainer.refit(evaluator.log, *recent)
        elif not is_late or count % 2 == 0:  # late rounds add little: one fit for two
            trainer.update(evaluator.log, choose_anew=count % 8 == 0)
        earliest = LAST if trainer.is_map_sufficient else EARLIEST
        if count - begun >= earliest and _is_easy(rounds):
            return True
    return False


def repair(
    rng: np.random.Generator,
    rounds: Rounds,
    evaluator: Evaluates,
    plan: Plan,
    num_chains: int,
) -> None:
    """Evaluate the surrogate's own draws until it holds there, or the budget ends.

    num_chains: chains on the surrogate.
    """
    trainer = rounds.trainer
    while evaluator.left - plan.reserve >= 2 * plan.chains:
        starts = rounds.dispersed_starts(num_chains)
        pool = some_draws(rng, trainer.surrogate, starts, rounds.step_size)
        is_sound = rounds.repair(2 * plan.chains, pool)
        trainer.update(evaluator.log)
        if is_sound and _is_easy(rounds):
            return


def _repairs(plan: Plan) -> int:
    """Evaluations that training leaves for repair: three rounds of it at least.

    Few points leave many holes, so a small budget needs them most.
    """
    least = min(LEAST_REPAIRS * 2 * plan.chains, plan.training * 2 // 3)
    return max(int(REPAIR_FRACTION * plan.training), least)


def _is_easy(rounds: Rounds) -> bool:
    """Whether the last rounds show that more would have nothing to teach."""
    last = rounds.reports[-LAST:]
    if not last:
        return False
    acceptance = np.mean([report.delayed_acceptance for report in last])
    score_error = np.mean([report.score_error for report in last])
    excess = np.max([report.excess for report in last])
    if rounds.trainer.is_map_sufficient:
        return bool(
            acceptance > EASY_MAP["delayed_acceptance"] and excess < EASY_MAP["excess"]
        )
    return bool(
        acceptance > EASY["delayed_acceptance"]
        and score_error < EASY["score_error"]
        and excess < EASY["excess"]
        and rounds.rhat() < EASY["rhat"]
    )

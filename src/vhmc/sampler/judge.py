"""All that a run knows of itself, weighed into its verdict."""

from typing import Any

import numpy as np

from vhmc.evaluation.target import Target
from vhmc.numerics.effective_size import bulk_ess, split_rhat
from vhmc.sampler.check import Check
from vhmc.sampler.correction import Exact
from vhmc.sampler.drawing import Frozen
from vhmc.sampler.locate import Located
from vhmc.sampler.rounds import Rounds
from vhmc.sampler.training import LAST
from vhmc.sampler.verdict import Verdict, judge, judge_exact, mode_concerns
from vhmc.surrogate.trainer import AWAY


def judge_run(
    located: Located, rounds: Rounds, frozen: Frozen, checked: Check, target: Target
) -> Verdict:
    """Judge draws by the truth at some of them, and by how they came about."""
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
        statistics["missed_modes"] = len(concerns)
        return judge(statistics, concerns)
    # Chains may sit in the neck of a funnel, where a surrogate does nearly well.
    status = "caution" if judge(statistics, []).status == "good" else "bad"
    message = (
        "the search found no mode: the energy may fall without end, as in a centred "
        "hierarchical model; use its non-centred form"
    )
    return judge(statistics, [(status, message)])


def judge_corrected(verdict: Verdict, exact: Exact) -> Verdict:
    """Judge the draws of the exact rung by their own chains.

    verdict: on the surrogate.
    """
    is_long = exact.theta.shape[1] >= 4
    statistics = {
        "exact_rhat": float(np.max(split_rhat(exact.theta))) if is_long else np.inf,
        # Undefined where a coordinate does not move, which is as bad as can be.
        "exact_ess": float(np.nan_to_num(np.min(bulk_ess(exact.theta))))
        if is_long
        else 0.0,
        "exact_acceptance": exact.acceptance,
    }
    return judge_exact(verdict, statistics)

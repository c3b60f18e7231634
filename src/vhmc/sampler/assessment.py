"""Collect the statistics of a run, on which the verdict is judged."""

from collections.abc import Sequence

import numpy as np
from scipy.spatial.distance import cdist

from vhmc.evaluation.evaluator import EvaluationLog
from vhmc.evaluation.space import Space
from vhmc.evaluation.user_code import NO_DENSITY
from vhmc.numerics.effective_size import worst_ess, worst_rhat
from vhmc.sampler.attempt import Attempt
from vhmc.sampler.locate import Modes
from vhmc.sampler.modes.look import Wide
from vhmc.sampler.modes.outside import outside
from vhmc.sampler.parameter_errors import error_bound
from vhmc.sampler.reasons import Concern
from vhmc.sampler.verdict import ExactStatistics, Statistics, Verdict, judge
from vhmc.surrogate.training_set import AWAY
from vhmc.transport.transport_map import TransportMap

HUB_REACH = 6.0
"""Latent places of hubs up to which a map along a graph is trusted to find modes."""
RESTING = 0.3
"""Slope at the end of a descent over its distance from the draws; on the slope of a
round posterior it is one, in another mode it is zero."""
NO_MODE = (
    "the search found no mode: the log density may grow without bound, as in a centred "
    "hierarchical model; use its non-centred form, or proper priors"
)
MISSED = (
    "no draw is in another mode that {number} of {total} descents ended in, {gap:.1f} "
    "nats below the highest log density; raise the budget, set init in the mode that "
    "is meant, or remove the symmetry"
)


def assess(
    attempt: Attempt,
    modes: Modes,
    wide: Sequence[Wide],
    log: EvaluationLog,
    labels: Sequence[str],
    space: Space,
    doubts: Sequence[Concern] = (),
) -> Verdict:
    """Judge draws of a surrogate by its checks, its training and the search.

    attempt: whose draws were checked.
    modes: ends of descents in no mode that was sampled, besides those in the first.
    wide: points of the widened posterior.
    labels: of the parameters.
    space: of the user's parameters.
    doubts: further ones.
    """
    surrogate, drawn, check, last = (
        attempt.surrogate,
        attempt.drawn,
        attempt.check,
        attempt.last,
    )
    assert check is not None
    # Maps that are still being found may well ask where the model has no answer.
    is_aimed = ~np.isin(log.phase, (*AWAY, "warm-up"))
    is_failed = (log.reason != "") & (log.reason != NO_DENSITY)
    transport = surrogate.heaviest.transport
    thinned = drawn.theta(surrogate).reshape(-1, surrogate.dim)
    thinned = transport.inverse(thinned[:: max(1, len(thinned) // 1000)])
    ends, known = comparable(transport, modes)
    concerns = missed_modes(ends, known, thinned) if modes.has_mode else []
    statistics = Statistics(
        importance_efficiency=check.importance_efficiency,
        tempered_efficiency=check.tempered_efficiency,
        independent_acceptance=check.independent_acceptance,
        log_weight_sd=check.log_weight_sd,
        hole_fraction=check.hole_fraction,
        largest_log_weight=check.largest_log_weight,
        # Far proposals are independent ones, if no round has made any.
        delayed_acceptance_rate=_mean([r.delayed_acceptance for r in last])
        if last
        else check.independent_acceptance,
        score_error=check.score_error,
        stein_mean_error=_worst(check.stein_mean_errors),
        stein_sd_error=_worst(check.stein_sd_errors),
        weighted_mean_error=_worst(check.weighted_mean_errors),
        weighted_sd_error=_worst(check.weighted_sd_errors),
        error_bound=error_bound(check, space, drawn.ess),
        rhat=drawn.rhat,
        ess_per_draw=drawn.ess_per_draw,
        ess=drawn.ess,
        num_checks=len(check.theta),
        mass_outside=min(float(outside(attempt, wide).mass.sum()), 1.0),
        failed_fraction=float(np.mean(is_failed[is_aimed])),
        pareto_k=check.pareto_k,
        single_trajectory_rate=_mean([r.single_trajectory for r in last]),
        surrogate_acceptance=drawn.acceptance,
        missed_modes=len(concerns),
        parameter_errors=check.parameter_errors,
        worst_parameter=labels[int(np.argmax(check.parameter_errors))],
    )
    resolves = transport.cliques is not None
    resolves |= surrogate.heaviest.residual.holds_everywhere
    if not modes.has_mode and not resolves:
        # A map along the model's graph resolves a funnel, and so does an energy with
        # effects at all scales. Else chains may sit in its neck, where a surrogate does
        # nearly well.
        status = "caution" if judge(statistics, []).status == "good" else "bad"
        concerns = [Concern(status, NO_MODE)]
    return judge(statistics, [*concerns, *doubts])


def exact_statistics(theta: np.ndarray, acceptance: float) -> ExactStatistics:
    """Of exact chains, shape (chain, draw, dim)."""
    return ExactStatistics(
        exact_rhat=worst_rhat(theta),
        exact_ess=worst_ess(theta),
        exact_acceptance=acceptance,
    )


def comparable(transport: TransportMap, modes: Modes) -> tuple[np.ndarray, Modes]:
    """Latent ends of descents, and modes with energies that can be compared.

    Ends of descents that held scales at different values are compared given these: in
    a map along the graph the other coordinates of all of them are close to zero, if
    they are in the mode that the map is of. Gradients become latent ones.
    """
    x, log_det = transport.inverse_and_log_det(modes.ends)
    if len(x):
        # Of the energy itself: a mode in the parameters is one in spite of the map.
        still = transport.pull_back(modes.ends, np.zeros_like(modes.grads))[1]
        slopes = transport.pull_back(modes.ends, modes.grads)[1] - still
        modes = modes._replace(grads=slopes)
    if not modes.held:
        return x, modes
    if transport.cliques is None:
        is_near = np.zeros(len(x), dtype=bool)  # no such map
    else:
        is_near = np.all(np.abs(x[:, transport.hubs]) < HUB_REACH, axis=1)
    given = list({*transport.hubs, *modes.held})
    energies = modes.energies - log_det - 0.5 * np.sum(x[:, given] ** 2, axis=1)
    x[:, given] = 0.0
    modes.grads[:, given] = 0.0
    return x[is_near], modes._replace(
        ends=modes.ends[is_near],
        energies=energies[is_near],
        grads=modes.grads[is_near],
        arrived=modes.arrived[is_near],
    )


def missed_modes(ends: np.ndarray, modes: Modes, draws: np.ndarray) -> list[Concern]:
    """Other modes in which descents ended, and near which there is no draw.

    A descent that was cut off on the slope of the mode that the draws are in is none,
    nor is one that has not arrived.

    ends, draws: latent, where the posterior is about round.
    modes: with latent gradients.
    """
    if not len(ends):
        return []
    dim = ends.shape[1]
    spacing = cdist(draws[::2], draws[1::2]).min(axis=1)
    distance = cdist(ends, draws).min(axis=1)
    is_far = distance > max(4 * np.quantile(spacing, 0.99), 2.0)
    is_resting = np.linalg.norm(modes.grads, axis=1) < RESTING * distance
    lowest = modes.energies.min()
    # A mode that much higher holds a negligible mass unless it is vastly wider.
    is_low = modes.energies < lowest + dim / 2 + 8
    is_end = modes.arrived | bool(modes.held)
    is_missed = is_far & is_low & is_resting & is_end
    if not is_missed.any():
        return []
    gap = float(np.min(modes.energies[is_missed]) - lowest)
    message = MISSED.format(number=is_missed.sum(), total=len(ends), gap=gap)
    return [Concern("bad" if gap < 3 else "caution", message)]


def _mean(rates: list[float]) -> float:
    """Not a number, and so a bad verdict, where there was no round."""
    return float(np.mean(rates)) if rates else np.nan


def _worst(errors: np.ndarray) -> float:
    return float(np.max(np.abs(errors)))

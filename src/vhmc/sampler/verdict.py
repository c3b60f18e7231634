"""The verdict: how far draws can be trusted, in one word and the reasons for it.

Limits are fitted to true errors by benchmarks/fit_verdict.py.
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from vhmc.report.cards import verdict_card
from vhmc.sampler.reasons import (
    EXACT,
    FAILED,
    FEW,
    FIT,
    MASS,
    MIXING,
    MOST_REASONS,
    RANKS,
    Circumstances,
    Concern,
    Symptom,
    reasons,
)

FEWEST_CHECKS = 50
"""Checked draws below which no verdict is good. A budget that gives fewer has a short
look, too: with 50 at 420 evaluations 3 of 14 good verdicts of the verdict's benchmark
were off by half an sd or half of one, by mass that had not been met."""
MUCH_OUTSIDE = 0.02
"""Mass outside that is not to be missed."""
HIGH, LOW = 1, -1
"""Whether high or low values of a statistic are bad."""


class Limit(NamedTuple):
    """Values of a statistic beyond which draws are doubtful, and bad.

    sign: `HIGH` or `LOW`.
    cause: that such a value speaks of (`reasons`).
    words: the value, with a place for it.
    """

    sign: int
    caution: float
    bad: float
    cause: str
    words: str

    def rank(self, value: float) -> int:
        """Place in `RANKS`; a value that is not a number is bad."""
        if not self.sign * value <= self.sign * self.bad:
            return 2
        return 0 if self.sign * value <= self.sign * self.caution else 1

    def lacking(self, value: float) -> float:
        """Factor from a value beyond the limit to the limit."""
        high, low = (value, self.caution)[:: self.sign]
        return float(high / max(low, 1e-300))


def limit(sign: int, caution: float, bad: float, cause: str, words: str) -> Any:
    """A field of a record of statistics that the verdict depends on."""
    metadata = {"limit": Limit(sign, caution, bad, cause, words)}
    return dataclasses.field(metadata=metadata)


@dataclass(frozen=True, kw_only=True)
class Statistics:
    r"""What the verdict rests on: every field with a limit must be given.

    With $w = e^{V - U}$ the importance weights of checked draws:

    importance_efficiency: $E[w]^2 / E[w^2]$.
    tempered_efficiency: the same as draws of the tempered surrogate see it.
    independent_acceptance: mean of $\min(1, w_j / w_i)$ over pairs of draws.
    log_weight_sd: standard deviation of $\log w$.
    hole_fraction: fraction of draws where the surrogate is too low by far.
    largest_log_weight: how far the largest $\log w$ is above the median.
    delayed_acceptance_rate: of delayed-acceptance proposals in the last rounds.
    score_error: mean squared score error by dimension.
    stein_mean_error, stein_sd_error: worst errors of means, in posterior sd, and
        relative errors of sds, to first order from the score errors.
    weighted_mean_error, weighted_sd_error: the same from the importance weights.
    error_bound: the largest bound of an error by number (`Verdict.parameters`).
    rhat, ess: of the worst coordinate of chains on the surrogate.
    ess_per_draw: the latter by the number of draws.
    num_checks: checked draws.
    mass_outside: share of the mass where the surrogate has next to none, by points of
        the widened posterior.
    failed_fraction: of the evaluations away from the search; where the density is zero
        the model has not failed.
    pareto_k: shape of the weights' tail.
    single_trajectory_rate: acceptance of single-trajectory proposals.
    surrogate_acceptance: of chains on the surrogate.
    missed_modes: 1 if the search found a mode that no draw visited, else 0.
    parameter_errors: root mean squared score errors in posterior sd, by parameter.
    worst_parameter: where they are largest.
    """

    importance_efficiency: float = limit(
        *(LOW, 0.57, 0.4), FIT, "importance efficiency {value:.2f}"
    )
    tempered_efficiency: float = limit(
        *(LOW, 0.34, 0.02),
        MASS,
        "importance efficiency {value:.2f} by draws of the tempered surrogate",
    )
    independent_acceptance: float = limit(
        *(LOW, 0.8, 0.6),
        FIT,
        "an independence sampler would accept {value:.0%} of the draws",
    )
    log_weight_sd: float = limit(
        *(HIGH, 0.5, 2.0), FIT, "log weights with an sd of {value:.2g} nats"
    )
    hole_fraction: float = limit(
        *(HIGH, 0.005, 0.05),
        FIT,
        "{value:.1%} of the draws where the surrogate is far too low",
    )
    largest_log_weight: float = limit(
        *(HIGH, 2.9, 5.0),
        MASS,
        "a largest log weight {value:.1f} nats above the median",
    )
    delayed_acceptance_rate: float = limit(
        *(LOW, 0.75, 0.45),
        FIT,
        "{value:.0%} of delayed-acceptance proposals accepted",
    )
    score_error: float = limit(
        *(HIGH, 0.53, 3.0), FIT, "squared score error {value:.2g} by dimension"
    )
    stein_mean_error: float = limit(
        *(HIGH, 0.147, 0.5), FIT, "a mean off by {value:.2g} sd by score errors"
    )
    stein_sd_error: float = limit(
        *(HIGH, 0.08, 0.5), FIT, "an sd off by {value:.2g} of itself by score errors"
    )
    weighted_mean_error: float = limit(
        *(HIGH, 0.145, 0.4), FIT, "a mean off by {value:.2g} sd by importance weights"
    )
    weighted_sd_error: float = limit(
        *(HIGH, 0.15, 0.5),
        FIT,
        "an sd off by {value:.2g} of itself by importance weights",
    )
    error_bound: float = limit(
        *(HIGH, 0.4, 1.0), FIT, "a mean or sd known to {value:.2g} sd only"
    )
    rhat: float = limit(*(HIGH, 1.02, 1.1), MIXING, "R-hat {value:.3g}")
    ess_per_draw: float = limit(
        *(LOW, 0.1, 0.005), MIXING, "effective sample size {value:.1%} of the draws"
    )
    ess: float = limit(*(LOW, 200.0, 20.0), MIXING, "effective sample size {value:.0f}")
    num_checks: float = limit(
        *(LOW, FEWEST_CHECKS, 8.0),
        FEW,
        f"only {{value:.0f}} checked draws to judge by, of {FEWEST_CHECKS} needed",
    )
    mass_outside: float = limit(
        *(HIGH, MUCH_OUTSIDE, 0.1), MASS, "{value:.0%} of it lies far outside of them"
    )
    failed_fraction: float = limit(
        *(HIGH, 0.02, 0.5), FAILED, "no finite answer at {value:.1%} of the points"
    )
    pareto_k: float
    single_trajectory_rate: float
    surrogate_acceptance: float
    missed_modes: int
    parameter_errors: np.ndarray
    worst_parameter: str


@dataclass(frozen=True, kw_only=True)
class ExactStatistics:
    """What the verdict on draws of the exact correction rests on.

    exact_rhat, exact_ess: of the worst coordinate of their chains.
    exact_acceptance: by the true energies.
    """

    exact_rhat: float = limit(*(HIGH, 1.1, 1.3), EXACT, "R-hat {value:.3g}")
    exact_ess: float = limit(
        *(LOW, 100.0, 20.0), EXACT, "effective sample size {value:.0f}"
    )
    exact_acceptance: float


ABOUT_SURROGATE = (
    "the draws are corrected, but their chains are slow and may not have visited all "
    "of the posterior: "
)
NOT_KNOWN = Circumstances()


class ParameterError(NamedTuple):
    """How far one number of the user's space is to be trusted.

    Of a number without moments, errors are those of normal scores of its ranks.

    mean_error: what the checks put the mean of the draws off by, in posterior sd.
    mean_bound: of the size of the mean's error; nine of ten keep it.
    sd_error, sd_bound: the same of the sd, relative.
    status: `good`, `caution` or `bad`.
    """

    name: str
    mean_error: float
    mean_bound: float
    sd_error: float
    sd_bound: float
    status: str


class Verdict(NamedTuple):
    """How far to trust the draws.

    status: `good`, `caution` or `bad`.
    reasons: what speaks against them, one sentence for each cause with what to do
        next, that first which brings the others; empty if nothing does.
    statistics: the numbers it rests on; none where no draw was checked.
    exact_statistics: of the exact correction, where that was made.
    concerns: doubts that are not among the statistics.
    parameters: errors of every number of the user's space, in the order of the summary;
        none where no draw was checked.
    notes: what else to know of the posterior; it does not speak against the draws.
    draws_statistics: of `check`: errors by parameter.
    """

    status: str
    reasons: tuple[str, ...]
    statistics: Statistics | None = None
    exact_statistics: ExactStatistics | None = None
    concerns: tuple[Concern, ...] = ()
    parameters: tuple[ParameterError, ...] = ()
    notes: tuple[str, ...] = ()
    draws_statistics: Any = None

    def numbers(self) -> dict[str, float]:
        """All statistics that are single numbers, by name."""
        own = self.statistics, self.exact_statistics, self.draws_statistics
        records = [record for record in own if record is not None]
        found = [item for record in records for item in vars(record).items()]
        return {
            name: float(value)
            for name, value in found
            if isinstance(value, int | float | np.number)
        }

    def because_of(self, causes: Sequence[Concern]) -> "Verdict":
        """The verdict with further concerns."""
        return self._replace(concerns=(*causes, *self.concerns)).explained()

    def explained(self, known: Circumstances = NOT_KNOWN) -> "Verdict":
        """Status and reasons by statistics and concerns.

        The law of draws with the exact correction is the posterior whatever the
        surrogate: its small errors are no reason for caution any more. But chains on a
        bad one do not reach what it leaves out in any time that their own statistics
        would notice, nor a mode that no draw visited.

        known: what advice depends on.
        """
        symptoms = exceeded(self.statistics)
        status = worst((*symptoms, *self.concerns))
        found = reasons(self.concerns, symptoms, known)
        if self.exact_statistics is not None:
            own = exceeded(self.exact_statistics)
            has_missed = self.statistics is None or self.statistics.missed_modes > 0
            counts = status == "bad" or has_missed
            status = max(worst(own), status if counts else "good", key=RANKS.index)
            about = [ABOUT_SURROGATE + found[0], *found[1:]] if found else []
            found = (*reasons((), own, known), *about)[:MOST_REASONS]
        return self._replace(status=status, reasons=() if status == "good" else found)

    def __str__(self) -> str:
        reasons = [f"- {reason}" for reason in self.reasons]
        notes = [f"- note: {note}" for note in self.notes]
        return "\n".join([self.status, *reasons, *notes])

    def _repr_html_(self) -> str:
        return verdict_card(self.status, (*self.reasons, *self.notes))


def judge(statistics: Statistics, concerns: Sequence[Concern]) -> Verdict:
    """Compare statistics with their limits.

    concerns: further doubts.
    """
    if not isinstance(statistics, Statistics):
        raise TypeError("only a whole record of statistics is judged")
    return Verdict("", (), statistics, concerns=tuple(concerns)).explained()


def judge_exact(verdict: Verdict, statistics: ExactStatistics) -> Verdict:
    """Judge draws of the exact correction.

    verdict: on the surrogate.
    statistics: of the exact chains.
    """
    return verdict._replace(exact_statistics=statistics).explained()


def unchecked(reason: str) -> Verdict:
    """Draws that were not compared with the model are not to be trusted."""
    return Verdict("", (), concerns=(Concern("bad", reason, FEW),)).explained()


def worst(found: Sequence[Concern | Symptom]) -> str:
    """The worst status; good if there is none."""
    return max((one.status for one in found), key=RANKS.index, default="good")


def exceeded(statistics: Statistics | ExactStatistics | None) -> list[Symptom]:
    """Every limit that is not kept."""
    found: list[Symptom] = []
    if statistics is None:
        return found
    for entry in dataclasses.fields(statistics):
        bound: Limit | None = entry.metadata.get("limit")
        if bound is None:
            continue
        value = getattr(statistics, entry.name)
        if rank := bound.rank(value):
            words = bound.words.format(value=value)
            lacking = bound.lacking(value)
            found.append(Symptom(entry.name, RANKS[rank], words, bound.cause, lacking))
    return found

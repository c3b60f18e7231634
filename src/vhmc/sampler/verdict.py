"""The verdict: how far draws can be trusted, in one word and the reasons for it.

Limits are fitted to true errors by benchmarks/fit_verdict.py.
"""

import dataclasses
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from vhmc.report.cards import verdict_card

RANKS = ("good", "caution", "bad")
FEWEST_CHECKS = 50
"""Checked draws below which no verdict is good."""
MUCH_OUTSIDE = 0.02
"""Mass outside that is not to be missed."""
HIGH, LOW = 1, -1
"""Whether high or low values of a statistic are bad."""


class Limit(NamedTuple):
    """Values of a statistic beyond which draws are doubtful, and bad.

    sign: `HIGH` or `LOW`.
    sentence: what such a value means, with a place for it.
    """

    sign: int
    caution: float
    bad: float
    sentence: str

    def rank(self, value: float) -> int:
        """Place in `RANKS`; a value that is not a number is bad."""
        if not self.sign * value <= self.sign * self.bad:
            return 2
        return 0 if self.sign * value <= self.sign * self.caution else 1


def limit(sign: int, caution: float, bad: float, sentence: str) -> Any:
    """A field of a record of statistics that the verdict depends on."""
    metadata = {"limit": Limit(sign, caution, bad, sentence)}
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
        *(LOW, 0.57, 0.4),
        "importance efficiency {value:.2f}: the surrogate misses part of the posterior",
    )
    tempered_efficiency: float = limit(
        *(LOW, 0.34, 0.02),
        "importance efficiency {value:.2f} by draws of the tempered surrogate: the "
        "surrogate leaves out part of the posterior",
    )
    independent_acceptance: float = limit(
        *(LOW, 0.8, 0.6),
        "an independence sampler with the surrogate as its proposal would accept "
        "{value:.2f} of the draws",
    )
    log_weight_sd: float = limit(
        *(HIGH, 0.5, 2.0),
        "log weights have an sd of {value:.2g} nats: the surrogate's energy is off",
    )
    hole_fraction: float = limit(
        *(HIGH, 0.005, 0.05),
        "{value:.1%} of the draws lie where the surrogate is far too low",
    )
    largest_log_weight: float = limit(
        *(HIGH, 2.9, 5.0),
        "the largest log weight is {value:.1f} nats above the median: the surrogate "
        "hardly covers part of the mass",
    )
    delayed_acceptance_rate: float = limit(
        *(LOW, 0.75, 0.45),
        "delayed-acceptance proposals were accepted {value:.2f} of the time in the "
        "last rounds of training",
    )
    score_error: float = limit(
        *(HIGH, 0.53, 3.0),
        "squared score error {value:.2g} by dimension, where a standard normal's own "
        "score has 1",
    )
    stein_mean_error: float = limit(
        *(HIGH, 0.147, 0.5),
        "score errors at draws put the mean of a parameter off by {value:.2f} sd",
    )
    stein_sd_error: float = limit(
        *(HIGH, 0.08, 0.5),
        "score errors at draws put the sd of a parameter off by {value:.0%}",
    )
    weighted_mean_error: float = limit(
        *(HIGH, 0.145, 0.4), "importance weights put a mean off by {value:.2f} sd"
    )
    weighted_sd_error: float = limit(
        *(HIGH, 0.15, 0.5), "importance weights put an sd off by {value:.0%}"
    )
    error_bound: float = limit(
        *(HIGH, 0.4, 1.0),
        "a mean may be off by {value:.2f} sd, or an sd by as much of itself",
    )
    rhat: float = limit(
        *(HIGH, 1.02, 1.1), "R-hat {value:.3g}: chains on the surrogate disagree"
    )
    ess_per_draw: float = limit(
        *(LOW, 0.1, 0.005),
        "effective sample size {value:.1%} of the draws: chains on the surrogate mix "
        "slowly and may not have visited all of it",
    )
    ess: float = limit(*(LOW, 200.0, 20.0), "effective sample size only {value:.0f}")
    num_checks: float = limit(
        *(LOW, FEWEST_CHECKS, 8.0),
        "only {value:.0f} checked draws to judge by: raise the budget",
    )
    mass_outside: float = limit(
        *(HIGH, MUCH_OUTSIDE, 0.1),
        "points far outside of the draws, but with a density that is far too high for "
        "that, put {value:.0%} of the mass there",
    )
    failed_fraction: float = limit(
        *(HIGH, 0.02, 0.5),
        "the model had no finite answer at {value:.1%} of the points",
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

    exact_rhat: float = limit(
        *(HIGH, 1.1, 1.3), "R-hat {value:.3g}: the exact chains disagree"
    )
    exact_ess: float = limit(
        *(LOW, 100.0, 20.0),
        "the exact draws have an effective sample size of {value:.0f}: raise the "
        "budget",
    )
    exact_acceptance: float


ABOUT_SURROGATE = (
    "the draws are corrected, but what follows of the surrogate makes their chains "
    "slow: they may not have visited all of the posterior"
)


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
    reasons: what speaks against them, the worst first; empty if nothing does.
    statistics: the numbers it rests on; none where no draw was checked.
    exact_statistics: of the exact correction, where that was made.
    concerns: doubts that are not among the statistics, each with its status.
    parameters: errors of every number of the user's space, in the order of the summary;
        none where no draw was checked.
    notes: what else to know of the posterior; it does not speak against the draws.
    draws_statistics: of `check`: errors by parameter.
    """

    status: str
    reasons: tuple[str, ...]
    statistics: Statistics | None = None
    exact_statistics: ExactStatistics | None = None
    concerns: tuple[tuple[str, str], ...] = ()
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

    def because_of(self, causes: list[tuple[str, str]]) -> "Verdict":
        """The verdict with causes in the model, which come first.

        causes: each with the status it leads to at least.
        """
        ordered = sorted(causes, key=lambda cause: -RANKS.index(cause[0]))
        status = max([self.status, *(cause[0] for cause in causes)], key=RANKS.index)
        sentences = [sentence for _, sentence in ordered]
        return self._replace(
            status=status,
            reasons=(*sentences, *self.reasons),
            concerns=(*causes, *self.concerns),
        )

    def __str__(self) -> str:
        reasons = [f"- {reason}" for reason in self.reasons]
        notes = [f"- note: {note}" for note in self.notes]
        return "\n".join([self.status, *reasons, *notes])

    def _repr_html_(self) -> str:
        return verdict_card(self.status, (*self.reasons, *self.notes))


def judge(statistics: Statistics, concerns: list[tuple[str, str]]) -> Verdict:
    """Compare statistics with their limits.

    concerns: further doubts, each with the status it leads to.
    """
    found = [(RANKS.index(status), sentence) for status, sentence in concerns]
    found += exceeded(statistics)
    found.sort(key=lambda row: -row[0])
    rank = found[0][0] if found else 0
    reasons = [sentence for _, sentence in found]
    if rank:
        reasons.append(
            f"largest score errors: {statistics.worst_parameter}; raise the budget or "
            "reparameterise"
        )
    return Verdict(RANKS[rank], tuple(reasons), statistics, concerns=tuple(concerns))


def judge_exact(verdict: Verdict, statistics: ExactStatistics) -> Verdict:
    """Judge draws of the exact correction.

    Their law is the posterior whatever the surrogate: its small errors are no reason
    for caution any more. But chains on a bad one do not reach what it leaves out in
    any time that their own statistics would notice, nor a mode that no draw visited.

    verdict: on the surrogate.
    statistics: of the exact chains.
    """
    found = exceeded(statistics)
    reasons = [sentence for _, sentence in sorted(found, key=lambda row: -row[0])]
    rank = max((rank for rank, _ in found), default=0)
    has_missed = verdict.statistics is None or verdict.statistics.missed_modes > 0
    if verdict.status == "bad" or has_missed:
        rank = max(rank, RANKS.index(verdict.status))
    if rank and verdict.reasons:
        reasons += [ABOUT_SURROGATE, *verdict.reasons]
    return verdict._replace(
        status=RANKS[rank], reasons=tuple(reasons), exact_statistics=statistics
    )


def unchecked(reason: str) -> Verdict:
    """Draws that were not compared with the model are not to be trusted."""
    return Verdict("bad", (reason,))


def exceeded(statistics: Statistics | ExactStatistics) -> list[tuple[int, str]]:
    """Rank and sentence of every limit that is not kept."""
    found = []
    for entry in dataclasses.fields(statistics):
        bound: Limit | None = entry.metadata.get("limit")
        if bound is None:
            continue
        value = getattr(statistics, entry.name)
        if rank := bound.rank(value):
            found.append((rank, bound.sentence.format(value=value)))
    return found

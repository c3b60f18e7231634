"""The verdict: how far draws can be trusted, in one word and the reasons for it."""

from typing import Any, NamedTuple

import numpy as np

from vhmc.report.cards import verdict_card

RANKS = ("good", "caution", "bad")
FEWEST_CHECKS = 50
"""True values below which no verdict is good."""


class Limit(NamedTuple):
    """A statistic, the values beyond which it is doubtful and bad, and what it means.

    sign: 1 if large values are bad, -1 if small ones are.
    """

    name: str
    sign: int
    caution: float
    bad: float
    sentence: str


LIMITS = (
    Limit(
        "efficiency",
        -1,
        0.8,
        0.4,
        "importance efficiency {value:.2f}: the surrogate misses part of the posterior",
    ),
    Limit(
        "wide_efficiency",
        -1,
        0.75,
        0.02,
        "importance efficiency {value:.2f} as wider draws see it: the surrogate leaves "
        "out part of the posterior",
    ),
    Limit(
        "delayed_acceptance",
        -1,
        0.8,
        0.6,
        "an exact step would accept {value:.2f} of the draws",
    ),
    Limit(
        "spread",
        1,
        0.5,
        2.0,
        "log weights spread by {value:.2g} nats: the surrogate's energy is off",
    ),
    Limit(
        "low_share",
        1,
        0.005,
        0.05,
        "{value:.1%} of the draws lie in holes of the surrogate",
    ),
    Limit(
        "high",
        1,
        2.0,
        5.0,
        "one draw counts {value:.1f} nats above the median: mass is hardly covered",
    ),
    Limit(
        "explorers",
        -1,
        0.75,
        0.45,
        "explorers were accepted {value:.2f} of the time in the last rounds",
    ),
    Limit(
        "score_error",
        1,
        0.3,
        3.0,
        "score error {value:.2g} of the posterior's own by dimension",
    ),
    Limit(
        "mean_error",
        1,
        0.1,
        0.5,
        "gradients at draws put the mean of a parameter off by {value:.2f} sd",
    ),
    Limit(
        "sd_error",
        1,
        0.06,
        0.5,
        "gradients at draws put the sd of a parameter off by {value:.0%}",
    ),
    Limit(
        "mean_shift",
        1,
        0.12,
        0.4,
        "importance weights put a mean off by {value:.2f} sd",
    ),
    Limit(
        "sd_shift",
        1,
        0.15,
        0.5,
        "importance weights put an sd off by {value:.0%}",
    ),
    Limit("rhat", 1, 1.02, 1.1, "R-hat {value:.3g}: chains on the surrogate disagree"),
    Limit(
        "worth",
        -1,
        0.15,
        0.005,
        "only {value:.1%} of the draws are effective: chains on the surrogate mix "
        "slowly, and may not have been everywhere",
    ),
    Limit("ess", -1, 200.0, 20.0, "only {value:.0f} effective draws"),
    Limit(
        "num_checks",
        -1,
        FEWEST_CHECKS,
        8.0,
        "only {value:.0f} true values to judge by: raise the budget",
    ),
    Limit(
        "failed_share",
        1,
        0.02,
        0.5,
        "the model had no finite answer at {value:.1%} of the points",
    ),
)


EXACT_LIMITS = (
    Limit("exact_rhat", 1, 1.1, 1.3, "R-hat {value:.3g}: the exact chains disagree"),
    Limit(
        "exact_ess",
        -1,
        100.0,
        20.0,
        "the exact draws are worth {value:.0f} independent ones: raise the budget",
    ),
)
ABOUT_SURROGATE = (
    "the draws are corrected, but what follows of the surrogate makes their chains "
    "slow: they may not have been everywhere"
)


class Verdict(NamedTuple):
    """How far to trust the draws.

    status: `good`, `caution` or `bad`.
    reasons: what speaks against them, the worst first; empty if nothing does.
    statistics: the numbers it rests on.
    """

    status: str
    reasons: tuple[str, ...]
    statistics: dict[str, Any]

    def __str__(self) -> str:
        return "\n".join([self.status, *(f"- {reason}" for reason in self.reasons)])

    def _repr_html_(self) -> str:
        return verdict_card(self.status, self.reasons)


def judge(statistics: dict[str, Any], concerns: list[tuple[str, str]]) -> Verdict:
    """Weigh statistics against their limits.

    concerns: further doubts, each with the status it leads to.
    """
    found = [(RANKS.index(status), sentence) for status, sentence in concerns]
    found += exceeded(statistics, LIMITS)
    found.sort(key=lambda row: -row[0])
    rank = found[0][0] if found else 0
    reasons = [sentence for _, sentence in found]
    if rank and "worst_parameter" in statistics:
        reasons.append(
            f"worst known: {statistics['worst_parameter']}; raise the budget or "
            "reparameterise"
        )
    return Verdict(RANKS[rank], tuple(reasons), statistics)


def judge_exact(verdict: Verdict, statistics: dict[str, Any]) -> Verdict:
    """Judge draws that delayed acceptance made.

    Their law is the posterior whatever the surrogate: small errors of it are no reason
    for caution any more. But chains on a bad one do not get to what it leaves out in
    any time that their own statistics would notice, nor to a mode that no draw visited.

    verdict: on the surrogate.
    statistics: of the exact chains.
    """
    found = exceeded(statistics, EXACT_LIMITS)
    reasons = [sentence for _, sentence in sorted(found, key=lambda row: -row[0])]
    rank = max((rank for rank, _ in found), default=0)
    if verdict.status == "bad" or verdict.statistics.get("missed_modes"):
        rank = max(rank, RANKS.index(verdict.status))
    if rank and verdict.reasons:
        reasons += [ABOUT_SURROGATE, *verdict.reasons]
    return Verdict(RANKS[rank], tuple(reasons), verdict.statistics | statistics)


def exceeded(
    statistics: dict[str, Any], limits: tuple[Limit, ...]
) -> list[tuple[int, str]]:
    """Rank and sentence of every limit that is not kept."""
    found = []
    for limit in limits:
        if limit.name not in statistics:
            continue
        value = statistics[limit.name]
        if not limit.sign * value <= limit.sign * limit.bad:
            found.append((2, limit.sentence.format(value=value)))
        elif not limit.sign * value <= limit.sign * limit.caution:
            found.append((1, limit.sentence.format(value=value)))
    return found


def mode_concerns(
    ends: np.ndarray, energies: np.ndarray, is_finished: np.ndarray, draws: np.ndarray
) -> list[tuple[str, str]]:
    """Other places where descents came to rest, and no draw has been.

    ends, draws: in coordinates where the posterior is about round.
    """
    dim = ends.shape[1]
    spacing = _nearest(draws[::2], draws[1::2])
    far = _nearest(ends, draws) > max(4 * np.quantile(spacing, 0.99), 2.0)
    # A mode that much higher holds a negligible mass unless it is vastly wider.
    low = energies < energies.min() + dim / 2 + 8
    number = int(np.sum(far & low & is_finished))
    if not number:
        return []
    gap = float(np.min(energies[far & low & is_finished]) - energies.min())
    message = (
        f"{number} of {len(ends)} starts ended in another mode, {gap:.1f} nats from "
        "the lowest, that no draw visited"
    )
    return [("bad" if gap < 3 else "caution", message)]


def _nearest(points: np.ndarray, others: np.ndarray) -> np.ndarray:
    square = (
        np.sum(points**2, 1)[:, None] + np.sum(others**2, 1) - 2 * points @ others.T
    )
    return np.sqrt(np.maximum(square.min(axis=1), 0))

"""Reasons of a verdict: doubts grouped by their cause, each with what to do next."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from vhmc.sampler.spread import Spread

RANKS = ("good", "caution", "bad")
INTERRUPTED, MODEL = "interrupted", "model"
"""Causes that come before all others, however serious those are."""
MODES, FAILED, FEW, EXACT = "modes", "failed", "few", "exact"
MASS, FIT, MIXING = "mass", "fit", "mixing"
FIRST = INTERRUPTED, MODEL
ORDER = (MODES, FAILED, FEW, EXACT, MASS, FIT, MIXING)
"""Causes that are as serious as each other: those in front bring the others about."""
LEADS = {
    FAILED: "the model failed near the mass",
    FEW: "the budget is too small to check the draws",
    EXACT: "the exact chains have not mixed",
    MASS: "the draws hardly reach part of the posterior's mass",
    FIT: "the surrogate does not fit the posterior well",
    MIXING: "the chains on the surrogate have not mixed",
}
MOST_REASONS, MOST_SYMPTOMS = 3, 3
"""Causes that are shown, and numbers behind each."""
MORE = {"caution": 2.0, "bad": 4.0}
"""Factors by which a budget is to be raised. Of eleven posteriors of the verdict's
benchmark with caution at 300 evaluations ten were good at 600, the last at 1,200."""


MORE_DRAWS = "ask for more draws"


class Concern(NamedTuple):
    """A doubt that is not among the statistics.

    status: that it leads to at least.
    sentence: what it is, and what to do.
    cause: one of `FIRST` or `ORDER`.
    """

    status: str
    sentence: str
    cause: str = MODES


class Symptom(NamedTuple):
    """A statistic beyond its limit.

    name: of the statistic.
    status: that it leads to at least.
    words: the number, and what it is of.
    cause: that it speaks of.
    lacking: factor from its value to the limit.
    """

    name: str
    status: str
    words: str
    cause: str
    lacking: float


class Circumstances(NamedTuple):
    """What else is known of a run when something is advised.

    budget: of the run; None if not known.
    worst: the parameter with the largest score errors.
    spread: parameters whose spread changes with another one.
    long_tail: the number that is known least, if that is so for the tail of its draws.
    """

    budget: int | None = None
    worst: str = ""
    spread: Spread | None = None
    long_tail: str = ""


class _Group(NamedTuple):
    """Statistics that speak of one cause, the worst of them first."""

    cause: str
    symptoms: list[Symptom]

    @property
    def status(self) -> str:
        return self.symptoms[0].status


def reasons(
    concerns: Sequence[Concern], symptoms: Sequence[Symptom], known: Circumstances
) -> tuple[str, ...]:
    """One sentence for each cause, the cause of the others first.

    Of a wrong model all numbers are consequences: nothing else is to be done there.
    """
    found: list[Concern | _Group] = [*concerns]
    for cause in ORDER:
        own = [one for one in symptoms if one.cause == cause]
        if own:
            worst_first = sorted(own, key=lambda one: -RANKS.index(one.status))
            found.append(_Group(cause, worst_first))
    has_first = any(one.cause in FIRST for one in concerns)
    # One number of evaluations for all: that which most of them need.
    factors = [_factor(one, known) for one in found if isinstance(one, _Group)]
    raised = _raised(known.budget, max(factors, default=1.0))
    said: set[str] = set()
    sentences = []
    for one in sorted(found, key=lambda one: _place(one, known)):
        if isinstance(one, Concern):
            sentences.append(one.sentence)
            continue
        ways = [raised] if _factor(one, known) > 1 else []
        ways = [way for way in [*ways, *_ways(one, known)] if way not in said]
        said |= set(ways)
        sentence = f"{_lead(one, known)} ({_numbers(one, known)})"
        advice = "" if has_first or not ways else f"; {', or '.join(ways)}"
        sentences.append(sentence + advice)
    num_first = sum(one.cause in FIRST for one in concerns)
    return tuple(sentences[: max(MOST_REASONS, num_first)])


def _place(one: Concern | _Group, known: Circumstances) -> tuple[int, int, int]:
    """What a cause is sorted by."""
    rank = -RANKS.index(one.status)
    if one.cause in FIRST:
        return 0, FIRST.index(one.cause), rank
    # Descents end in the neck of a funnel, and chains stay out of it.
    return (1 if _is_funnel(one, known) else 2), rank, ORDER.index(one.cause)


def _is_funnel(one: Concern | _Group, known: Circumstances) -> bool:
    is_fit = one.cause == FIT and not _is_tail(one, known)
    return is_fit and known.spread is not None


def _is_tail(one: Concern | _Group, known: Circumstances) -> bool:
    """Whether the surrogate fits, and a number has a tail that few draws reach."""
    if isinstance(one, Concern) or not known.long_tail:
        return False
    return {symptom.name for symptom in one.symptoms} == {"error_bound"}


def _is_short(group: _Group) -> bool:
    """Whether the chains are well, and there are too few draws."""
    return {one.name for one in group.symptoms} == {"ess"}


def _lead(group: _Group, known: Circumstances) -> str:
    if _is_tail(group, known):
        return f"the tail of {known.long_tail} is long, and few draws are in it"
    return str(known.spread) if _is_funnel(group, known) else LEADS[group.cause]


def _numbers(group: _Group, known: Circumstances) -> str:
    """The worst of the numbers, and how many more there are."""
    said = [one.words for one in group.symptoms[:MOST_SYMPTOMS]]
    if len(group.symptoms) > MOST_SYMPTOMS:
        said.append(f"and {len(group.symptoms) - MOST_SYMPTOMS} more")
    numbers = ", ".join(said)
    if group.cause == FIT and known.worst and not _is_tail(group, known):
        numbers += f"; largest score errors: {known.worst}"
    return numbers


def _factor(group: _Group, known: Circumstances) -> float:
    """By which the budget is to be raised; one if that is not what helps."""
    if group.cause == FAILED or _is_short(group):
        return 1.0
    if _is_funnel(group, known) or _is_tail(group, known):
        return 1.0
    if group.cause in (FEW, EXACT):
        return max(one.lacking for one in group.symptoms)
    return MORE[group.status]


def _ways(group: _Group, known: Circumstances) -> list[str]:
    """What to do beside raising the budget."""
    if group.cause == FAILED:
        return ["see in `posterior.failures` where and why"]
    if group.cause in (FEW, EXACT):
        return []
    if known.spread is not None and _is_funnel(group, known):
        return [known.spread.advice]
    if _is_tail(group, known):
        return [f"report the median and quantiles of {known.long_tail}", MORE_DRAWS]
    if _is_short(group):
        return [MORE_DRAWS]
    is_curable = group.status == "caution" and group.cause != MIXING
    return ["ask for correction='exact'" if is_curable else "reparameterise"]


def _raised(budget: int | None, factor: float) -> str:
    """Advice to raise a budget, to two digits."""
    if budget is None or not 1 < factor < 100:
        return "raise the budget"
    wanted = math.ceil(factor * budget)
    unit = 10 ** max(len(str(wanted)) - 2, 0)
    return f"raise the budget to about {-(-wanted // unit) * unit:,}"

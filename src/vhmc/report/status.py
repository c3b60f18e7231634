"""The status of a run under way, and its words."""

import math
import time
from dataclasses import dataclass, field
from typing import NamedTuple

NAN = float("nan")


class Moment(NamedTuple):
    """What one round of training saw, before the surrogate was fitted to it.

    spent: evaluations so far.
    score_error: squared, by dimension, median over points the surrogate had not seen.
    acceptance: true acceptance of delayed-acceptance proposals.
    """

    spent: int
    score_error: float
    acceptance: float


@dataclass
class Status:
    """A run under way.

    budget, spent: evaluations; the budget need not be spent.
    replayed: evaluations of those spent that were on file already.
    phase: what is done now.
    history: of the rounds of training.
    num_draws, wanted_draws: of all chains on the surrogate.
    ess: effective draws of the worst coordinate; not a number until known.
    outcome: how it ended, in words; empty while it runs.
    """

    budget: int
    spent: int = 0
    replayed: int = 0
    phase: str = "search"
    history: list[Moment] = field(default_factory=list)
    num_draws: int = 0
    wanted_draws: int = 0
    ess: float = NAN
    outcome: str = ""
    began: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        """Since the run began."""
        return time.monotonic() - self.began

    @property
    def rate(self) -> float:
        """Evaluations a second, all other work included; not a number until known."""
        made = self.spent - self.replayed
        return made / self.seconds if made and self.seconds > 0 else NAN

    @property
    def seconds_left(self) -> float:
        """Until the whole budget would be spent at this rate."""
        return (self.budget - self.spent) / self.rate


def headline(status: Status) -> str:
    """Phase, evaluations and time, in a line."""
    text = f"{status.phase}: {status.spent} of {status.budget} evaluations"
    if status.outcome:
        return f"{text}, {shown_seconds(status.seconds)}"
    if math.isfinite(status.rate):
        left = status.budget - status.spent
        text += (
            f", {status.rate:.3g}/s, at most {left} and "
            f"{shown_seconds(status.seconds_left)} left"
        )
    return text


def details(status: Status) -> str:
    """How well it goes, as far as is known."""
    parts = []
    if status.history:
        last = status.history[-1]
        parts.append(f"true acceptance {last.acceptance:.2f}")
        first = status.history[0].score_error
        parts.append(f"score error {last.score_error:.2g} (first {first:.2g})")
    if status.wanted_draws:
        parts.append(f"{status.num_draws} of {status.wanted_draws} draws")
    if math.isfinite(status.ess):
        parts.append(f"ESS {status.ess:.0f}")
    return ", ".join(parts)


def shown_seconds(seconds: float) -> str:
    """A duration in words."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes / 60:.1f} h"

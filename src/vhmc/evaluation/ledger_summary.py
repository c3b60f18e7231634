"""Summarise a ledger: costs by phase, failures and rates."""

from collections import Counter
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np

from vhmc.evaluation.ledger import Round

COLUMNS = (
    *("phase", "rounds", "points", "evaluations"),
    *("failed", "seconds", "evaluations/s"),
)


class Summary(NamedTuple):
    """A ledger in words and numbers.

    lines: what the run is, a sentence each.
    rows: by phase, in the order of `COLUMNS`; the last is for all.
    reasons: of failures, with how often each was given, the commonest first.
    """

    lines: list[str]
    rows: list[list[str]]
    reasons: list[tuple[str, int]]


def summarise(facts: dict[str, Any], rounds: list[Round]) -> Summary:
    """Add up a ledger."""
    phases = list(dict.fromkeys(entry.phase for entry in rounds))
    rows = [
        _row(phase, [entry for entry in rounds if entry.phase == phase])
        for phase in phases
    ]
    reasons = Counter(str(r) for entry in rounds for r in entry.reason if r)
    return Summary(
        _lines(facts, rounds), [*rows, _row("all", rounds)], reasons.most_common()
    )


def _row(name: str, rounds: list[Round]) -> list[str]:
    points = [entry for entry in rounds if entry.kind != "hessian"]
    calls = sum(entry.calls for entry in rounds)
    seconds = sum(entry.seconds for entry in rounds)
    failed = sum(int(np.sum(entry.reason != "")) for entry in rounds)
    rate = calls / seconds if seconds > 0 else 0.0
    counts = len(rounds), sum(len(entry.energy) for entry in points), calls, failed
    return [
        name,
        *map(str, counts),
        f"{seconds:.2f}",
        f"{rate:,.0f}" if rate >= 100 else f"{rate:.3g}",
    ]


def _lines(facts: dict[str, Any], rounds: list[Round]) -> list[str]:
    if not facts:
        return ["nothing has been written yet"]
    shapes = facts["shapes"].items()
    names = ", ".join(f"{name}{shape if shape else ''}" for name, shape in shapes)
    made = datetime.fromtimestamp(facts["made"]).isoformat(" ", "seconds")
    budgets = facts["budgets"]
    is_over = facts.get("finished") == budgets[-1]
    chosen = ", ".join(f"{name} {value}" for name, value in facts["settings"].items())
    return [
        f"parameters {names}; dimension {facts['dim']}",
        f"begun {made} by vhmc {facts['vhmc']}; {chosen}",
        f"budget {', then '.join(map(str, budgets))} evaluations; "
        + ("finished" if is_over else "not finished: the same call of sample goes on"),
    ]

"""Rates of wrong verdicts with intervals, by family, and how reliable bounds are."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.table import Table
from scipy.stats import beta

from vhmc.lab.bench.summary import FAILURE, TOLERANCE
from vhmc.lab.bench.verdict.figure import reliability
from vhmc.lab.bench.verdict.reliability import coverage
from vhmc.lab.bench.verdict.rows import VerdictRow
from vhmc.lab.bench.verdict.run import Settings
from vhmc.lab.bench.write import plain_table
from vhmc.lab.experiments import output

LEVEL = 0.95
"""Of the intervals, which are those of Clopper and Pearson."""


class Rate(NamedTuple):
    """How many of how many."""

    number: int
    total: int

    @property
    def interval(self) -> tuple[float, float]:
        """That of Clopper and Pearson."""
        tail, (number, total) = (1 - LEVEL) / 2, self
        low = beta.ppf(tail, number, total - number + 1) if number else 0.0
        high = beta.ppf(1 - tail, number + 1, total - number) if number < total else 1.0
        return float(low), float(high)

    def __str__(self) -> str:
        if not self.total:
            return "0 of 0"
        low, high = self.interval
        share = self.number / self.total
        return (
            f"{self.number} of {self.total} ({share:.1%}, {LEVEL:.0%} interval "
            f"{low:.1%} to {high:.1%})"
        )


def silent_failures(rows: Iterable[VerdictRow]) -> Rate:
    """Runs called good with an error above 0.25, of those called good."""
    good = [row for row in rows if row.verdict == "good"]
    return Rate(sum(not row.error <= FAILURE for row in good), len(good))


def false_alarms(rows: Iterable[VerdictRow]) -> Rate:
    """Accurate runs that were not called good, of the accurate ones."""
    accurate = [row for row in rows if row.error <= TOLERANCE]
    return Rate(sum(row.verdict != "good" for row in accurate), len(accurate))


def write(
    folder: Path, settings: Settings, rows: Sequence[VerdictRow]
) -> tuple[list[Table], str]:
    """Write the figure, the rates and the settings; return tables and the headline."""
    sentence = headline(rows, settings.budgets)
    record = {
        "benchmark": "verdict",
        "settings": asdict(settings),
        "headline": sentence,
        "rates": {
            f"{budget} {half}": {
                "silent failures": silent_failures(some),
                "false alarms": false_alarms(some),
            }
            for budget in settings.budgets
            for half, some in _halves(_at(rows, budget)).items()
        },
        "evaluations": sum(row.num_evaluations for row in rows),
        "seconds": round(sum(row.seconds for row in rows), 1),
    }
    output.save_record(folder, "record", json.loads(json.dumps(record)))
    held = [row for row in rows if row.is_held_out]
    if held:
        output.save_figure(folder, "reliability", reliability(held))
    return [_table(_at(rows, budget), budget) for budget in settings.budgets], sentence


def headline(rows: Sequence[VerdictRow], budgets: Sequence[int]) -> str:
    """Both rates on the half that nothing was fitted on, and the coverage of bounds."""
    parts = []
    for budget in budgets:
        held = _halves(_at(rows, budget))["held"]
        covered = ", ".join(
            f"{kind}s {Rate(*counts)}" for kind, counts in coverage(held).items()
        )
        parts.append(
            f"{budget} evaluations, posteriors that no rule was fitted on: silent "
            f"failures (an error above {FAILURE}) in {silent_failures(held)} of the "
            f"runs called good; false alarms in {false_alarms(held)} of the runs with "
            f"both errors at most {TOLERANCE:.2f}. True errors within the bound of "
            f"their number: {covered}."
        )
    return "\n".join(parts)


def _at(rows: Sequence[VerdictRow], budget: int) -> list[VerdictRow]:
    return [row for row in rows if row.budget == budget]


def _halves(rows: Sequence[VerdictRow]) -> dict[str, list[VerdictRow]]:
    """Those to report on, and those to fit on."""
    return {
        "held": [row for row in rows if row.is_held_out],
        "fitted": [row for row in rows if not row.is_held_out],
    }


def _table(rows: Sequence[VerdictRow], budget: int) -> Table:
    families = dict.fromkeys(row.family for row in rows)
    lines = [
        _line(family, [row for row in rows if row.family == family])
        for family in families
    ]
    return plain_table(
        f"vhmc at {budget} evaluations",
        (
            *("family", "runs", "good", "caution", "bad", "error"),
            *("silent", "alarms", "held out: runs", "silent", "alarms"),
        ),
        [*lines, _line("all", rows)],
        "error: median over runs of the worst error. silent: called good with an error "
        f"above {FAILURE}, of those called good. alarms: not called good with both "
        f"errors at most {TOLERANCE:.2f}, of those. held out: the half of the "
        "posteriors that no rule was fitted on.",
    )


def _line(name: str, rows: Sequence[VerdictRow]) -> list[str]:
    held = _halves(rows)["held"]
    statuses = [row.verdict for row in rows]
    return [
        name,
        f"{len(rows)}",
        *(f"{statuses.count(status)}" for status in ("good", "caution", "bad")),
        f"{np.median([row.error for row in rows]):.2g}",
        *_counts(rows),
        f"{len(held)}",
        *_counts(held),
    ]


def _counts(rows: Sequence[VerdictRow]) -> tuple[str, str]:
    rates = silent_failures(rows), false_alarms(rows)
    return f"{rates[0].number}/{rates[0].total}", f"{rates[1].number}/{rates[1].total}"

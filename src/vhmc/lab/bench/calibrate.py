"""The verdict put to the test on problems that the method was not tuned on."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.table import Table

from vhmc.lab.bench.calibration.problems import CALIBRATION
from vhmc.lab.bench.jobs import Job, run_jobs
from vhmc.lab.bench.measure import Task
from vhmc.lab.bench.rows import Row, totals
from vhmc.lab.bench.run import check_budgets, check_counts, check_names
from vhmc.lab.bench.summary import (
    FAILURE,
    OURS,
    TOLERANCE,
    is_false_alarm,
    is_silent_failure,
    verdicts,
)
from vhmc.lab.bench.table import plain_table
from vhmc.lab.experiments import output


@dataclass(frozen=True)
class Settings:
    """Everything that can be chosen.

    problems: names in `CALIBRATION`.
    budget: calls of the model, at most.
    seeds: runs of each, with seeds from 0.
    workers: processes, each of which takes one problem at a time.
    """

    problems: tuple[str, ...] = tuple(CALIBRATION)
    budget: int = 1000
    seeds: int = 1
    workers: int = 1

    def __post_init__(self):
        check_names("problem", self.problems, CALIBRATION)
        check_budgets((self.budget,))
        check_counts(seeds=self.seeds, workers=self.workers)


def run(
    settings: Settings, report: Callable[[str], None], path: Path | None = None
) -> list[Row]:
    """Run everything but what the file at `path` holds already, and add to it."""
    tasks = tuple(Task(OURS, settings.budget, seed) for seed in range(settings.seeds))
    jobs = [Job(CALIBRATION[name], name, tasks) for name in settings.problems]
    return run_jobs(jobs, report, path, settings.workers)


def write(folder: Path, settings: Settings, rows: Sequence[Row]) -> tuple[Table, str]:
    """Write the settings; return the table and the headline."""
    sentence = headline(rows)
    record = {
        "benchmark": "calibration",
        "settings": asdict(settings),
        "headline": sentence,
        **totals(rows),
    }
    output.save_record(folder, "record", record)
    return _table(rows), sentence


def headline(rows: Sequence[Row]) -> str:
    """Both kinds of wrong verdicts, counted."""
    return (
        f"{sum(map(is_silent_failure, rows))} silent failures (good, but an error "
        f"above {FAILURE}) and {sum(map(is_false_alarm, rows))} false alarms (not "
        f"good, though both errors are at most {TOLERANCE:.2f}) in {len(rows)} runs; "
        f"verdicts: {verdicts(rows)}."
    )


def _table(rows: Sequence[Row]) -> Table:
    table = plain_table(
        f"vhmc at {rows[0].budget} evaluations",
        *("problem", "d", "seed", "mean error", "sd error", "verdict", "first reason"),
    )
    for row in rows:
        mark = ""
        if is_silent_failure(row):
            mark = " (silent failure)"
        elif is_false_alarm(row):
            mark = " (false alarm)"
        table.add_row(
            row.problem,
            f"{row.dim}",
            f"{row.seed}",
            f"{row.mean_error:.3g}",
            f"{row.sd_error:.3g}",
            (row.verdict or "failed") + mark,
            row.first_note,
        )
    return table

"""Count wrong verdicts on problems that the method was not tuned on."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import resources
from pathlib import Path

from rich.table import Table

from vhmc._arguments import whole
from vhmc.lab.bench.calibration import processes, regressions, shapes
from vhmc.lab.bench.jobs import Job, run_jobs
from vhmc.lab.bench.measure import Task
from vhmc.lab.bench.problem import Model, Problem, with_moments
from vhmc.lab.bench.rows import Row
from vhmc.lab.bench.run import check_budgets, check_names
from vhmc.lab.bench.summary import (
    FAILURE,
    OURS,
    TOLERANCE,
    is_false_alarm,
    is_silent_failure,
    verdicts,
)
from vhmc.lab.bench.write import plain_table, save_record

REFERENCE = "reference.json"
"""Moments by problem and quantity, made by benchmarks/calibration_reference.py."""

MODELS: dict[str, Callable[[], Model]] = {
    "logistic-a9a": regressions.logistic_a9a,
    "negative-binomial-flights": regressions.negative_binomial_flights,
    "robust-regression": regressions.robust_regression,
    "lotka-volterra": processes.lotka_volterra,
    "sir-epidemic": processes.sir_epidemic,
    "michaelis-menten": regressions.michaelis_menten,
    "stochastic-volatility": processes.stochastic_volatility,
    "hidden-markov": processes.hidden_markov,
    "horseshoe": regressions.horseshoe,
    "funnel": shapes.funnel,
    "two-modes-2d": partial(shapes.two_modes, shapes.FAR_MODES),
    "two-modes-5d": partial(shapes.two_modes, shapes.NEAR_MODES),
    "ring": shapes.ring,
    "gamma-scales": shapes.gamma_scales,
    "heavy-tails": shapes.heavy_tails,
    "dirichlet": shapes.dirichlet,
    "truncated-gaussian": shapes.truncated_gaussian,
    "rosenbrock": shapes.rosenbrock,
    "hierarchical-normal": regressions.hierarchical_normal,
    "item-response": regressions.item_response,
    "plateau": regressions.plateau,
    "two-exponentials": regressions.two_exponentials,
    "change-point": processes.change_point,
    "weibull-survival": regressions.weibull_survival,
    "gaussian-process": regressions.gaussian_process,
}


def problem(name: str) -> Problem:
    """One of `MODELS` with its stored moments."""
    text = resources.files(__package__).joinpath(REFERENCE).read_text()
    return with_moments(name, MODELS[name](), json.loads(text)[name]["quantities"])


CALIBRATION: dict[str, Callable[[], Problem]] = {
    name: partial(problem, name) for name in MODELS
}


@dataclass(frozen=True)
class Settings:
    """Everything that can be chosen.

    problems: names in `CALIBRATION`.
    budget: evaluations, at most.
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
        whole("seeds", self.seeds, 1)
        whole("workers", self.workers, 1)


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
    save_record(folder, "calibration", settings, sentence, rows)
    return _table(rows), sentence


def headline(rows: Sequence[Row]) -> str:
    """Numbers of both kinds of wrong verdicts."""
    return (
        f"{sum(map(is_silent_failure, rows))} silent failures (good, but an error "
        f"above {FAILURE}) and {sum(map(is_false_alarm, rows))} false alarms (not "
        f"good, though both errors are at most {TOLERANCE:.2f}) in {len(rows)} runs; "
        f"verdicts: {verdicts(rows)}."
    )


def _table(rows: Sequence[Row]) -> Table:
    return plain_table(
        f"vhmc at {rows[0].budget} evaluations",
        ("problem", "d", "seed", "mean error", "sd error", "verdict", "first reason"),
        (
            (
                row.problem,
                f"{row.dim}",
                f"{row.seed}",
                f"{row.mean_error:.3g}",
                f"{row.sd_error:.3g}",
                f"{row.verdict or 'failed'}{_mark(row)}",
                row.note.split(" | ")[0],
            )
            for row in rows
        ),
    )


def _mark(row: Row) -> str:
    if is_silent_failure(row):
        return " (silent failure)"
    return " (false alarm)" if is_false_alarm(row) else ""

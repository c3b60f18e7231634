"""Measure masses of modes, and what the verdict says where one is missing."""

import csv
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np
from rich.table import Table

from vhmc._arguments import whole
from vhmc.lab.bench.modes.problems import PEAKS
from vhmc.lab.bench.run import check_names
from vhmc.lab.bench.write import plain_table
from vhmc.lab.experiments import output
from vhmc.sampler.sample import sample

MASS_ERROR = 0.05
"""Error of a mass that is still right; a mode of more that is missing is one too many.
"""
ERROR = 0.15
"""Errors of means, in sd, and relative errors of sds that are still right."""


@dataclass(frozen=True)
class Settings:
    """Everything that can be chosen.

    problems: names in `PEAKS`.
    budget: evaluations of each run.
    seeds: runs of each, with seeds from 0.
    """

    problems: tuple[str, ...] = tuple(PEAKS)
    budget: int = 1500
    seeds: int = 5

    def __post_init__(self):
        check_names("problem", self.problems, PEAKS)
        whole("budget", self.budget, 100)
        whole("seeds", self.seeds, 1)


class Divided(NamedTuple):
    """One run.

    mass_error: of the share of the draws in a mode, at most over the modes.
    missing: mass of the modes that no draw is in.
    mean_error, sd_error: worst error of a mean, in sd, and worst relative one of an sd.
    num_modes: that the run has found.
    """

    problem: str
    dim: int
    seed: int
    mass_error: float
    missing: float
    mean_error: float
    sd_error: float
    num_modes: int
    num_evaluations: int
    seconds: float
    verdict: str
    note: str

    @property
    def is_right(self) -> bool:
        """Whether masses and moments are."""
        return self.mass_error <= MASS_ERROR and self.mean_error <= ERROR

    @property
    def is_silent(self) -> bool:
        """Whether it is called good though much is missing."""
        return self.verdict == "good" and self.missing > MASS_ERROR


def run(
    settings: Settings, report: Callable[[str], None], path: Path | None = None
) -> list[Divided]:
    """Run all seeds of all problems; rows are written as they come."""
    rows: list[Divided] = []
    for name in settings.problems:
        jax.clear_caches()
        rows += [_measured(name, seed, settings) for seed in range(settings.seeds)]
        mine = rows[-settings.seeds :]
        errors = " ".join(f"{r.mass_error:.2f}/{r.mean_error:.2f}" for r in mine)
        report(f"{name}: {errors} {' '.join(row.verdict for row in mine)}")
        if path:
            _write(path, rows)
    return rows


def _measured(name: str, seed: int, settings: Settings) -> Divided:
    peaks = PEAKS[name]()
    target = peaks.make()
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a bad verdict, which is a column here
        posterior = sample(target, settings.budget, seed=seed, progress=False)
    seconds = time.perf_counter() - began
    flat = posterior.unconstrained.reshape(-1, target.dim)
    draws = target.parameters.constrain(flat)
    shares = peaks.shares(draws)
    verdict = posterior.verdict
    assert verdict is not None
    return Divided(
        name,
        target.dim,
        seed,
        float(np.abs(shares - peaks.masses).max()),
        float(peaks.masses[shares == 0].sum()),
        *peaks.errors(draws),
        len(posterior.modes),
        posterior.num_evaluations,
        seconds,
        verdict.status,
        verdict.reasons[0] if verdict.reasons else "",
    )


def _write(path: Path, rows: Sequence[Divided]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Divided._fields)
        writer.writerows(rows)


def write(
    folder: Path, settings: Settings, rows: Sequence[Divided]
) -> tuple[Table, str]:
    """Write the settings; return the table and the headline."""
    sentence = headline(rows)
    record = {"benchmark": "modes", "settings": asdict(settings), "headline": sentence}
    output.save_record(folder, "record", record)
    return _table(rows, settings), sentence


def headline(rows: Sequence[Divided]) -> str:
    """How often masses are right, and how often a missing mode is kept silent."""
    return (
        f"Masses within {MASS_ERROR} and means within {ERROR} sd in "
        f"{sum(row.is_right for row in rows)} of {len(rows)} runs, called good in "
        f"{sum(row.is_right and row.verdict == 'good' for row in rows)}; called good "
        f"with more than {MASS_ERROR} of the mass missing in "
        f"{sum(row.is_silent for row in rows)}."
    )


def _table(rows: Sequence[Divided], settings: Settings) -> Table:
    lines = []
    for name in settings.problems:
        mine = [row for row in rows if row.problem == name]
        words = [row.verdict for row in mine]
        lines.append(
            [
                name,
                f"{mine[0].dim}",
                f"{sum(row.is_right for row in mine)}/{len(mine)}",
                *(
                    f"{np.median([getattr(row, key) for row in mine]):.3f}"
                    for key in ("mass_error", "mean_error", "sd_error")
                ),
                f"{np.median([row.num_evaluations for row in mine]):.0f}",
                ", ".join(
                    f"{word} {words.count(word)}" for word in dict.fromkeys(words)
                ),
            ]
        )
    return plain_table(
        f"Modes at {settings.budget} evaluations",
        ("problem", "d", "right", "mass", "mean", "sd", "evaluations", "verdicts"),
        lines,
        f"Right: masses within {MASS_ERROR} and means within {ERROR} sd. The errors "
        "are medians over the seeds: of a mode's mass, of a mean in sd, of an sd.",
    )

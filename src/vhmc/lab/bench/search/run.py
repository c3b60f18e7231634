"""Count the evaluations that methods need to find the mass."""

import csv
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np
from rich.table import Table

from vhmc._arguments import whole
from vhmc.evaluation.user_code import Guarded
from vhmc.lab.bench.run import check_names
from vhmc.lab.bench.search.methods import METHODS, Trace
from vhmc.lab.bench.search.problems import QUESTS, moments
from vhmc.lab.bench.search.quest import Moments
from vhmc.lab.bench.write import plain_table
from vhmc.lab.experiments import output

OURS = "vhmc"
FOUND = 1.0
"""Distance, in standard deviations, at which the mass is found."""


@dataclass(frozen=True)
class Settings:
    """Everything that can be chosen.

    problems: names in `QUESTS`.
    methods: names in `METHODS`.
    evaluations: that each run has.
    seeds: runs of each, with seeds from 0 and a first point each.
    """

    problems: tuple[str, ...] = tuple(QUESTS)
    methods: tuple[str, ...] = tuple(METHODS)
    evaluations: int = 200
    seeds: int = 5

    def __post_init__(self):
        check_names("problem", self.problems, QUESTS)
        check_names("method", self.methods, METHODS)
        whole("evaluations", self.evaluations, 50)
        whole("seeds", self.seeds, 1)


class Found(NamedTuple):
    """One search.

    distance: of the method's mean from the posterior's after all evaluations, in
        standard deviations: Mahalanobis's over the root of the dimension.
    lowest: the same of the lowest point seen.
    until: evaluations until the lowest point so far was within one; infinite if never.
    num_evaluations: that were made.
    note: what the method said on modes, or why it failed.
    """

    problem: str
    dim: int
    method: str
    seed: int
    distance: float
    lowest: float
    until: float
    num_evaluations: int
    note: str


def run(
    settings: Settings, report: Callable[[str], None], path: Path | None = None
) -> list[Found]:
    """Run all methods on all problems; rows are written as they come."""
    rows: list[Found] = []
    for name in settings.problems:
        jax.clear_caches()
        for method in settings.methods:
            rows += [
                _measured(name, method, seed, settings)
                for seed in range(settings.seeds)
            ]
            mine = rows[-settings.seeds :]
            distances = " ".join(f"{row.distance:.2g}" for row in mine)
            report(f"{name}, {method}: distances {distances}")
            if path:
                _write(path, rows)
    return rows


def _measured(name: str, method: str, seed: int, settings: Settings) -> Found:
    target, truth = QUESTS[name]().make(seed), moments(name)
    with np.errstate(all="ignore"):
        trace, failure = Guarded(METHODS[method])(target, settings.evaluations, seed)
    if failure:
        nothing = np.inf, np.inf, np.inf
        return Found(name, target.dim, method, seed, *nothing, 0, failure)
    return Found(name, target.dim, method, seed, *_distances(trace, truth), trace.note)


def _distances(trace: Trace, truth: Moments) -> tuple[float, float, float, int]:
    number = len(trace.energies)
    distance = np.inf
    if trace.mean is not None and np.isfinite(trace.mean).all():
        distance = float(truth.distance(trace.mean)[0])
    energies = np.nan_to_num(trace.energies, nan=np.inf)
    best, until, lowest = np.inf, np.inf, np.inf
    for count, (theta, energy) in enumerate(zip(trace.thetas, energies, strict=True)):
        if energy < best:
            best, lowest = energy, float(truth.distance(theta)[0])
            if lowest <= FOUND and until == np.inf:
                until = count + 1.0
    return distance, lowest, until, number


def _write(path: Path, rows: Sequence[Found]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Found._fields)
        writer.writerows(rows)


def write(folder: Path, settings: Settings, rows: Sequence[Found]) -> tuple[Table, str]:
    """Write the settings; return the table and the headline."""
    sentence = headline(rows, settings)
    record = {"benchmark": "search", "settings": asdict(settings), "headline": sentence}
    output.save_record(folder, "record", record)
    return _table(rows, settings), sentence


def headline(rows: Sequence[Found], settings: Settings) -> str:
    """How often each method has found the mass."""
    parts = []
    for method in settings.methods:
        mine = [row for row in rows if row.method == method]
        found = sum(row.distance <= FOUND for row in mine)
        median = np.median([row.until for row in mine])
        parts.append(
            f"{method} {found} of {len(mine)} ({100 * found / len(mine):.0f} %, lowest "
            f"point there after {median:.0f} in the median)"
        )
    return (
        f"Within {FOUND:.0f} sd of the mass after {settings.evaluations} evaluations: "
        + "; ".join(parts)
        + "."
    )


def _table(rows: Sequence[Found], settings: Settings) -> Table:
    lines = []
    for name in settings.problems:
        line = [name, ""]
        for method in settings.methods:
            mine = [r for r in rows if (r.problem, r.method) == (name, method)]
            line[1] = f"{mine[0].dim}"
            found = sum(row.distance <= FOUND for row in mine)
            distance = np.median([row.distance for row in mine])
            until = np.median([row.until for row in mine])
            after = "-" if until == np.inf else f"{until:.0f}"
            line.append(f"{found}/{len(mine)} {distance:.2g} {after}")
        lines.append(line)
    return plain_table(
        f"The mass after {settings.evaluations} evaluations",
        ("problem", "d", *settings.methods),
        lines,
        "Seeds within one sd of the mass, the median distance in sd (of the method's "
        "mean; Mahalanobis's over the root of d), and the median number of evaluations "
        "until the lowest point was within one sd (- if it never was).",
    )

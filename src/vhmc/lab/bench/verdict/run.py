"""Run the posteriors of the set in one or several processes; resumable."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import jax

from vhmc._arguments import whole
from vhmc.lab.bench.jobs import ONE_THREAD, environment
from vhmc.lab.bench.rows import append_row, read_rows, start_file
from vhmc.lab.bench.run import check_budgets, check_names
from vhmc.lab.bench.verdict.cases import CASES, FAMILIES, family_of
from vhmc.lab.bench.verdict.rows import VerdictRow, measure

RUNS_OF_A_PROCESS = 30
"""After which compiled programs are dropped, which no later run needs."""


@dataclass(frozen=True)
class Settings:
    """Everything that can be chosen.

    families: names in `FAMILIES`.
    budgets: evaluations, at most.
    seeds: runs of each, with seeds from 0.
    workers: processes.
    """

    families: tuple[str, ...] = tuple(FAMILIES)
    budgets: tuple[int, ...] = (1000,)
    seeds: int = 1
    workers: int = 1

    def __post_init__(self):
        check_names("family", self.families, FAMILIES)
        check_budgets(self.budgets)
        whole("seeds", self.seeds, 1)
        whole("workers", self.workers, 1)

    def asked(self) -> list[tuple[str, int, int]]:
        """Name, budget and seed of every run, the first of each family first."""
        names = [name for name in CASES if family_of(name) in self.families]
        names.sort(key=lambda name: int(name.rpartition("-")[2]))
        return [
            (name, budget, seed)
            for budget in self.budgets
            for seed in range(self.seeds)
            for name in names
        ]


def run(
    settings: Settings, report: Callable[[str], None], path: Path | None = None
) -> list[VerdictRow]:
    """Run everything but what the file at `path` holds already, and add to it."""
    asked = settings.asked()
    done = {row.key: row for row in read_rows(path, VerdictRow)} if path else {}
    waiting = [key for key in asked if key not in done]
    if len(waiting) < len(asked):
        known = len(asked) - len(waiting)
        report(f"{known} of {len(asked)} runs are in {path} already and are skipped")
    if path:
        start_file(path, VerdictRow)
    rows = _here if settings.workers == 1 else _in_processes
    for row in rows(waiting, settings.workers):
        if path:
            append_row(path, row)
        report(str(row))
        done[row.key] = row
    return [done[key] for key in asked]


def _here(keys: Sequence[tuple], workers: int) -> Iterator[VerdictRow]:
    for number, key in enumerate(keys):
        if number % RUNS_OF_A_PROCESS == 0:
            jax.clear_caches()
        yield measure(*key)


def _in_processes(keys: Sequence[tuple], workers: int) -> Iterator[VerdictRow]:
    with environment(ONE_THREAD):
        pool = ProcessPoolExecutor(
            workers,
            mp_context=get_context("spawn"),
            max_tasks_per_child=RUNS_OF_A_PROCESS,
        )
        try:
            futures = [pool.submit(measure, *key) for key in keys]
            for future in as_completed(futures):
                yield future.result()
        finally:
            pool.shutdown(cancel_futures=True)

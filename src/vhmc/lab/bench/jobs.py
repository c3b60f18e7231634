"""Run many tasks, problem by problem, in one or several processes; resumable."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import NamedTuple

import jax

from vhmc.lab.bench.measure import NEEDS, Task, measure
from vhmc.lab.bench.problem import Problem
from vhmc.lab.bench.rows import Row, append_row, read_rows, start_file

ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NPROC": "1",  # the size of XLA's pool of threads
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
}
"""Environment of the workers: more threads than cores would distort the timings."""


class Job(NamedTuple):
    """All runs of one problem, the first of which includes compilation."""

    make: Callable[[], Problem]
    name: str
    tasks: tuple[Task, ...]


def run_jobs(
    jobs: Sequence[Job],
    report: Callable[[str], None],
    path: Path | None = None,
    workers: int = 1,
) -> list[Row]:
    """Run what is not in the file yet; rows come back in the order of the jobs.

    report: called with a line about each row.
    path: file that rows are added to as they arrive; nothing is stored unless given.
    workers: processes; with one, everything runs in this process.
    """
    done = {row.key: row for row in read_rows(path)} if path else {}
    asked = [(job.name, *task) for job in jobs for task in job.tasks]
    known = sum(key in done for key in asked)
    if known:
        report(f"{known} of {len(asked)} runs are in {path} already and are skipped")
    waiting = []
    for job in jobs:
        left = [task for task in job.tasks if (job.name, *task) not in done]
        if left:
            waiting.append(job._replace(tasks=tuple(left)))
    _check(waiting)
    if path:
        start_file(path)
    here = (row for job in waiting for row in _runs(job, path))
    for row in here if workers == 1 else _in_processes(waiting, path, workers):
        report(str(row))
        done[row.key] = row
    return [done[key] for key in asked]


def _check(jobs: Sequence[Job]) -> None:
    """Raise now if data or a library are missing, not after an hour."""
    for job in jobs:
        job.make()
    for method in {task.method for job in jobs for task in job.tasks} & NEEDS.keys():
        NEEDS[method]()


def _runs(job: Job, path: Path | None) -> Iterator[Row]:
    # Problems of one dimension share compiled code: each first run is to include all.
    jax.config.update("jax_enable_compilation_cache", False)
    jax.clear_caches()
    problem = job.make()
    target = problem.make()
    for number, task in enumerate(job.tasks):
        row = measure(problem, target, task, is_first=number == 0)
        if path:
            append_row(path, row)
        yield row


def _all_runs(job: Job, path: Path | None) -> list[Row]:
    rows, parent = [], parent_process()
    for row in _runs(job, path):
        rows.append(row)
        if parent is not None and not parent.is_alive():
            os._exit(1)  # the parent is gone, and another run may have begun
    return rows


def _in_processes(
    jobs: Sequence[Job], path: Path | None, workers: int
) -> Iterator[Row]:
    """Rows of each problem as its process has finished it."""
    with environment(ONE_THREAD):
        pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"))
        try:
            futures = [pool.submit(_all_runs, job, path) for job in jobs]
            for future in as_completed(futures):
                yield from future.result()
        except BrokenProcessPool as error:
            raise ChildProcessError(
                "a worker died, maybe for lack of memory: run it again to resume"
            ) from error
        finally:
            pool.shutdown(cancel_futures=True)


@contextmanager
def environment(changes: dict[str, str]) -> Iterator[None]:
    """Children inherit it when they are spawned, before they load NumPy and JAX."""
    before = dict(os.environ)
    os.environ.update(changes)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)

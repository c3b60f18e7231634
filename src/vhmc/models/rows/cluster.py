"""Distribute rows to the workers of a Dask cluster, and sum over them there."""

import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from vhmc._arguments import shown
from vhmc._imports import load_extra
from vhmc.models.rows.likelihood import RowLikelihood
from vhmc.models.rows.parquet import arrays_of, kinds_of
from vhmc.models.rows.source import Source, Sums, add_up, added, checked, chunked

LOG = logging.getLogger("vhmc")
FEW = 16
"""Partial sums sent to the client; workers first add up more than that."""
ATTEMPTS = 3
"""Attempts at one pass, if workers die and their rows are sent again."""
PATIENCE = 60.0
"""Seconds to wait while the cluster has no worker."""
LOOK_EVERY = 5.0
"""Seconds between two checks of the workers during a pass."""
CONNECTING = "10s"
"""Time to wait for a scheduler's answer."""


class LostRows(RuntimeError):
    """Workers died with rows that cannot be rebuilt."""


class Shard:
    """Rows in the memory of a worker, possibly none."""

    def __init__(self, likelihood: RowLikelihood, columns: Mapping[str, np.ndarray]):
        # Each process of XLA uses all cores unless this is set before it starts;
        # workers on one machine would compete for them.
        os.environ.setdefault("NPROC", str(threads_of_worker()))
        self._likelihood = likelihood
        has_rows = any(len(column) for column in columns.values())
        self._chunks = chunked(checked(columns)) if has_rows else []

    def __sizeof__(self) -> int:
        # Otherwise Dask takes it for a few bytes, and moves it between workers.
        return sum(c.nbytes for chunk in self._chunks for c in chunk.values())

    def total(self, summand: str, thetas: np.ndarray) -> Sums | None:
        """Sum over the rows, by as many threads as the worker has."""
        if not self._chunks:
            return None
        function = getattr(self._likelihood, summand)
        return add_up(function, thetas, self._chunks, threads_of_worker())


def threads_of_worker() -> int:
    """Threads of the Dask worker that runs this task."""
    from distributed import get_worker

    return get_worker().state.nthreads


class Cluster(Source):
    """Shards of the rows, kept on workers.

    If a worker dies, Dask rebuilds its shards from their task graph. Partial sums are
    added in the order of the shards, so the result is the same.

    client: the user's.
    send: puts the shards on the workers, at first and whenever they were lost.
    can_rebuild: whether `send` works again after a loss.
    """

    def __init__(self, client: Any, send: Callable[[], list[Any]], can_rebuild: bool):
        self._client, self._send, self._can_rebuild = client, send, can_rebuild
        self._workers = set(workers_of(client))
        self._shards = send()
        number = len(self._workers)
        self.name = f"rows on {number} Dask worker{'s' if number > 1 else ''}"

    def total(self, summand: str, thetas: np.ndarray) -> Sums:
        from distributed import KilledWorker
        from distributed.client import FutureCancelledError, FuturesCancelledError

        losses = FutureCancelledError, FuturesCancelledError, KilledWorker
        for _ in range(ATTEMPTS):
            try:
                return self._attempt(summand, thetas)
            except losses as error:
                self._note_losses()
                if not self._can_rebuild:
                    raise LostRows(
                        "a worker died with rows that cannot be rebuilt: build the "
                        "Dask collection from files, or give arrays of this process"
                    ) from error
                LOG.warning("rows were lost with their worker and are sent again")
                self._shards = []  # frees memory on the remaining workers
                self._wait_for_workers()
                self._shards = self._send()
        raise LostRows(f"workers died {ATTEMPTS} times in a row during one pass")

    def _attempt(self, summand: str, thetas: np.ndarray) -> Sums:
        submit = self._client.submit
        parts = [
            submit(Shard.total, shard, summand, thetas, pure=False)
            for shard in self._shards
        ]
        while len(parts) > FEW:
            groups = [parts[i : i + FEW] for i in range(0, len(parts), FEW)]
            parts = [submit(added, group, pure=False) for group in groups]
        self._wait(parts)
        total = added(self._client.gather(parts))
        self._note_losses()
        if total is None:
            raise ValueError("the data have no rows")
        return total

    def _wait(self, parts: list[Any]) -> None:
        """Wait for tasks; raise `LostRows` if the cluster has no worker for long."""
        from distributed import wait

        alone_since: float | None = None
        while True:
            try:
                wait(parts, timeout=LOOK_EVERY)
                return
            except TimeoutError:
                self._note_losses()
            if self._workers:
                alone_since = None
                continue
            alone_since = alone_since or time.monotonic()
            if time.monotonic() - alone_since > PATIENCE:
                raise LostRows(f"the cluster has had no worker for {PATIENCE:.0f} s")

    def _wait_for_workers(self) -> None:
        try:
            self._client.wait_for_workers(1, timeout=PATIENCE)
        except TimeoutError as error:
            raise LostRows(
                f"the cluster has had no worker for {PATIENCE:.0f} s"
            ) from error

    def _note_losses(self) -> None:
        present = set(workers_of(self._client))
        for worker in sorted(self._workers - present):
            LOG.warning("worker %s is gone; others take over its rows", worker)
        self._workers = present


def connected(client: Any) -> Any:
    """The user's client, or a new one for the address of a scheduler."""
    distributed = load_extra("distributed", "client", "dask")
    if isinstance(client, str):
        address, options = client, {"timeout": CONNECTING, "set_as_default": False}
        try:
            client = distributed.Client(address, **options)
        except (OSError, ValueError) as error:
            raise ValueError(
                f"no Dask scheduler answers at {address}: is it running, and is the "
                "address right?"
            ) from error
    if not isinstance(client, distributed.Client):
        raise ValueError(
            f"client must be a Dask client or the address of a scheduler, got "
            f"{shown(client)}"
        )
    if not workers_of(client):
        raise ValueError("the Dask cluster has no workers: start some, then try again")
    return client


def workers_of(client: Any) -> list[str]:
    """Addresses of the workers, from the scheduler."""
    # Not `scheduler_info`: the client overwrites its copy of that every two seconds
    # with one that lists no workers.
    return list(client.nthreads())


def _for_workers(parts: Sequence[Any], client: Any) -> list[list[Any]]:
    """Adjacent parts in a group per worker; fewer groups if there are fewer parts."""
    groups = np.array_split(np.arange(len(parts)), len(workers_of(client)))
    return [[parts[i] for i in group] for group in groups if len(group)]


def from_memory(
    likelihood: RowLikelihood, client: Any, columns: Mapping[str, np.ndarray]
) -> Cluster:
    """Source of arrays of this process, one shard per worker."""
    num_rows = len(next(iter(columns.values())))
    num_shards = min(len(workers_of(client)), num_rows)

    def send() -> list[Any]:
        workers = workers_of(client)
        edges = num_rows * np.arange(num_shards + 1) // num_shards
        shards = []
        for i in range(num_shards):
            part = {name: c[edges[i] : edges[i + 1]] for name, c in columns.items()}
            # In a list, as Dask scatters the values of a dict under its keys.
            place = [workers[i % len(workers)]]
            (held,) = client.scatter([part], workers=place, hash=False)
            shards.append(client.submit(Shard, likelihood, held, pure=False))
        return shards

    return Cluster(client, send, can_rebuild=True)


def from_parquet(
    likelihood: RowLikelihood, client: Any, files: Sequence[str], columns: Sequence[str]
) -> Cluster:
    """Source of files that every worker can read, one shard per worker."""
    import pyarrow.parquet

    kinds = kinds_of(files[0], columns)
    groups = [
        (file, number)
        for file in files
        for number in range(pyarrow.parquet.read_metadata(file).num_row_groups)
    ]
    parts = _for_workers(groups, client)

    def send() -> list[Any]:
        return [
            client.submit(_read_groups, likelihood, part, kinds, pure=False)
            for part in parts
        ]

    return Cluster(client, send, can_rebuild=True)


def _read_groups(
    likelihood: RowLikelihood, groups: Sequence[tuple[str, int]], kinds: Any
) -> Shard:
    import pyarrow
    import pyarrow.parquet

    names = kinds.names
    tables = []
    for file, number in groups:
        group = pyarrow.parquet.ParquetFile(file).read_row_group(number, columns=names)
        tables.append(group.select(names).cast(kinds))
    table = pyarrow.concat_tables(tables)
    return Shard(likelihood, arrays_of(table, groups[0][0]))


def from_collection(
    likelihood: RowLikelihood, client: Any, parts: Sequence[Any]
) -> Cluster:
    """Source of a Dask collection; adjacent partitions form the shard of a worker.

    parts: delayed dicts of columns.
    """
    numbers = _for_workers(range(len(parts)), client)

    def send() -> list[Any]:
        # Dask keeps the task graph as long as the shards exist.
        futures = client.compute(list(parts))
        return [
            client.submit(_joined, likelihood, [futures[i] for i in group], pure=False)
            for group in numbers
        ]

    return Cluster(client, send, can_rebuild=False)


def _joined(likelihood: RowLikelihood, parts: Sequence[Mapping[str, Any]]) -> Shard:
    names = parts[0]
    columns = {name: np.concatenate([part[name] for part in parts]) for name in names}
    return Shard(likelihood, columns)

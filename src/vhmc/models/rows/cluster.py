"""Rows on the workers of a Dask cluster: points go out, sums come back."""

import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from vhmc._arguments import shown
from vhmc.models.extras import load
from vhmc.models.rows.likelihood import RowLikelihood
from vhmc.models.rows.memory import checked, chunked
from vhmc.models.rows.parquet import as_array, kinds_of
from vhmc.models.rows.source import Source, Sums, add_up

LOG = logging.getLogger("vhmc")
FEW = 16
"""Partial sums that are sent to the client as they are; more are added on workers."""
ATTEMPTS = 3
"""Times that lost rows are sent again before the run ends."""
PATIENCE = 60.0
"""Seconds that a cluster may be without any worker before the run ends."""
LOOK_EVERY = 5.0
"""Seconds between two looks at the workers while a pass is under way."""
CONNECTING = "10s"
"""How long a scheduler may take to answer."""


class LostRows(RuntimeError):
    """Workers that died took rows along that nobody can make again."""


class Shard:
    """A part of the rows in the memory of a worker; it may be empty."""

    def __init__(self, likelihood: RowLikelihood, columns: Mapping[str, np.ndarray]):
        # XLA takes all cores of a machine for each of its processes unless it is told
        # otherwise before it starts: workers that share one would be in each other's
        # way.
        os.environ.setdefault("NPROC", str(threads_of_worker()))
        self._likelihood = likelihood
        has_rows = any(len(column) for column in columns.values())
        self._chunks = chunked(checked(columns)) if has_rows else []

    def __sizeof__(self) -> int:
        # Dask would take it for a few bytes, and move it about.
        return sum(c.nbytes for chunk in self._chunks for c in chunk.values())

    def total(self, summand: str, thetas: np.ndarray) -> Sums | None:
        """Sums over its rows, by as many threads as the worker has."""
        if not self._chunks:
            return None
        function = getattr(self._likelihood, summand)
        return add_up(function, thetas, self._chunks, threads_of_worker())


def threads_of_worker() -> int:
    """Threads of the Dask worker that runs this task."""
    from distributed import get_worker

    return get_worker().state.nthreads


class Cluster(Source):
    """Shards of the rows, persisted on workers.

    A shard stays where it is. If its worker dies Dask makes it again from its recipe;
    sums are added in the order of the shards, so the result is the same.

    client: of the user.
    send: puts the shards on the workers; again if they were lost.
    can_rebuild: whether the rows come from somewhere they can be fetched from again.
    """

    def __init__(self, client: Any, send: Callable[[], list[Any]], can_rebuild: bool):
        self._client, self._send, self._can_rebuild = client, send, can_rebuild
        self._workers = set(workers_of(client))
        self._shards = send()
        number = len(self._workers)
        self.name = f"rows on {number} Dask worker{'s' if number > 1 else ''}"

    def total(self, summand: str, thetas: np.ndarray) -> Sums:
        """One task a shard; the points go out with it."""
        from distributed import KilledWorker
        from distributed.client import FutureCancelledError, FuturesCancelledError

        for _ in range(ATTEMPTS):
            try:
                return self._attempt(summand, thetas)
            except (
                FutureCancelledError,
                FuturesCancelledError,
                KilledWorker,
            ) as error:
                self._note_losses()
                if not self._can_rebuild:
                    raise LostRows(
                        "a worker died with rows that cannot be made again: build the "
                        "Dask collection from files, or give arrays of this process"
                    ) from error
                LOG.warning("rows were lost with their worker and are sent again")
                self._shards = []  # the survivors need the room
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
        """Until they are done; a cluster without workers would wait for ever."""
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
            LOG.warning("worker %s went away; others take over its rows", worker)
        self._workers = present


def added(parts: Sequence[Sums | None]) -> Sums | None:
    """Sums of sums, in order; nothing of nothing."""
    total: Sums | None = None
    for part in parts:
        if part is not None:
            total = part if total is None else tuple(map(np.add, total, part))
    return total


def connected(client: Any) -> Any:
    """The user's client, or one for the address of a scheduler."""
    distributed = load("distributed", "client", "dask")
    if isinstance(client, str):
        client = _client_at(distributed, client)
    if not isinstance(client, distributed.Client):
        raise ValueError(
            f"client must be a Dask client or the address of a scheduler, got "
            f"{shown(client)}"
        )
    if not workers_of(client):
        raise ValueError("the Dask cluster has no workers: start some, then try again")
    return client


def _client_at(distributed: Any, address: str) -> Any:
    try:
        return distributed.Client(address, timeout=CONNECTING, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"no Dask scheduler answers at {address}: is it running, and is the "
            "address right?"
        ) from error


def workers_of(client: Any) -> list[str]:
    """Addresses of the workers, asked of the scheduler.

    Not by `scheduler_info`: it answers from a field that the client overwrites every
    two seconds with one that lists no worker.
    """
    return list(client.nthreads())


def from_memory(
    likelihood: RowLikelihood, client: Any, columns: Mapping[str, np.ndarray]
) -> Cluster:
    """Rows of this process, a part to every worker."""

    def send() -> list[Any]:
        workers = workers_of(client)
        num_rows = len(next(iter(columns.values())))
        edges = num_rows * np.arange(num_shards + 1) // num_shards
        shards = []
        for i in range(num_shards):
            part = {name: c[edges[i] : edges[i + 1]] for name, c in columns.items()}
            # In a list: Dask takes the names of a dict for those of its own.
            place = [workers[i % len(workers)]]
            (held,) = client.scatter([part], workers=place, hash=False)
            shards.append(client.submit(Shard, likelihood, held, pure=False))
        return shards

    most = len(next(iter(columns.values())))
    num_shards = min(len(workers_of(client)), most)
    return Cluster(client, send, can_rebuild=True)


def from_parquet(
    likelihood: RowLikelihood, client: Any, files: Sequence[str], columns: Sequence[str]
) -> Cluster:
    """Row groups of files that every worker can read, a part to each."""
    import pyarrow.parquet

    kinds = kinds_of(files[0], columns)
    groups = [
        (file, number)
        for file in files
        for number in range(pyarrow.parquet.read_metadata(file).num_row_groups)
    ]
    parts = np.array_split(np.arange(len(groups)), len(workers_of(client)))

    def send() -> list[Any]:
        return [
            client.submit(
                _read_groups,
                likelihood,
                [groups[i] for i in part],
                kinds,
                pure=False,
            )
            for part in parts
            if len(part)
        ]

    return Cluster(client, send, can_rebuild=True)


def _read_groups(
    likelihood: RowLikelihood, groups: Sequence[tuple[str, int]], kinds: Any
) -> Shard:
    import pyarrow
    import pyarrow.parquet

    columns = kinds.names
    tables = [
        pyarrow.parquet.ParquetFile(file)
        .read_row_group(number, columns=columns)
        .select(columns)
        .cast(kinds)
        for file, number in groups
    ]
    table = pyarrow.concat_tables(tables)
    return Shard(
        likelihood,
        {name: as_array(table[name], name, groups[0][0]) for name in columns},
    )


def from_collection(
    likelihood: RowLikelihood, client: Any, parts: Sequence[Any]
) -> Cluster:
    """Partitions of a Dask collection, those beside each other on one worker.

    parts: of delayed columns by name.
    """
    numbers = np.array_split(np.arange(len(parts)), len(workers_of(client)))

    def send() -> list[Any]:
        # Dask keeps how they are made for as long as the shards are wanted.
        futures = client.compute(list(parts))
        return [
            client.submit(_joined, likelihood, [futures[i] for i in group], pure=False)
            for group in numbers
            if len(group)
        ]

    return Cluster(client, send, can_rebuild=False)


def _joined(likelihood: RowLikelihood, parts: Sequence[Mapping[str, Any]]) -> Shard:
    return Shard(
        likelihood,
        {name: np.concatenate([part[name] for part in parts]) for name in parts[0]},
    )

"""Sum a likelihood over all rows of the data, in one pass over chunks of them."""

import abc
import itertools
import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax.numpy as jnp
import numpy as np

from vhmc.models.batches import GROUPS
from vhmc.models.rows.likelihood import RowLikelihood, Rows
from vhmc.numerics.chain_groups import num_cores

CHUNK_BYTES = 8 * 2**20
"""Bytes of a chunk's columns: small enough for intermediate results to stay cached."""
AHEAD = 2
"""Chunks that are read ahead of the computation."""
Sums = tuple[np.ndarray, ...]
Summand = Callable[[np.ndarray, Rows], tuple[Any, ...]]


class Source(abc.ABC):
    """Data that can be summed over.

    name: where the rows are, in a few words.
    """

    name: str

    @abc.abstractmethod
    def total(self, summand: str, thetas: np.ndarray) -> Sums:
        """Sum a method of `RowLikelihood`, given by its name, over all rows.

        The order of summation depends on the data alone.
        """


class Chunks(Source):
    """Rows that this process reads chunk by chunk.

    name: where the rows are, in a few words.
    likelihood: of the rows.
    read: returns the chunks, at every pass.
    """

    def __init__(
        self, name: str, likelihood: RowLikelihood, read: Callable[[], Iterable[Rows]]
    ):
        self.name, self._likelihood, self._read = name, likelihood, read

    def total(self, summand: str, thetas: np.ndarray) -> Sums:
        return add_up(getattr(self._likelihood, summand), thetas, self._read())


def in_memory(likelihood: RowLikelihood, columns: Mapping[str, np.ndarray]) -> Chunks:
    """Source of arrays of this process."""
    chunks = chunked(columns)
    return Chunks("rows in memory", likelihood, lambda: chunks)


def checked(columns: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Columns as numeric arrays; raise an error if their numbers of rows differ."""
    arrays = {name: np.asarray(column) for name, column in columns.items()}
    for name, array in arrays.items():
        if array.ndim < 1 or array.dtype.kind not in "biuf":
            raise ValueError(f"data {name} must be an array of numbers with rows")
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise ValueError(f"the arrays of data must have as many rows each, got {found}")
    if not lengths or not next(iter(lengths.values())):
        raise ValueError("the data have no rows")
    return arrays


def chunked(columns: Mapping[str, np.ndarray]) -> list[dict[str, Any]]:
    """Chunks of two sizes at most, as each size is compiled."""
    num_rows = len(next(iter(columns.values())))
    num_chunks = -(-num_rows // rows_per_chunk(list(columns.values())))
    edges = num_rows * np.arange(num_chunks + 1) // num_chunks
    return [
        {name: jnp.asarray(column[begin:end]) for name, column in columns.items()}
        for begin, end in itertools.pairwise(edges)
    ]


def rows_per_chunk(columns: Sequence[Any]) -> int:
    """Rows that fit into a chunk; `columns` are arrays, or one row of each.

    Where rows are short, the intermediate results of a row for a group of points are
    larger than the row and count instead.
    """
    size = sum(np.dtype(c.dtype).itemsize * int(np.prod(c.shape[1:])) for c in columns)
    return max(1, CHUNK_BYTES // max(size, 8 * GROUPS[0]))


def add_up(
    summand: Summand,
    thetas: np.ndarray,
    chunks: Iterable[Rows],
    threads: int | None = None,
) -> Sums:
    """Sum over chunks in order, by one thread per core unless `threads` is given."""
    threads = threads or num_cores()
    total = added(_in_threads(lambda rows: summand(thetas, rows), chunks, threads))
    if total is None:
        raise ValueError("the data have no rows")
    return total


def added(parts: Iterable[Sums | None]) -> Sums | None:
    """Add partial sums in order; None stands for a part without rows."""
    total: Sums | None = None
    for part in parts:
        if part is not None:
            total = part if total is None else tuple(map(np.add, total, part))
    return total


def _in_threads(
    function: Callable[[Rows], tuple[Any, ...]], chunks: Iterable[Rows], threads: int
) -> Iterator[Sums]:
    """Results in order; at most one chunk more than threads is held at a time."""
    with ThreadPoolExecutor(threads) as pool:
        waiting: list[Any] = []
        for rows in chunks:
            waiting.append(pool.submit(_on_host, function, rows))
            if len(waiting) > threads:
                yield waiting.pop(0).result()
        for future in waiting:
            yield future.result()


def _on_host(function: Callable[[Rows], tuple[Any, ...]], rows: Rows) -> Sums:
    return tuple(np.asarray(part) for part in function(rows))


def read_ahead(chunks: Iterable[Any], depth: int = AHEAD) -> Iterator[Any]:
    """The same chunks, read by a thread that is up to `depth` chunks ahead."""
    shelf: queue.Queue = queue.Queue(depth)
    is_abandoned = threading.Event()
    end = object()

    def put(item: Any) -> bool:
        while not is_abandoned.is_set():
            try:
                shelf.put(item, timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def read() -> None:
        try:
            for chunk in chunks:
                if not put(chunk):
                    return
            put(end)
        except BaseException as error:  # raised again by the thread that waits
            put(error)

    threading.Thread(target=read, daemon=True).start()
    try:
        while (item := shelf.get()) is not end:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        is_abandoned.set()

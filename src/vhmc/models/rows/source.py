"""Where rows are: something that adds up a function over all of them, in one pass."""

import abc
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from vhmc._cores import num_cores
from vhmc.models.batches import GROUPS
from vhmc.models.rows.likelihood import Rows

CHUNK_BYTES = 8 * 2**20
"""Of a chunk's columns: with what is computed from them it stays near the caches."""
Sums = tuple[np.ndarray, ...]
Summand = Callable[[np.ndarray, Rows], tuple[Any, ...]]


class Source(abc.ABC):
    """Rows that can be passed over.

    name: where they are, in a few words.
    """

    name: str

    @abc.abstractmethod
    def total(self, summand: str, thetas: np.ndarray) -> Sums:
        """Sums over all rows of one of the likelihood's functions, by its name.

        The order of summation depends on nothing but the data.
        """


def add_up(
    summand: Summand,
    thetas: np.ndarray,
    chunks: Iterable[Rows],
    threads: int | None = None,
) -> Sums:
    """Sums over chunks as they come, by as many threads as there are cores."""
    total: Sums | None = None
    threads = threads or num_cores()
    for part in _in_threads(lambda rows: summand(thetas, rows), chunks, threads):
        total = part if total is None else tuple(map(np.add, total, part))
    if total is None:
        raise ValueError("the data have no rows")
    return total


def _in_threads(
    function: Callable[[Rows], tuple[Any, ...]], chunks: Iterable[Rows], threads: int
) -> Iterator[Sums]:
    """Answers in order; few more chunks than threads are held at a time."""
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


def rows_of_a_chunk(columns: Sequence[Any]) -> int:
    """As many rows as fit; `columns` are arrays, or one row of each.

    What is computed of a row for all points of a group has to fit as well, which
    matters where rows are short.
    """
    size = sum(np.dtype(c.dtype).itemsize * int(np.prod(c.shape[1:])) for c in columns)
    return max(1, CHUNK_BYTES // max(size, 8 * GROUPS[0]))

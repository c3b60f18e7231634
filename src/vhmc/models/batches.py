"""Compile traced functions of one point for batches of points."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

GROUPS = 32, 16, 8, 1
"""Batch sizes of `in_groups`, largest first, for functions that scan data."""
MODEL_GROUPS = 16, 4, 1
"""The same for models: rounds are of 16 points, a search goes on with four or one."""


def batched(function: Callable[..., Any]) -> Callable[..., Any]:
    """Vectorise a traced function over rows; it takes and returns NumPy arrays.

    Batch sizes are rounded up to a few, as JAX compiles anew for each size.
    """
    compiled = jax.jit(jax.vmap(function))

    def on_rows(*rows: np.ndarray) -> Any:
        number = len(rows[0])
        answers = compiled(*(padded(part) for part in rows))
        return jax.tree.map(lambda leaf: np.asarray(leaf)[:number], answers)

    return on_rows


def padded(rows: np.ndarray, least: int = 1) -> np.ndarray:
    """Pad rows to the next batch size by repeating the last one."""
    number = len(rows)
    if not number:
        return rows
    padding = ((0, _round_up(max(number, least)) - number), (0, 0))
    return np.pad(rows, padding, mode="edge")


def in_groups(
    compiled: Callable[[np.ndarray], tuple[Any, ...]],
    rows: np.ndarray,
    sizes: tuple[int, ...] = GROUPS,
) -> tuple[np.ndarray, ...]:
    """Run a compiled function of many rows on groups of a few sizes.

    For functions that take long to compile for a new size. Where they scan data, a few
    points are faster one by one than together, as the data stay in the cache.

    sizes: of the groups, largest first, the last one being 1.
    """
    parts, begin = [], 0
    while begin < len(rows):
        left = len(rows) - begin
        size = next(size for size in sizes if left > size // 2)
        some = rows[begin : begin + size]
        group = np.pad(some, ((0, size - len(some)), (0, 0)), mode="edge")
        parts.append([np.asarray(part)[: len(some)] for part in compiled(group)])
        begin += size
    return tuple(np.concatenate(some) for some in zip(*parts, strict=True))


def _round_up(number: int) -> int:
    """Round up to a power of two up to 16, to three binary digits above."""
    bits = max(number - 1, 0).bit_length()
    grain = 1 << (bits if number <= 16 else bits - 3)
    return -(-number // grain) * grain

"""Functions of one point, compiled for many."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np


def batched(function: Callable[..., Any]) -> Callable[..., Any]:
    """Run a traced function of points on rows of them, and give NumPy's arrays back.

    JAX compiles for every batch size: rounding up leaves only a few of them.
    """
    compiled = jax.jit(jax.vmap(function))

    def on_rows(*rows: np.ndarray) -> Any:
        number = len(rows[0])
        answers = compiled(*(padded(part) for part in rows))
        return jax.tree.map(lambda leaf: np.asarray(leaf)[:number], answers)

    return on_rows


def padded(rows: np.ndarray) -> np.ndarray:
    """Rows up to the next batch size, the last one repeated."""
    number = len(rows)
    if not number:
        return rows
    padding = ((0, _round_up(number) - number), (0, 0))
    return np.pad(rows, padding, mode="edge")


def _round_up(number: int) -> int:
    """The next power of two up to 16, three binary digits above."""
    bits = max(number - 1, 0).bit_length()
    grain = 1 << (bits if number <= 16 else bits - 3)
    return -(-number // grain) * grain

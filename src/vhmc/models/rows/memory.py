"""Rows in memory: arrays, or a table."""

import itertools
from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from vhmc.models.rows.likelihood import RowLikelihood
from vhmc.models.rows.source import Source, Sums, add_up, rows_of_a_chunk


class InMemory(Source):
    """Arrays of this process, in chunks."""

    name = "rows in memory"

    def __init__(self, likelihood: RowLikelihood, columns: Mapping[str, np.ndarray]):
        self._likelihood = likelihood
        self._chunks = chunked(columns)

    def total(self, summand: str, thetas: np.ndarray) -> Sums:
        """In threads over chunks."""
        return add_up(getattr(self._likelihood, summand), thetas, self._chunks)


def chunked(columns: Mapping[str, np.ndarray]) -> list[dict[str, Any]]:
    """Chunks of nearly equal size: of two sizes at most, so two programs."""
    num_rows = len(next(iter(columns.values())))
    num_chunks = -(-num_rows // rows_of_a_chunk(list(columns.values())))
    edges = num_rows * np.arange(num_chunks + 1) // num_chunks
    return [
        {name: jnp.asarray(column[begin:end]) for name, column in columns.items()}
        for begin, end in itertools.pairwise(edges)
    ]


def is_numeric(column: Any) -> bool:
    """Whether it can be computed with."""
    return np.asarray(column[:1]).dtype.kind in "biuf"


def checked(columns: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Columns as arrays of numbers with as many rows each."""
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

"""Split a Dask collection into partitions, and stream them without a cluster."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from vhmc.models.rows.likelihood import RowLikelihood
from vhmc.models.rows.source import Chunks, read_ahead


def from_partitions(
    likelihood: RowLikelihood, parts: Sequence[Any], num_rows: int
) -> Chunks:
    """Source that computes the partitions again at every pass, one after the other.

    parts: as from `partitions`.
    num_rows: per chunk.
    """
    name = "partitions of a Dask collection"
    return Chunks(name, likelihood, lambda: read_ahead(_chunks(parts, num_rows)))


def _chunks(parts: Sequence[Any], num_rows: int) -> Iterator[dict[str, np.ndarray]]:
    """Chunks of `num_rows` rows; only the last is shorter."""
    rest: dict[str, np.ndarray] = {}
    for part in parts:
        new = part.compute(scheduler="synchronous")
        rest = (
            {name: np.concatenate([rest[name], new[name]]) for name in new}
            if rest
            else new
        )
        while _length(rest) >= num_rows:
            yield {name: column[:num_rows] for name, column in rest.items()}
            rest = {name: column[num_rows:] for name, column in rest.items()}
    if _length(rest):
        yield rest


def _length(columns: Mapping[str, np.ndarray]) -> int:
    return len(next(iter(columns.values()))) if columns else 0


def is_dask(data: Any) -> bool:
    """Whether `data` is a Dask data frame or a dict of Dask arrays."""
    if isinstance(data, Mapping):
        return bool(data) and all(hasattr(c, "__dask_graph__") for c in data.values())
    return hasattr(data, "__dask_graph__") and hasattr(data, "columns")


def current_client() -> Any:
    """The Dask client of this process, or None."""
    from distributed import get_client

    try:
        return get_client()
    except ValueError:
        return None


def first_rows(data: Any) -> dict[str, np.ndarray]:
    """One row of zeros for each numeric column."""
    if isinstance(data, Mapping):
        return {
            name: np.zeros((1, *a.shape[1:]), dtype=a.dtype) for name, a in data.items()
        }
    return {
        str(name): np.zeros(1, dtype=kind)
        for name, kind in data.dtypes.items()
        if isinstance(kind, np.dtype) and kind.kind in "biuf"
    }


def partitions(data: Any, names: Sequence[str]) -> list[Any]:
    """Delayed partitions, each a dict of the columns in `names`."""
    import dask

    columns_of = dask.delayed(_columns, pure=True)
    if not isinstance(data, Mapping):
        chosen = data[[name for name in data.columns if str(name) in names]]
        return [columns_of(part) for part in chosen.to_delayed()]
    arrays = {name: data[name] for name in names}
    first = next(iter(arrays.values()))
    for name, array in arrays.items():
        if array.chunks[0] != first.chunks[0]:
            raise ValueError(
                f"the Dask arrays must have their rows in the same chunks; {name} "
                "has others: rechunk it"
            )
    # One chunk along all other axes, so that a partition has whole rows.
    blocks = {
        name: a.rechunk({axis: -1 for axis in range(1, a.ndim)}).to_delayed().ravel()
        for name, a in arrays.items()
    }
    return [
        columns_of({name: blocks[name][i] for name in arrays})
        for i in range(len(first.chunks[0]))
    ]


def _columns(part: Any) -> dict[str, np.ndarray]:
    return {str(name): np.asarray(part[name]) for name in part}

"""Collections of Dask as lists of partitions, each a dict of columns."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


def is_dask(data: Any) -> bool:
    """Whether it is a Dask data frame, or a dict of Dask arrays."""
    if isinstance(data, Mapping):
        return bool(data) and all(hasattr(c, "__dask_graph__") for c in data.values())
    return hasattr(data, "__dask_graph__") and hasattr(data, "columns")


def current_client() -> Any:
    """The client that the user's process has, if any."""
    from distributed import get_client

    try:
        return get_client()
    except ValueError as error:
        raise ValueError(
            "a Dask collection needs a cluster: give the client of one"
        ) from error


def partitions(data: Any) -> tuple[list[Any], dict[str, Any]]:
    """Delayed partitions, and a few rows that show names and types."""
    import dask

    columns_of = dask.delayed(_columns, pure=True)
    if isinstance(data, Mapping):
        first = next(iter(data.values()))
        for name, array in data.items():
            if array.chunks[0] != first.chunks[0]:
                raise ValueError(
                    f"the Dask arrays must have their rows in the same chunks; {name} "
                    "has others: rechunk it"
                )
        # One chunk across: a row is whole wherever it is.
        arrays = {
            name: a.rechunk({axis: -1 for axis in range(1, a.ndim)})
            for name, a in data.items()
        }
        blocks = {name: a.to_delayed().ravel() for name, a in arrays.items()}
        parts = [
            columns_of({name: blocks[name][i] for name in arrays})
            for i in range(len(first.chunks[0]))
        ]
        some = {
            name: np.zeros((1, *a.shape[1:]), dtype=a.dtype)
            for name, a in arrays.items()
        }
        return parts, some
    parts = [columns_of(part) for part in data.to_delayed()]
    some = {
        str(name): np.zeros(1, dtype=kind)
        for name, kind in data.dtypes.items()
        if isinstance(kind, np.dtype) and kind.kind in "biuf"
    }
    return parts, some


def only(part: Any, names: Sequence[str]) -> Any:
    """The columns that are needed, of a delayed partition."""
    import dask

    return dask.delayed(_chosen, pure=True)(part, list(names))


def _columns(part: Any) -> dict[str, Any]:
    return {str(name): part[name] for name in part}


def _chosen(part: Mapping[str, Any], names: Sequence[str]) -> dict[str, np.ndarray]:
    return {name: np.asarray(part[name]) for name in names}

"""What the user hands over as data, and which of its columns are asked for."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from vhmc._arguments import shown


class Asked(dict):
    """Columns that remember which of them were asked for."""

    def __init__(self, columns: Mapping[str, Any]):
        super().__init__(columns)
        self.names: list[str] = []

    def __getitem__(self, name: str) -> Any:
        if name not in self:
            raise ValueError(
                f"log_likelihood asks for {name!r}, the data have {', '.join(self)}"
            )
        if name not in self.names:
            self.names.append(name)
        return super().__getitem__(name)


def asked_columns(
    likelihood: Callable[[Any, Any], Any], start: np.ndarray, columns: Mapping[str, Any]
) -> list[str]:
    """Names of the columns that are used; traced, which costs no pass.

    columns: shapes and types of a few rows.
    """
    names: list[str] = []

    def trace(theta: Any, rows: dict[str, Any]) -> Any:
        asked = Asked(rows)
        answer = likelihood(theta, asked)
        names.extend(asked.names)
        return answer

    jax.eval_shape(trace, start, dict(columns))
    if not names:
        raise ValueError("log_likelihood uses none of the data's columns")
    return names


def as_columns(data: Any) -> dict[str, Any] | None:
    """Columns of what is in memory: a dict, or a table of pandas, polars or Arrow."""
    if isinstance(data, Mapping):
        return dict(data)
    names = getattr(data, "column_names", None)  # Arrow
    if names is None:
        names = getattr(data, "columns", None)  # pandas and polars
    if names is None or not hasattr(data, "__getitem__"):
        return None
    return {str(name): data[name] for name in names}


def as_path(data: Any) -> Path | None:
    """A path, if that is what it is."""
    return Path(data) if isinstance(data, str | Path) else None


def refuse(data: Any) -> ValueError:
    """What to say of anything else."""
    return ValueError(
        "data must be a dict of arrays, a table, the path of Parquet files or a Dask "
        f"collection, got {shown(data)}"
    )

"""What the user hands over as data, and which of its columns are asked for."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from vhmc._arguments import shown


def asked_columns(
    likelihood: Callable[[Any, Any], Any], start: np.ndarray, columns: Mapping[str, Any]
) -> list[str]:
    """Names of the columns that are used; traced, which costs no pass.

    columns: shapes and types of a few rows.
    """
    names = list(columns)
    try:
        program = _traced(likelihood, start, columns)
    except KeyError as error:
        if error.args and error.args[0] in names:
            raise
        raise ValueError(
            f"log_likelihood asks for {error}, the data have {', '.join(names)}"
        ) from error
    used = {id(variable) for step in program.eqns for variable in step.invars}
    used |= {id(variable) for variable in program.outvars}
    asked = [
        name
        for name, variable in zip(names, program.invars[1:], strict=True)
        if id(variable) in used
    ]
    if not asked:
        raise ValueError("log_likelihood uses none of the data's columns")
    try:
        _traced(likelihood, start, {name: columns[name] for name in asked})
    except (KeyError, TypeError, ValueError):  # it wants to see the others as well
        return names
    return asked


def _traced(
    likelihood: Callable[[Any, Any], Any], start: np.ndarray, columns: Mapping[str, Any]
) -> Any:
    """The program, with the parameters and then the columns as its inputs."""

    def trace(theta: Any, *rows: Any) -> Any:
        return likelihood(theta, dict(zip(columns, rows, strict=True)))

    return jax.make_jaxpr(trace)(start, *columns.values()).jaxpr


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

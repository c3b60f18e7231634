"""Turn a likelihood that is a sum over the rows of tall data into a target."""

import logging
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from vhmc._arguments import shown
from vhmc._imports import load_extra
from vhmc.evaluation.target import Answers, Target
from vhmc.evaluation.user_code import Guarded
from vhmc.models.batches import batched, padded
from vhmc.models.host import HostTarget
from vhmc.models.parameters import Parameters
from vhmc.models.rows import cluster, collection, parquet
from vhmc.models.rows.likelihood import RowLikelihood
from vhmc.models.rows.source import Source, checked, in_memory, rows_per_chunk
from vhmc.numerics.constraints import AbstractConstraint

LOG = logging.getLogger("vhmc")


def from_rows(
    log_likelihood: Callable[[Any, Any], Any],
    log_prior: Callable[[Any], Any],
    data: Any,
    init: Any,
    constraints: Mapping[str, AbstractConstraint] | None = None,
    *,
    client: Any = None,
) -> Target:
    """Target of a log likelihood, written in JAX, that is a sum over rows.

    All points of a batch are evaluated in one pass over the data, so many points cost
    little more than one. Memory holds the columns that the likelihood uses, or a few
    chunks of them if the data are files.

    log_likelihood: takes parameters and rows, a dict of columns, and returns the sum
        over these rows. It is called with chunks of the data, of any number of rows.
    log_prior: takes parameters; the Jacobian of the constraints is added here.
    data: a dict of arrays whose first axis is the rows; a table of pandas, polars or
        Arrow; the path of a Parquet file or of a folder of them, which is streamed; a
        Dask data frame; or a dict of Dask arrays.
    init, constraints: as in `from_jax`.
    client: a Dask client, or the address of a scheduler: the rows are then distributed
        to its workers and stay there. Without one, no cluster is started. A Dask
        collection then goes to the client of this process, if there is one; otherwise
        it is computed at every pass, one partition at a time.
    """
    parameters = Parameters(init, constraints or {})
    functions = {"log_likelihood": log_likelihood, "log_prior": log_prior}
    for name, function in functions.items():
        if not callable(function):
            raise ValueError(f"{name} must be a function")
    likelihood = RowLikelihood(log_likelihood, parameters)
    connection: Any = None if client is None else cluster.connected(client)
    is_ours = connection is not None and connection is not client
    try:
        source = _source(likelihood, data, connection)
    except Exception:
        if is_ours:
            connection.close()
        raise
    if is_ours:
        weakref.finalize(source, connection.close)  # when the target is deleted
    return RowsTarget(source, parameters, log_prior)


def _source(likelihood: RowLikelihood, data: Any, client: Any) -> Source:
    if isinstance(data, str | Path):
        return _from_files(likelihood, parquet.parquet_files(Path(data)), client)
    if collection.is_dask(data):
        return _from_collection(likelihood, data, client)
    columns = _columns(data)
    first = {name: np.asarray(column[:1]) for name, column in columns.items()}
    some = {name: row for name, row in first.items() if row.dtype.kind in "biuf"}
    names = likelihood.columns(checked(some))
    arrays = checked({name: columns[name] for name in names})
    if client is not None:
        return cluster.from_memory(likelihood, client, arrays)
    return in_memory(likelihood, arrays)


def _from_files(likelihood: RowLikelihood, files: list[str], client: Any) -> Source:
    load_extra("pyarrow", "data in Parquet files", "parquet")
    some = parquet.first_rows(files[0])
    names = likelihood.columns(some)
    parquet.check_columns(files, names)
    if client is not None:
        return cluster.from_parquet(likelihood, client, files, names)
    size = rows_per_chunk([some[name] for name in names])
    return parquet.from_files(likelihood, files, names, size)


def _from_collection(likelihood: RowLikelihood, data: Any, client: Any) -> Source:
    load_extra("distributed", "a Dask collection", "dask")
    client = collection.current_client() if client is None else client
    some = collection.first_rows(data)
    names = likelihood.columns(some)
    parts = collection.partitions(data, names)
    if client is not None:
        return cluster.from_collection(likelihood, client, parts)
    size = rows_per_chunk([some[name] for name in names])
    return collection.from_partitions(likelihood, parts, size)


def _columns(data: Any) -> dict[str, Any]:
    """Columns of a dict, or of a table of pandas, polars or Arrow."""
    if isinstance(data, Mapping):
        return dict(data)
    names = getattr(data, "column_names", None)  # Arrow
    if names is None:
        names = getattr(data, "columns", None)  # pandas and polars
    if names is None or not hasattr(data, "__getitem__"):
        raise ValueError(
            "data must be a dict of arrays, a table, the path of Parquet files or a "
            f"Dask collection, got {shown(data)}"
        )
    return {str(name): data[name] for name in names}


class RowsTarget(HostTarget):
    """A prior, and a likelihood that is summed over the rows of a source.

    source: the rows.
    parameters: names, shapes and constraints.
    log_prior: the user's.
    """

    def __init__(
        self, source: Source, parameters: Parameters, log_prior: Callable[[Any], Any]
    ):
        def prior(theta: jax.Array) -> jax.Array:
            values, log_jacobian = parameters.unflatten(theta)
            return log_prior(values) + log_jacobian

        self._source = source
        self._prior = batched(jax.value_and_grad(prior))
        self._prior_hessian = jax.jit(jax.hessian(prior))
        super().__init__(self._answers, parameters, source.name, is_serial=False)

    def _answers(self, thetas: np.ndarray) -> Answers:
        # At least 16, so that few sizes are compiled: that takes longer than running.
        number = len(thetas)
        prior, prior_grad = (part[:number] for part in self._prior(padded(thetas, 16)))
        value, grad = self._source.total("values_and_grads", thetas)
        return Answers(prior + value, prior_grad + grad, [""] * len(thetas))

    def hessian(self, theta: np.ndarray) -> np.ndarray:
        """Second derivatives by autodiff in one pass, counted as `dim` evaluations."""
        self.charge(self.dim)
        total, reason = Guarded(self._source.total)("hessians", theta[None])
        if reason:
            LOG.warning("the curvature is not known: %s", reason)
            return np.full((self.dim, self.dim), np.nan)
        return -(total[0][0] + np.asarray(self._prior_hessian(theta)))

    @property
    def hessian_price(self) -> int:
        return self.dim

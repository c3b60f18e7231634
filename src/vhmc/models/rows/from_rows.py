"""Models whose likelihood is a sum over the rows of a tall table."""

import logging
import weakref
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np

from vhmc.evaluation.guard import Guarded
from vhmc.evaluation.target import Answers, Target
from vhmc.models.batches import batched, padded
from vhmc.models.extras import load
from vhmc.models.host import HostTarget
from vhmc.models.parameters import Parameters
from vhmc.models.rows import cluster, collection, memory, parquet, table
from vhmc.models.rows.likelihood import RowLikelihood
from vhmc.models.rows.source import Source, rows_of_a_chunk
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
    """Target of a log likelihood that is a sum over rows, in JAX.

    All points of a round are evaluated in one pass over the data: many cost little more
    than one. Memory holds the columns that the likelihood asks for, or a few chunks of
    them where the data are files.

    log_likelihood: takes parameters and rows, a dict of columns, and returns the sum
        over the rows it is given. It is called with parts of the data, in any number.
    log_prior: takes parameters; the Jacobian of the constraints is added here.
    data: a dict of arrays whose first axes are the rows; a table of pandas, polars or
        Arrow; the path of a Parquet file or of a folder of them, which is streamed; or
        a Dask data frame, or a dict of Dask arrays.
    init, constraints: as in `from_jax`.
    client: a Dask client, or the address of a scheduler: the rows are then shared out
        among its workers and stay there. Without one no cluster is needed, and none is
        started: a Dask collection is then computed anew at every pass, a partition at
        a time, unless this process has a client already.
    """
    parameters = Parameters(init, constraints or {})
    for name, function in (
        ("log_likelihood", log_likelihood),
        ("log_prior", log_prior),
    ):
        if not callable(function):
            raise ValueError(f"{name} must be a function")
    likelihood = RowLikelihood(log_likelihood, parameters)
    connection: Any = None if client is None else cluster.connected(client)
    is_ours = connection is not None and connection is not client
    try:
        source = _source(likelihood, parameters.start, data, connection)
    except Exception:
        if is_ours:
            connection.close()
        raise
    if is_ours:
        weakref.finalize(source, connection.close)  # it ends with the target
    return RowsTarget(source, parameters, log_prior)


def _source(
    likelihood: RowLikelihood, start: np.ndarray, data: Any, client: Any
) -> Source:
    path = table.as_path(data)
    if path is not None:
        return _files(likelihood, start, parquet.parquet_files(path), client)
    if collection.is_dask(data):
        load("distributed", "a Dask collection", "dask")
        client = collection.current_client() if client is None else client
        some = collection.first_rows(data)
        names = table.asked_columns(likelihood, start, some)
        parts = collection.partitions(data, names)
        if client is not None:
            return cluster.from_collection(likelihood, client, parts)
        number = rows_of_a_chunk([some[name] for name in names])
        return collection.Streamed(likelihood, parts, number)
    columns = table.as_columns(data)
    if columns is None:
        raise table.refuse(data)
    some = {name: c[:1] for name, c in columns.items() if memory.is_numeric(c)}
    names = table.asked_columns(likelihood, start, memory.checked(some))
    arrays = memory.checked({name: columns[name] for name in names})
    if client is not None:
        return cluster.from_memory(likelihood, client, arrays)
    return memory.InMemory(likelihood, arrays)


def _files(
    likelihood: RowLikelihood, start: np.ndarray, files: list[str], client: Any
) -> Source:
    load("pyarrow", "data in Parquet files", "parquet")
    some = parquet.first_rows(files[0])
    names = table.asked_columns(likelihood, start, some)
    parquet.check_columns(files, names)
    if client is not None:
        return cluster.from_parquet(likelihood, client, files, names)
    number = rows_of_a_chunk([some[name] for name in names])
    return parquet.Parquet(likelihood, files, names, number)


class RowsTarget(HostTarget):
    """A prior, and a likelihood that a source adds up.

    source: where the rows are.
    parameters: names, shapes and constraints.
    log_prior: of the user.
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
        # One batch size serves nearly all: priors compile for longer than they run.
        number = len(thetas)
        prior, prior_grad = (part[:number] for part in self._prior(padded(thetas, 16)))
        value, grad = self._source.total("values_and_grads", thetas)
        return Answers(prior + value, prior_grad + grad, [""] * len(thetas))

    def hessian(self, theta: np.ndarray) -> np.ndarray:
        """Second derivatives by autodiff in one pass, counted as `dim` calls."""
        self.charge(self.dim)
        total, reason = Guarded(self._source.total)("hessians", theta[None])
        if reason:
            LOG.warning("the curvature is not known: %s", reason)
            return np.full((self.dim, self.dim), np.nan)
        return -(total[0][0] + np.asarray(self._prior_hessian(theta)))

    @property
    def hessian_price(self) -> int:
        """As many calls as dimensions."""
        return self.dim

"""The user's log likelihood of rows, compiled for many parameter vectors at once."""

import functools
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from vhmc._types import Scalar, Vector
from vhmc.models.batches import in_groups
from vhmc.models.parameters import Parameters

Rows = Mapping[str, Any]
"""Columns by name, all with the same number of rows."""


class RowLikelihood:
    """A log likelihood that is a sum over rows; workers receive it pickled.

    function: the user's, from parameters and rows to the sum over these rows.
    parameters: names, shapes and constraints.
    """

    def __init__(self, function: Callable[[Any, Any], Any], parameters: Parameters):
        self._function, self._parameters = function, parameters

    def __call__(self, theta: Vector, rows: Rows) -> Scalar:
        """Log likelihood of rows at an unconstrained vector."""
        values, _ = self._parameters.unflatten(theta)
        total = jnp.asarray(self._function(values, rows), dtype=float)
        if total.shape != ():
            raise ValueError(
                "log_likelihood must return one number, the sum over its rows, got "
                f"shape {total.shape}"
            )
        return total

    def values_and_grads(
        self, thetas: np.ndarray, rows: Rows
    ) -> tuple[np.ndarray, ...]:
        """Log likelihoods and gradients at unconstrained vectors, one per row."""
        return in_groups(lambda some: self._values_and_grads(some, rows), thetas)

    def hessians(self, thetas: np.ndarray, rows: Rows) -> tuple[jax.Array]:
        """Second derivatives at unconstrained vectors, one per row."""
        return (self._hessians(thetas, rows),)

    def columns(self, some: Mapping[str, Any]) -> list[str]:
        """Names of the columns that the function uses, found by tracing.

        some: one row of each column, for its shape and type.
        """
        names = list(some)
        try:
            program = self._traced(some)
        except KeyError as error:
            if error.args and error.args[0] in names:
                raise
            raise ValueError(
                f"log_likelihood asks for {error}, the data have {', '.join(names)}"
            ) from error
        used = {id(variable) for step in program.eqns for variable in step.invars}
        used |= {id(variable) for variable in program.outvars}
        inputs = zip(names, program.invars[1:], strict=True)
        asked = [name for name, variable in inputs if id(variable) in used]
        if not asked:
            raise ValueError("log_likelihood uses none of the data's columns")
        try:
            self._traced({name: some[name] for name in asked})
        except (KeyError, TypeError, ValueError):  # it needs the others to be present
            return names
        return asked

    def _traced(self, columns: Mapping[str, Any]) -> Any:
        """The program, whose inputs are the parameters and then the columns."""

        def trace(theta: Any, *rows: Any) -> Any:
            return self(theta, dict(zip(columns, rows, strict=True)))

        start = self._parameters.start
        return jax.make_jaxpr(trace)(start, *columns.values()).jaxpr

    def _in_double(self, theta: Vector, rows: Rows) -> Scalar:
        """Compute in 64 bits, as sums need, although columns may be stored in 32."""
        wide = {
            name: c.astype(float) if jnp.issubdtype(c.dtype, jnp.floating) else c
            for name, c in rows.items()
        }
        return self(theta, wide)

    @functools.cached_property
    def _values_and_grads(self) -> Callable[..., Any]:
        function = jax.value_and_grad(self._in_double)
        return jax.jit(jax.vmap(function, in_axes=(0, None)))

    @functools.cached_property
    def _hessians(self) -> Callable[..., Any]:
        function = jax.hessian(self._in_double)
        return jax.jit(jax.vmap(function, in_axes=(0, None)))

    def __getstate__(self) -> dict[str, Any]:
        # A compiled program cannot be pickled: a worker compiles its own.
        return {"_function": self._function, "_parameters": self._parameters}

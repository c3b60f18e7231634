"""The user's sum over rows, for many parameters at once: all that a source is asked."""

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
"""Columns by name; all have as many rows."""


class RowLikelihood:
    """A log likelihood that adds up the rows it is given; it can be sent to a worker.

    function: of the user, from parameters and rows to their sum.
    parameters: names, shapes and constraints.
    """

    def __init__(self, function: Callable[[Any, Any], Any], parameters: Parameters):
        self._function, self._parameters = function, parameters

    def __call__(self, theta: Vector, rows: Rows) -> Scalar:
        """At a free vector."""
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
        """Sums and their gradients at several free vectors, one a row."""
        return in_groups(lambda some: self._values_and_grads(some, rows), thetas)

    def hessians(self, thetas: np.ndarray, rows: Rows) -> tuple[jax.Array]:
        """Second derivatives."""
        return self._hessians(thetas, rows)

    def _of_doubles(self, theta: Vector, rows: Rows) -> Scalar:
        """Columns in 32 bits take half the memory, but sums of them want 64."""
        return self(theta, {name: _in_double(column) for name, column in rows.items()})

    @functools.cached_property
    def _values_and_grads(self) -> Callable[..., Any]:
        function = jax.value_and_grad(self._of_doubles)
        return jax.jit(jax.vmap(function, in_axes=(0, None)))

    @functools.cached_property
    def _hessians(self) -> Callable[..., Any]:
        def hessians(thetas, rows):
            function = jax.hessian(self._of_doubles)
            return (jax.vmap(function, in_axes=(0, None))(thetas, rows),)

        return jax.jit(hessians)

    def __getstate__(self) -> dict[str, Any]:
        # Compiled programs stay where they are: a worker makes its own.
        return {"_function": self._function, "_parameters": self._parameters}


def _in_double(column: Any) -> Any:
    is_real = jnp.issubdtype(column.dtype, jnp.floating)
    return column.astype(float) if is_real else column

"""A traced function at many points."""

from collections.abc import Callable
from typing import Any

import jax

from vhmc.structure.program.control import primitives_of

FACTORISATIONS = frozenset(
    "cholesky custom_linear_solve eig eigh geqrf householder_product lu lu_pivots_to"
    "_permutation qr schur svd triangular_solve tridiagonal tridiagonal_solve".split()
)
"""Primitives that are calls of LAPACK."""


def map_points(function: Callable[[Any], Any], points: Any) -> Any:
    """The function at every point along the first axis, for compiled programs.

    All at once, but one after the other where there is a factorisation: XLA's threads
    lose batches of these now and then, and the program waits for ever.
    """
    first = jax.tree.map(lambda rows: rows[0], points)
    program = jax.make_jaxpr(function)(first)
    if primitives_of(program.jaxpr) & FACTORISATIONS:
        return jax.lax.map(function, points)
    return jax.vmap(function)(points)

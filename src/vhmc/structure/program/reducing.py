"""Sums, products of matrices, prefixes and factorisations."""

import math
from typing import Any

import numpy as np

from vhmc.structure.program.elementwise import Rule
from vhmc.structure.program.sets import Sets
from vhmc.structure.program.values import Value

MAX_TERMS = 5_000_000
"""Beyond which the rows of matrices are taken as a whole."""


def _sum(sets: Sets, params: dict[str, Any], values: list[Value]) -> list[np.ndarray]:
    return [sets.union_along(values[0].sets, tuple(params["axes"]))]


def _reduce(
    sets: Sets, params: dict[str, Any], values: list[Value]
) -> list[np.ndarray]:
    """Largest, smallest, product, or the place of one of them."""
    return [sets.nonlinear(*_sum(sets, params, values))]


def _prefixes(
    sets: Sets, params: dict[str, Any], values: list[Value]
) -> list[np.ndarray]:
    """Sums of the entries up to each one, in passes that double their reach."""
    total = np.moveaxis(values[0].sets, params["axis"], 0)
    total = total[::-1] if params["reverse"] else total
    reach = 1
    while reach < len(total):
        further = sets.union(total[:-reach], total[reach:])
        total = np.concatenate([total[:reach], further])
        reach *= 2
    total = total[::-1] if params["reverse"] else total
    return [np.moveaxis(total, 0, params["axis"])]


def _nonlinear_prefixes(
    sets: Sets, params: dict[str, Any], values: list[Value]
) -> list[np.ndarray]:
    return [sets.nonlinear(*_prefixes(sets, params, values))]


def _dot(sets: Sets, params: dict[str, Any], values: list[Value]) -> list[np.ndarray]:
    r"""Sums of products along shared axes, $c_{bmn} = \sum_k a_{bmk} b_{bnk}$.

    Equal rows are treated once, and terms with a known zero not at all: a regression on
    a dense table of data costs as much as one on a single row.
    """
    (summed, batched) = params["dimension_numbers"]
    sides = [
        _rows(value.sets, tuple(batched[i]), tuple(summed[i]))
        for i, value in enumerate(values)
    ]
    (left, outer_left), (right, outer_right) = sides
    batch = tuple(values[0].sets.shape[axis] for axis in batched[0])
    shape = batch + outer_left + outer_right
    left, places = _distinct_rows(left)
    right, columns = _distinct_rows(right)
    if _num_terms(left, right) <= _num_terms(right, left):
        total = _products(sets, left, right)
    else:
        total = _products(sets, right, left).swapaxes(1, 2)
    return [total[:, places][:, :, columns].reshape(shape)]


def _num_terms(left: np.ndarray, right: np.ndarray) -> int:
    return int(np.count_nonzero(left)) * right.shape[1]


def _products(sets: Sets, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Sums over the last axis of all products of rows, one term for each nonzero."""
    if _num_terms(left, right) > MAX_TERMS:
        whole = [sets.union_along(side, (2,)) for side in (left, right)]
        return sets.product(whole[0][:, :, None], whole[1][:, None, :])
    batch, rows, terms = np.nonzero(left)
    factors = left[batch, rows, terms][:, None], right[batch, :, terms]
    groups = batch * left.shape[1] + rows
    number = left.shape[0] * left.shape[1]
    total = sets.union_by_group(sets.product(*factors), groups, number)
    return total.reshape(left.shape[0], left.shape[1], right.shape[1])


def _rows(
    array: np.ndarray, batch: tuple[int, ...], summed: tuple[int, ...]
) -> tuple[np.ndarray, tuple[int, ...]]:
    """Axes ordered and joined as (batch, free, summed), and the shape of the free."""
    free = [axis for axis in range(array.ndim) if axis not in batch + summed]
    shape = tuple(array.shape[axis] for axis in free)
    sizes = [
        math.prod(array.shape[i] for i in group) for group in (batch, free, summed)
    ]
    return array.transpose(*batch, *free, *summed).reshape(sizes), shape


def _distinct_rows(array: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The array with each row along its middle axis once, and places of the rows."""
    same = np.arange(array.shape[1])
    if array.shape[0] != 1 or array.shape[1] < 2:
        return array, same
    rows = array[0]
    weights = np.random.default_rng(0).integers(1, 2**62, rows.shape[1])
    _, first, places = np.unique(rows @ weights, return_index=True, return_inverse=True)
    # Different rows with the same sum are improbable, but would lose an edge.
    if not np.array_equal(rows[first][places], rows):
        return array, same
    return rows[first][None], places


def _sort(sets: Sets, params: dict[str, Any], values: list[Value]) -> list[np.ndarray]:
    """Every entry along the axis may come to every place."""
    axis = params["dimension"]
    both = sets.union(*(value.sets for value in values))
    total = sets.nonlinear(sets.union_along(both, (axis,)))
    spread = np.broadcast_to(np.expand_dims(total, axis), both.shape)
    return [spread] * len(values)


def _factorise(
    sets: Sets, params: dict[str, Any], values: list[Value]
) -> list[np.ndarray]:
    """Cholesky factor: every entry depends on the whole matrix."""
    matrix = values[0].sets
    total = sets.nonlinear(_over_matrix(sets, matrix))
    return [np.broadcast_to(total, matrix.shape)]


def _triangular_solve(
    sets: Sets, params: dict[str, Any], values: list[Value]
) -> list[np.ndarray]:
    """Linear in the right-hand sides, each of which stays by itself."""
    matrix, right = (value.sets for value in values)
    axis = right.ndim - (2 if params["left_side"] else 1)
    sides = np.expand_dims(sets.union_along(right, (axis,)), axis)
    total = sets.nonlinear(_over_matrix(sets, matrix))
    solution = sets.product(total, sides)
    return [np.broadcast_to(solution, right.shape)]


def _linear_solve(
    sets: Sets, params: dict[str, Any], values: list[Value]
) -> list[np.ndarray]:
    """Linear in the right-hand sides if the matrix is constant."""
    number = sum(params["const_lengths"])
    sides = [value.sets for value in values[number:]]
    total = sets.union_all(*sides)
    if not all(value.is_constant for value in values[:number]):
        total = sets.union_all(*(value.sets for value in values))
        total = sets.nonlinear(total)
    return [np.broadcast_to(total, side.shape) for side in sides]


def _over_matrix(sets: Sets, matrix: np.ndarray) -> np.ndarray:
    """Union over the last two axes, which stay with length one."""
    axes = matrix.ndim - 2, matrix.ndim - 1
    return np.expand_dims(sets.union_along(matrix, axes), (-2, -1))


REDUCTIONS = (
    "argmax argmin reduce_and reduce_max reduce_min reduce_or reduce_prod reduce_xor"
).split()
RULES: dict[str, Rule] = {
    "reduce_sum": _sum,
    **dict.fromkeys(REDUCTIONS, _reduce),
    **dict.fromkeys("cumlogsumexp cummax cummin cumprod".split(), _nonlinear_prefixes),
    "cumsum": _prefixes,
    "dot_general": _dot,
    "sort": _sort,
    "cholesky": _factorise,
    "triangular_solve": _triangular_solve,
    "custom_linear_solve": _linear_solve,
}

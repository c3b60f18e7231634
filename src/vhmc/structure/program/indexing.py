"""Reading and writing entries at places that are known, or may depend on parameters."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jax.lax import GatherScatterMode

from vhmc.structure.program.elementwise import Rule
from vhmc.structure.program.sets import CONSTANT, Sets
from vhmc.structure.program.values import Value


def _places(
    shape: tuple[int, ...],
    starts: np.ndarray,
    sizes: Sequence[int],
    starred: Sequence[int],
    batched: list[tuple[int, int]],
    is_clipped: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """Flat places in an array of this shape of all entries of all windows.

    starts: the first corner of each window along its last axis, which has an entry for
        each axis in `starred`.
    sizes: of the window, along each axis of the array.
    batched: axes of the array, each with the axis of `starts` whose index it shares.

    Returns places of shape (windows..., sizes...), and which windows lie inside.
    """
    leading = starts.shape[:-1]
    corners = np.zeros((*leading, len(shape)), int)
    for place, axis in enumerate(starred):
        corners[..., axis] = starts[..., place]
    for axis, source in batched:
        index = np.arange(leading[source])
        along = [1] * len(leading)
        along[source] = -1
        corners[..., axis] = index.reshape(along)
    highest = np.array(shape) - np.array(sizes)
    inside = np.asarray(np.all((corners >= 0) & (corners <= highest), axis=-1))
    if is_clipped:
        inside = np.ones(leading, bool)
    corners = np.clip(corners, 0, np.maximum(highest, 0))
    strides = np.cumprod([1, *shape[:0:-1]])[::-1] if shape else np.zeros(0, int)
    flat = (corners * strides).sum(-1)
    window = np.zeros(tuple(sizes), int)
    for axis, (size, stride) in enumerate(zip(sizes, strides, strict=True)):
        along = [1] * len(shape)
        along[axis] = -1
        window = window + stride * np.arange(size).reshape(along)
    return flat.reshape(*leading, *[1] * len(shape)) + window, inside


def _pairs(first: Sequence[Any], second: Sequence[Any]) -> list[tuple[int, int]]:
    return [(int(a), int(b)) for a, b in zip(first, second, strict=True)]


def _gather(
    sets: Sets, params: dict[str, Any], values: list[Value]
) -> list[np.ndarray]:
    operand, indices = values
    numbers = params["dimension_numbers"]
    sizes = params["slice_sizes"]
    dropped = (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)
    kept = [size for axis, size in enumerate(sizes) if axis not in dropped]
    leading = indices.sets.shape[:-1]
    number = len(leading) + len(kept)
    front = [axis for axis in range(number) if axis not in numbers.offset_dims]
    if indices.known is None:
        total = _anywhere(sets, operand, indices)
        read = np.broadcast_to(total, (*leading, *kept))
    else:
        places, inside = _places(
            operand.sets.shape,
            indices.known,
            sizes,
            [int(axis) for axis in numbers.start_index_map],
            _pairs(numbers.operand_batching_dims, numbers.start_indices_batching_dims),
            params["mode"] != GatherScatterMode.FILL_OR_DROP,
        )
        read = operand.sets.ravel()[places]
        inside = inside.reshape(*leading, *[1] * len(sizes))
        read = np.where(inside, read, CONSTANT).reshape(*leading, *kept)
    return [np.moveaxis(read, range(number), [*front, *numbers.offset_dims])]


def _scatter(kind: str) -> Rule:
    """Rule for a scatter that sets, adds, or combines otherwise."""

    def rule(
        sets: Sets, params: dict[str, Any], values: list[Value]
    ) -> list[np.ndarray]:
        operand, indices, updates = values
        # A `set` with a program of its own applies a function to the entries.
        is_general = kind == "other" or not _is_plain(params, kind)
        if indices.known is None:
            total = _anywhere(sets, updates, indices)
            _couple(sets, indices, operand)
            result = sets.union(operand.sets, total)
            return [sets.nonlinear(result) if is_general else result]
        places, rows = _targets(operand, indices, updates, params)
        size = operand.sets.size
        added = sets.union_by_group(rows, places, size).reshape(operand.sets.shape)
        is_hit = np.bincount(places, minlength=size).reshape(added.shape) > 0
        if kind == "set" and not is_general:
            return [np.where(is_hit, added, operand.sets)]
        result = sets.union(operand.sets, added)
        if is_general:
            result = np.where(is_hit, sets.nonlinear(result), result)
        return [result]

    return rule


def _is_plain(params: dict[str, Any], kind: str) -> bool:
    """Whether entries are replaced, or added to, and not put through a function."""
    inner = params["update_jaxpr"]
    if kind != "set" or inner is None:
        return True
    return not inner.eqns and inner.outvars[0] is inner.invars[1]


def _targets(
    operand: Value, indices: Value, updates: Value, params: dict[str, Any]
) -> tuple[np.ndarray, np.ndarray]:
    """Places in the operand that are written to, and the sets that are written."""
    assert indices.known is not None
    numbers = params["dimension_numbers"]
    shape = operand.sets.shape
    dropped = (*numbers.inserted_window_dims, *numbers.operand_batching_dims)
    kept = [axis for axis in range(len(shape)) if axis not in dropped]
    sizes = [1] * len(shape)
    for axis, source in zip(kept, numbers.update_window_dims, strict=True):
        sizes[axis] = updates.sets.shape[source]
    places, inside = _places(
        shape,
        indices.known,
        sizes,
        [int(axis) for axis in numbers.scatter_dims_to_operand_dims],
        _pairs(numbers.operand_batching_dims, numbers.scatter_indices_batching_dims),
        params["mode"] == GatherScatterMode.CLIP,
    )
    number = updates.sets.ndim
    window = numbers.update_window_dims
    front = [axis for axis in range(number) if axis not in window]
    rows = updates.sets.transpose(*front, *window).ravel()
    is_written = np.broadcast_to(
        inside.reshape(*inside.shape, *[1] * len(shape)), places.shape
    ).ravel()
    return places.ravel()[is_written], rows[is_written]


def _dynamic_slice(
    sets: Sets, params: dict[str, Any], values: list[Value]
) -> list[np.ndarray]:
    operand, starts, sizes = values[0], values[1:], params["slice_sizes"]
    window = _window(operand, starts, sizes)
    if window is None:
        total = _anywhere(sets, operand, *starts)
        return [np.broadcast_to(total, tuple(sizes))]
    return [operand.sets[window]]


def _dynamic_update_slice(
    sets: Sets, params: dict[str, Any], values: list[Value]
) -> list[np.ndarray]:
    operand, update, starts = values[0], values[1], values[2:]
    window = _window(operand, starts, update.sets.shape)
    if window is None:
        total = _anywhere(sets, update, *starts)
        _couple(sets, Value(sets.union_all(*(s.sets for s in starts))), operand)
        return [sets.union(operand.sets, total)]
    result = operand.sets.copy()
    result[window] = update.sets
    return [result]


def _window(
    operand: Value, starts: Sequence[Value], sizes: Sequence[int]
) -> tuple[slice, ...] | None:
    """The entries from known starts, moved inside as JAX does; None if unknown."""
    window = []
    for start, size, length in zip(starts, sizes, operand.sets.shape, strict=True):
        if start.known is None:
            return None
        first = min(max(int(start.known), 0), length - size)
        window.append(slice(first, first + size))
    return tuple(window)


def _anywhere(sets: Sets, array: Value, *indices: Value) -> np.ndarray:
    """The set of an entry at a place that is not known."""
    total = sets.union_all(array.sets)
    for index in indices:
        _couple(sets, index, Value(total))
        total = sets.union(total, sets.union_all(index.sets))
    return total


def _couple(sets: Sets, index: Value, value: Value) -> None:
    """Parameters that decide on a place interact with what is there."""
    if not index.is_constant:
        sets.interact(sets.union_all(index.sets), value.sets)


RULES: dict[str, Rule] = {
    "gather": _gather,
    "scatter": _scatter("set"),
    "scatter-add": _scatter("add"),
    "scatter-sub": _scatter("add"),
    "scatter-max": _scatter("other"),
    "scatter-min": _scatter("other"),
    "scatter-mul": _scatter("other"),
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update_slice,
}

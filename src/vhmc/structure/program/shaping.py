"""Operations that move entries without changing them, as functions of NumPy arrays.

They serve both arrays of set numbers and arrays of known values.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

Move = Callable[..., list[np.ndarray]]
"""Takes the parameters of the operation and its input arrays; returns the outputs."""


def _reshape(params: dict[str, Any], array: np.ndarray) -> list[np.ndarray]:
    return [array.reshape(params["new_sizes"])]


def _squeeze(params: dict[str, Any], array: np.ndarray) -> list[np.ndarray]:
    return [array.squeeze(tuple(params["dimensions"]))]


def _tile(params: dict[str, Any], array: np.ndarray) -> list[np.ndarray]:
    return [np.tile(array, params["reps"])]


def _broadcast(params: dict[str, Any], array: np.ndarray) -> list[np.ndarray]:
    shape = [1] * len(params["shape"])
    for place, size in zip(params["broadcast_dimensions"], array.shape, strict=True):
        shape[place] = size
    return [np.broadcast_to(array.reshape(shape), params["shape"])]


def _transpose(params: dict[str, Any], array: np.ndarray) -> list[np.ndarray]:
    return [array.transpose(params["permutation"])]


def _slice(params: dict[str, Any], array: np.ndarray) -> list[np.ndarray]:
    strides = params["strides"] or [1] * array.ndim
    ends = zip(params["start_indices"], params["limit_indices"], strides, strict=True)
    return [array[tuple(slice(*end) for end in ends)]]


def _reverse(params: dict[str, Any], array: np.ndarray) -> list[np.ndarray]:
    return [np.flip(array, tuple(params["dimensions"]))]


def _concatenate(params: dict[str, Any], *arrays: np.ndarray) -> list[np.ndarray]:
    return [np.concatenate(arrays, axis=params["dimension"])]


def _stack(params: dict[str, Any], *arrays: np.ndarray) -> list[np.ndarray]:
    return [np.stack(arrays, axis=params["axis"])]


def _unstack(params: dict[str, Any], array: np.ndarray) -> list[np.ndarray]:
    return list(np.moveaxis(array, params["axis"], 0))


def _split(params: dict[str, Any], array: np.ndarray) -> list[np.ndarray]:
    return np.split(array, np.cumsum(params["sizes"])[:-1], axis=params["axis"])


def _pad(
    params: dict[str, Any], array: np.ndarray, filling: np.ndarray
) -> list[np.ndarray]:
    """Entries set apart by `inner`, then edges added, or cut off where negative."""
    for axis, (low, high, inner) in enumerate(params["padding_config"]):
        old = array.shape[axis]
        places = low + (inner + 1) * np.arange(old)
        size = low + high + old + inner * max(old - 1, 0)
        shape = (*array.shape[:axis], size, *array.shape[axis + 1 :])
        is_inside = (0 <= places) & (places < size)
        wide = np.moveaxis(np.full(shape, filling), axis, 0)
        wide[places[is_inside]] = np.moveaxis(array, axis, 0)[is_inside]
        array = np.moveaxis(wide, 0, axis)
    return [array]


MOVES: dict[str, Move] = {
    "reshape": _reshape,
    "squeeze": _squeeze,
    "broadcast_in_dim": _broadcast,
    "transpose": _transpose,
    "slice": _slice,
    "rev": _reverse,
    "concatenate": _concatenate,
    "split": _split,
    "stack": _stack,
    "tile": _tile,
    "unstack": _unstack,
    "pad": _pad,
}

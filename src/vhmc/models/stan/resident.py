"""A compiled Stan program with its data, called from Python without a copy of them."""

import ctypes
import json
from pathlib import Path
from typing import Any

import numpy as np

Layout = dict[str, tuple[int, ...]]

_DOUBLES = np.ctypeslib.ndpointer(dtype=np.float64, flags="C_CONTIGUOUS")


class Resident:
    """A Stan model in memory; several threads may call it at once.

    library: what `build` made of the program.
    data: the program's data as JSON.
    """

    def __init__(self, library: Path, data: str):
        self._library = _declared(ctypes.CDLL(str(library)))
        error = ctypes.c_char_p()
        self._model = self._library.resident_new(data.encode(), ctypes.byref(error))
        if not self._model:
            raise ValueError(f"Stan refuses the data: {self._message(error)}")
        self.dim = int(self._library.resident_dim(self._model))

    def free_names(self) -> list[str]:
        """Names of the entries of the free vector."""
        return self._text(self._library.resident_free_names(self._model)).split()

    def layout(self, is_whole: bool) -> Layout:
        """Names and shapes of parameters, or of all that the program computes."""
        whole = int(is_whole)
        text = self._text(self._library.resident_layout(self._model, whole, whole))
        rows = [line.split() for line in text.splitlines()]
        return {name: tuple(map(int, extents)) for name, *extents in rows}

    def value_and_grad(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Log density with the Jacobian of the constraints, and its gradient."""
        grad = np.array(theta, dtype=float)
        value, error = ctypes.c_double(), ctypes.c_char_p()
        if self._library.resident_value_and_grad(
            self._model, ctypes.byref(value), grad, ctypes.byref(error)
        ):
            raise ArithmeticError(self._message(error))
        return value.value, grad

    def write(self, thetas: np.ndarray, is_whole: bool, seed: int) -> np.ndarray:
        """What `layout` lists, flat, a row for each row of `thetas`."""
        thetas = np.ascontiguousarray(thetas, dtype=float)
        shapes = self.layout(is_whole).values()
        out = np.empty((len(thetas), sum(int(np.prod(shape)) for shape in shapes)))
        whole = int(is_whole)
        self._library.resident_write(
            self._model, thetas, len(thetas), whole, whole, seed, out, out.shape[1]
        )
        return out

    def unconstrain(self, values: dict[str, Any]) -> np.ndarray:
        """The free vector at values of the parameters."""
        theta, error = np.empty(self.dim), ctypes.c_char_p()
        if self._library.resident_unconstrain(
            self._model, to_json(values).encode(), theta, ctypes.byref(error)
        ):
            raise ValueError(f"Stan refuses the start: {self._message(error)}")
        return theta

    def __del__(self) -> None:
        if getattr(self, "_model", None):
            self._library.resident_delete(self._model)

    def _text(self, pointer: int) -> str:
        text = ctypes.string_at(pointer).decode()
        self._library.resident_free(pointer)
        return text

    def _message(self, error: ctypes.c_char_p) -> str:
        text = (error.value or b"").decode().removeprefix("Exception: ")
        self._library.resident_free(error)
        return text


def to_json(data: dict[str, Any]) -> str:
    """Numbers and arrays as Stan reads them."""
    return json.dumps(data, default=_listed)


def _listed(value: Any) -> Any:
    array = np.asarray(value)
    if array.dtype == bool:
        array = array.astype(int)
    if array.dtype.kind not in "iuf":
        raise ValueError(f"Stan takes numbers and arrays of them, got {value!r}")
    return array.tolist()


def _declared(library: Any) -> Any:
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    error = ctypes.POINTER(ctypes.c_char_p)
    value = ctypes.POINTER(ctypes.c_double)
    text, number, seed = ctypes.c_char_p, ctypes.c_int, ctypes.c_uint
    for name, answer, arguments in (
        ("free", None, [pointer]),
        ("new", pointer, [text, error]),
        ("delete", None, [pointer]),
        ("dim", size, [pointer]),
        ("free_names", pointer, [pointer]),
        ("layout", pointer, [pointer, number, number]),
        ("value_and_grad", number, [pointer, value, _DOUBLES, error]),
        (
            "write",
            None,
            [pointer, _DOUBLES, size, number, number, seed, _DOUBLES, size],
        ),
        ("unconstrain", number, [pointer, text, _DOUBLES, error]),
    ):
        function = getattr(library, f"resident_{name}")
        function.restype, function.argtypes = answer, arguments
    return library

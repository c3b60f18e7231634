"""What is known of an array in a program that is followed but not evaluated."""

from typing import Any, NamedTuple

import numpy as np

from vhmc.structure.program.sets import CONSTANT


class Value(NamedTuple):
    """An array in the program.

    sets: for each entry, the number of the set of parameters that it depends on.
    known: the entries themselves, where they depend on no parameter; else None.
    """

    sets: np.ndarray
    known: np.ndarray | None = None

    @property
    def is_constant(self) -> bool:
        """Whether no entry depends on a parameter."""
        return bool(np.max(self.sets, initial=0) <= CONSTANT)


def constant(array: Any) -> Value:
    """An array of data, with its zeros."""
    known = np.asarray(array)
    return Value(np.asarray(known != 0).astype(np.intp), known)


def unknown_constants(shape: tuple[int, ...]) -> Value:
    """An array that depends on no parameter, of which nothing else is known."""
    return Value(np.full(shape, CONSTANT, np.intp))

"""Follow a traced program, operation by operation."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.extend.core import Literal

from vhmc.structure.program import control, elementwise, indexing, reducing
from vhmc.structure.program.sets import Sets, TooLargeError
from vhmc.structure.program.shaping import MOVES
from vhmc.structure.program.values import Value, constant, unknown_constants

RULES = elementwise.RULES | reducing.RULES | indexing.RULES

FOLDED: dict[str, Callable[..., Any]] = {
    "abs": np.abs,
    "add": np.add,
    "and": np.bitwise_and,
    "div": np.divide,
    "eq": np.equal,
    "exp": np.exp,
    "floor": np.floor,
    "ge": np.greater_equal,
    "gt": np.greater,
    "is_finite": np.isfinite,
    "le": np.less_equal,
    "log": np.log,
    "lt": np.less,
    "max": np.maximum,
    "min": np.minimum,
    "mul": np.multiply,
    "ne": np.not_equal,
    "neg": np.negative,
    "not": np.invert,
    "or": np.bitwise_or,
    "select_n": lambda which, *cases: np.choose(which.astype(int), cases),
    "sqrt": np.sqrt,
    "square": np.square,
    "sub": np.subtract,
}
"""Computed by NumPy where all inputs are known: JAX would compile each of them."""

OPAQUE = "debug", "empty", "io_callback", "pure_callback", "random", "threefry"
"""Operations that are not run, even on what is known."""

MAX_WORK = 30_000_000
"""Entries of all arrays in a program, about three seconds."""

MAX_DATA = 30_000_000
"""Entries of an array of data: their set numbers take 240 MB."""

STEP_WORK = 400
"""Entries that take as long as an operation takes on a single one."""


class Interpreter:
    """Runs programs on sets of parameters, within a limit of work.

    dim: number of parameters.
    """

    def __init__(self, dim: int):
        self.sets = Sets(dim)
        self.work = 0

    def run(self, closed: Any, inputs: Sequence[Value]) -> list[Value]:
        """Outputs of a closed program."""
        found = self.values(closed, inputs)
        return [_read(found, atom) for atom in closed.jaxpr.outvars]

    def values(self, closed: Any, inputs: Sequence[Value]) -> dict[Any, Value]:
        """All that a closed program computes, by variable."""
        program = closed.jaxpr
        found: dict[Any, Value] = {}
        constants = [self._data(array) for array in closed.consts]
        found.update(zip(program.constvars, constants, strict=True))
        found.update(zip(program.invars, inputs, strict=True))
        for equation in program.eqns:
            values = [_read(found, atom) for atom in equation.invars]
            outputs = self._apply(equation, values)
            found.update(zip(equation.outvars, outputs, strict=True))
        return found

    def _data(self, array: Any) -> Value:
        if jax.dtypes.issubdtype(array.dtype, jax.dtypes.extended):
            return unknown_constants(array.shape)
        if math.prod(array.shape) > MAX_DATA:
            raise TooLargeError("it has too many data")
        return constant(array)

    def _apply(self, equation: Any, values: list[Value]) -> list[Value]:
        """Outputs of one operation."""
        name, params = equation.primitive.name, equation.params
        atoms = [*equation.invars, *equation.outvars]
        if not all(isinstance(atom.aval, jax.core.ShapedArray) for atom in atoms):
            raise NotImplementedError(f"{name} has inputs that are not arrays")
        shapes = [var.aval.shape for var in equation.outvars]
        self._spend(STEP_WORK + sum(map(math.prod, shapes)))
        if name in control.RULES:
            return control.RULES[name](self, params, values)
        if name in MOVES:
            moved = MOVES[name](params, *(value.sets for value in values))
            known = [value.known for value in values]
            if any(array is None for array in known):
                return [Value(array) for array in moved]
            return list(map(Value, moved, MOVES[name](params, *known)))
        if all(value.known is not None for value in values):
            folded = self._folded(equation, [value.known for value in values])
            if folded is not None:
                return folded
        rule = RULES.get(name)
        if rule is None:
            if all(value.is_constant for value in values):
                return [unknown_constants(shape) for shape in shapes]
            total = self.sets.union_all(*(value.sets for value in values))
            total = self.sets.nonlinear(total)
            return [Value(np.broadcast_to(total, shape)) for shape in shapes]
        if name in elementwise.NULL_TESTS and equation.invars[0].aval.dtype.kind != "f":
            rule = RULES["lt"]  # counts are equal on more than a set of measure zero
        results = rule(self.sets, params, values)
        return [
            Value(array if array.shape == shape else np.broadcast_to(array, shape))
            for array, shape in zip(results, shapes, strict=True)
        ]

    def _folded(self, equation: Any, known: list[Any]) -> list[Value] | None:
        """Outputs that no parameter enters, if they may be needed to find places."""
        name = equation.primitive.name
        if name.startswith(OPAQUE):
            return None
        dtypes = [var.aval.dtype for var in equation.outvars]
        with np.errstate(all="ignore"):
            if name in FOLDED and not (name == "div" and dtypes[0].kind != "f"):
                return [constant(np.asarray(FOLDED[name](*known), dtypes[0]))]
            if name == "convert_element_type":
                return [constant(known[0].astype(dtypes[0]))]
            if name == "iota":
                places = np.indices(equation.params["shape"])
                return [
                    constant(places[equation.params["dimension"]].astype(dtypes[0]))
                ]
        is_counted = all(dtype.kind in "biu" for dtype in dtypes)
        if not is_counted:
            return None
        try:
            results = equation.primitive.bind(*known, **equation.params)
        except Exception:  # whatever it is, nothing depends on a parameter
            return None
        several = results if equation.primitive.multiple_results else [results]
        return [constant(array) for array in several]

    def _spend(self, work: int) -> None:
        self.work += work
        if self.work > MAX_WORK:
            raise TooLargeError("its arrays have too many entries")


def _read(found: dict[Any, Value], atom: Any) -> Value:
    if isinstance(atom, Literal):
        aval: Any = atom.aval
        return constant(np.asarray(atom.val, aval.dtype))
    return found[atom]

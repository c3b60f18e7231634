"""Quantities that a traced program computes, and the parts that compute them."""

from typing import Any

import numpy as np
from jax.extend.core import ClosedJaxpr
from jax.interpreters import partial_eval

from vhmc.structure.program.control import num_operations
from vhmc.structure.program.interpreter import OPAQUE, Interpreter
from vhmc.structure.program.values import Value

MAX_OPERATIONS = 20_000
"""Of the part of the program that computes a quantity."""
COPIES = "broadcast_in_dim convert_element_type copy reshape squeeze transpose".split()
"""Operations whose outputs are the same numbers in other places: nothing new."""


def reached(
    program: ClosedJaxpr, dim: int, least: int, largest: int
) -> dict[Any, np.ndarray]:
    """Which parameters each entry of a quantity depends on.

    least, largest: entries of the quantities that are looked at.
    """
    interpreter = Interpreter(dim)
    values = interpreter.values(program, [Value(interpreter.sets.singletons())])
    return {
        var: interpreter.sets.members(value.sets)
        for var, value in values.items()
        if least <= value.sets.size <= largest and not value.is_constant
    }


def quantities(program: ClosedJaxpr) -> list[Any]:
    """Variables of real numbers, in the order in which they are computed."""
    found = []
    for equation in program.jaxpr.eqns:
        if equation.primitive.name not in COPIES:
            for var in equation.outvars:
                aval: Any = var.aval
                if np.dtype(aval.dtype).kind == "f":
                    found.append(var)
    return found


def part_of(program: ClosedJaxpr, var: Any) -> ClosedJaxpr | None:
    """The part of a program that computes a quantity; None if it is not a small one."""
    jaxpr = program.jaxpr.replace(outvars=[var])
    used, _ = partial_eval.dce_jaxpr(jaxpr, [True], instantiate=True)
    names = [equation.primitive.name for equation in used.eqns]
    is_opaque = any(name == "while" or name.startswith(OPAQUE) for name in names)
    if is_opaque or num_operations(used) > MAX_OPERATIONS:
        return None
    return ClosedJaxpr(used, program.consts)

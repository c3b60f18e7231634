"""A traced program with the programs inside of it written out."""

from collections.abc import Mapping, Sequence
from typing import Any

import jax
from jax.extend.core import ClosedJaxpr, Literal

from vhmc.structure.program.control import CALLS, PROGRAMS


def flattened(program: ClosedJaxpr) -> ClosedJaxpr:
    """The same program without calls, so that all that it computes has a name.

    Loops and branches stay. Derivatives that were given by hand are left out.
    """
    shapes = [shape_of(var) for var in program.jaxpr.invars]
    return jax.make_jaxpr(lambda *inputs: outputs(program, inputs))(*shapes)


def shape_of(var: Any) -> jax.ShapeDtypeStruct:
    """Shape and type of a variable."""
    return jax.ShapeDtypeStruct(var.aval.shape, var.aval.dtype)


def outputs(
    program: ClosedJaxpr, inputs: Sequence[Any], given: Mapping[Any, Any] | None = None
) -> list[Any]:
    """Outputs of a program, for JAX to trace.

    given: values of variables that count in place of those that it computes.
    """
    found = computed(program, inputs, given or {})
    return [_read(found, atom) for atom in program.jaxpr.outvars]


def computed(
    program: ClosedJaxpr, inputs: Sequence[Any], given: Mapping[Any, Any]
) -> dict[Any, Any]:
    """All that a program computes, by variable."""
    jaxpr = program.jaxpr
    found = dict(zip(jaxpr.constvars, program.consts, strict=True))
    found.update(zip(jaxpr.invars, inputs, strict=True))
    for equation in jaxpr.eqns:
        values = [_read(found, atom) for atom in equation.invars]
        primitive, params = equation.primitive, equation.params
        if primitive.name in CALLS:
            inner = next(params[key] for key in PROGRAMS if key in params)
            if not isinstance(inner, ClosedJaxpr):
                inner = ClosedJaxpr(inner, ())
            new = outputs(inner, values)
        else:
            new = primitive.bind(*values, **primitive.get_bind_params(params))
            new = new if primitive.multiple_results else [new]
        found.update(zip(equation.outvars, new, strict=True))
        found.update({var: given[var] for var in equation.outvars if var in given})
    return found


def _read(found: Mapping[Any, Any], atom: Any) -> Any:
    return atom.val if isinstance(atom, Literal) else found[atom]

"""A traced program with the programs inside of it written out."""

from typing import Any

import jax
from jax.extend.core import ClosedJaxpr, Literal

from vhmc.structure.program.control import CALLS, PROGRAMS


def flattened(program: ClosedJaxpr) -> ClosedJaxpr:
    """The same program without calls, so that all that it computes has a name.

    Loops and branches stay. Derivatives that were given by hand are left out.
    """
    kinds = [var.aval for var in program.jaxpr.invars]
    shapes = [jax.ShapeDtypeStruct(kind.shape, kind.dtype) for kind in kinds]
    return jax.make_jaxpr(lambda *inputs: _run(program, inputs))(*shapes)


def _run(program: ClosedJaxpr, inputs: Any) -> list[Any]:
    jaxpr = program.jaxpr
    found = dict(zip(jaxpr.constvars, program.consts, strict=True))
    found.update(zip(jaxpr.invars, inputs, strict=True))

    def read(atom: Any) -> Any:
        return atom.val if isinstance(atom, Literal) else found[atom]

    for equation in jaxpr.eqns:
        values = [read(atom) for atom in equation.invars]
        primitive, params = equation.primitive, equation.params
        if primitive.name in CALLS:
            inner = next(params[key] for key in PROGRAMS if key in params)
            if not isinstance(inner, ClosedJaxpr):
                inner = ClosedJaxpr(inner, ())
            outputs = _run(inner, values)
        else:
            outputs = primitive.bind(*values, **primitive.get_bind_params(params))
            if not primitive.multiple_results:
                outputs = [outputs]
        found.update(zip(equation.outvars, outputs, strict=True))
    return [read(atom) for atom in jaxpr.outvars]

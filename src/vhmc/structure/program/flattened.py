"""A traced program with the programs inside of it written out."""

from collections.abc import Mapping
from typing import Any

import jax
from jax.extend.core import ClosedJaxpr, Literal
from jax.interpreters import partial_eval

from vhmc.structure.program.control import CALLS, PROGRAMS


def flattened(program: ClosedJaxpr) -> ClosedJaxpr:
    """The same program without calls, so that all that it computes has a name.

    Loops and branches stay. Derivatives that were given by hand are left out.
    """
    kinds = [var.aval for var in program.jaxpr.invars]
    shapes = [jax.ShapeDtypeStruct(kind.shape, kind.dtype) for kind in kinds]
    return jax.make_jaxpr(lambda *inputs: _run(program, inputs))(*shapes)


def with_input(program: ClosedJaxpr, var: Any) -> ClosedJaxpr:
    """The program that is given one of its quantities and does not compute it."""
    kinds = [one.aval for one in (*program.jaxpr.invars, var)]
    shapes = [jax.ShapeDtypeStruct(kind.shape, kind.dtype) for kind in kinds]

    def run(*inputs: Any) -> list[Any]:
        return _run(program, inputs[:-1], {var: inputs[-1]})

    longer = jax.make_jaxpr(run)(*shapes)
    used, _ = partial_eval.dce_jaxpr(
        longer.jaxpr, [True] * len(longer.jaxpr.outvars), instantiate=True
    )
    return ClosedJaxpr(used, longer.consts)


def _run(program: ClosedJaxpr, inputs: Any, given: Mapping[Any, Any] = {}) -> list[Any]:
    """Outputs of a program.

    given: values of variables that take the place of those computed.
    """
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
        found.update((var, given[var]) for var in equation.outvars if var in given)
    return [read(atom) for atom in jaxpr.outvars]

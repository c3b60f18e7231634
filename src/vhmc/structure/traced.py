"""Read the graph of a model's parameters off its traced program."""

import logging

import jax
import scipy.sparse as sp
from jax.extend.core import ClosedJaxpr
from jax.interpreters import partial_eval

from vhmc._types import Potential
from vhmc.structure.program.interpreter import Interpreter
from vhmc.structure.program.sets import TooLargeError
from vhmc.structure.program.values import Value

LOG = logging.getLogger("vhmc")


def traced_graph(energy: Potential, dim: int) -> sp.csr_matrix | None:
    r"""Pairs of parameters that the energy may not be a sum of functions of.

    The program is traced but not evaluated. An edge is missing only where no operation
    combines the two parameters other than by addition; so parameters without an edge
    are independent given all others, at all points.

    Returns a symmetric boolean matrix with its diagonal; None if the program cannot be
    traced or is too large to follow, which the log explains.

    energy: a function of a vector that JAX can trace.
    dim: length of the vector.
    """
    try:
        program = jax.make_jaxpr(energy)(jax.ShapeDtypeStruct((dim,), float))
        return _followed(program, dim)
    except TooLargeError as error:
        LOG.info("no graph of the parameters: the program is too large, %s", error)
    except Exception as error:  # of the user's code, or of an unforeseen operation
        LOG.warning("no graph of the parameters: %s: %s", type(error).__name__, error)
    return None


def _followed(program: ClosedJaxpr, dim: int) -> sp.csr_matrix:
    # What does not enter the energy, such as derived quantities, must add no edges.
    used, _ = partial_eval.dce_jaxpr(
        program.jaxpr, [True] * len(program.jaxpr.outvars), instantiate=True
    )
    interpreter = Interpreter(dim)
    parameters = Value(interpreter.sets.singletons())
    interpreter.run(ClosedJaxpr(used, program.consts), [parameters])
    return interpreter.sets.graph()

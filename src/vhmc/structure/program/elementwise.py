"""Operations that work entry by entry: which combine parameters, and which only add."""

from collections.abc import Callable
from typing import Any

import numpy as np

from vhmc.structure.program.sets import CONSTANT, ZERO, Sets
from vhmc.structure.program.values import Value

Rule = Callable[[Sets, dict[str, Any], list[Value]], list[np.ndarray]]
"""Set numbers of the outputs of an operation from its parameters and its inputs."""

UNCHANGED = (
    "copy device_put imag name neg optimization_barrier pvary real "
    "reduce_precision stop_gradient"
).split()
"""Linear in one input, or the identity of several."""

ADDITIVE = "add add_any sub".split()

NULL_TESTS = "eq is_finite ne".split()
"""For real numbers they change value on a set of probability zero only."""

KEEP_ZERO = (
    "abs asin asinh atan atanh ceil erf erf_inv expm1 floor integer_pow log1p round "
    "sign sin sinh sqrt square tan tanh"
).split()

NONLINEAR = (
    "acos acosh and atan2 bessel_i0e bessel_i1e cbrt clamp clz conj cos cosh digamma "
    "erfc exp exp2 ge gt igamma igamma_grad_a igammac le lgamma log logistic lt max "
    "min nextafter not or polygamma population_count pow "
    "regularized_incomplete_beta rem rsqrt shift_left shift_right_arithmetic "
    "shift_right_logical xor zeta"
).split()


def _unchanged(sets: Sets, params: dict, values: list[Value]) -> list[np.ndarray]:
    return [value.sets for value in values]


def _sum(sets: Sets, params: dict, values: list[Value]) -> list[np.ndarray]:
    return [sets.union(*(value.sets for value in values))]


def _product(sets: Sets, params: dict, values: list[Value]) -> list[np.ndarray]:
    return [sets.product(values[0].sets, values[1].sets)]


def _quotient(sets: Sets, params: dict, values: list[Value]) -> list[np.ndarray]:
    above, below = (value.sets for value in values)
    below = np.where(above == ZERO, CONSTANT, below)
    return [sets.product(above, sets.nonlinear(below))]


def _nonlinear(sets: Sets, params: dict, values: list[Value]) -> list[np.ndarray]:
    return [sets.nonlinear(*(value.sets for value in values))]


def _keep_zero(sets: Sets, params: dict, values: list[Value]) -> list[np.ndarray]:
    if params.get("y", 1) <= 0:  # a power
        return _nonlinear(sets, params, values)
    inner = values[0].sets
    return [np.where(inner == ZERO, ZERO, sets.nonlinear(inner))]


def _null_test(sets: Sets, params: dict, values: list[Value]) -> list[np.ndarray]:
    shape = np.broadcast_shapes(*(value.sets.shape for value in values))
    return [np.full(shape, CONSTANT, np.intp)]


def _convert(sets: Sets, params: dict, values: list[Value]) -> list[np.ndarray]:
    if np.issubdtype(params["new_dtype"], np.inexact):
        return [values[0].sets]
    return _keep_zero(sets, {}, values)  # a step function


def _select(sets: Sets, params: dict, values: list[Value]) -> list[np.ndarray]:
    """Entries of one of the cases; which one may depend on parameters as well."""
    which, cases = values[0], [value.sets for value in values[1:]]
    if which.known is not None:
        index = which.known.astype(int)
        shape = np.broadcast_shapes(index.shape, cases[0].shape)
        stacked = np.stack([np.broadcast_to(case, shape) for case in cases])
        index = np.broadcast_to(index, shape)
        return [np.asarray(np.take_along_axis(stacked, index[None], axis=0)[0])]
    either = sets.union(*cases)
    if which.is_constant:
        return [either]
    sets.interact(which.sets, either)
    return [sets.union(which.sets, either)]


RULES: dict[str, Rule] = {
    **dict.fromkeys(UNCHANGED, _unchanged),
    **dict.fromkeys(ADDITIVE, _sum),
    **dict.fromkeys(NULL_TESTS, _null_test),
    **dict.fromkeys(KEEP_ZERO, _keep_zero),
    **dict.fromkeys(NONLINEAR, _nonlinear),
    "mul": _product,
    "div": _quotient,
    "convert_element_type": _convert,
    "select_n": _select,
}

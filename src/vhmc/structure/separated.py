r"""Find a quantity of the program that separates most parameters from the data.

In a regression, an item response or a factor model each datum sees the parameters
through one number $\eta_p$, such as $a_i (\theta_j - b_i)$. Given all of these the data
link no parameters any more, so that

$$U(\theta) = \sum_p \ell_p(\eta_p(\theta)) + U_0(\theta)$$

with a $U_0$ that has the links of the priors alone. Unlike a linear predictor the
quantity may be any function of the parameters.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun

from vhmc._types import Potential, Vector
from vhmc.structure.program.flattened import flattened, with_input
from vhmc.structure.program.interpreter import MAX_WORK, Interpreter
from vhmc.structure.program.parts import part_of, quantities, reached
from vhmc.structure.program.sets import TooLargeError
from vhmc.structure.program.values import Value

LEAST_SIZE, MAX_SIZE = 6, 4000
"""Entries of the quantity: it is computed at every step of the surrogate's chains."""
MAX_DERIVATIVES = 40_000
"""Pairs of an entry and a parameter that it depends on."""
MAX_TRIALS = 60
"""Quantities that are looked at: the last that the program computes."""
SHARE_OF_WORK = 0.3
"""Of the work that following a program may be, for all of them together."""


class Separated(NamedTuple):
    r"""A quantity that separates parameters from the data.

    quantity: $\eta$, a function of the unconstrained vector for JAX.
    size: its number of entries.
    pairs: of parameters that $U_0$ links, one a row, the smaller first.
    """

    quantity: Callable[[Vector], Vector]
    size: int
    pairs: np.ndarray


def separated(energy: Potential, dim: int) -> Separated | None:
    """The quantity that leaves the fewest links; None if there is none.

    The model is not evaluated. A quantity that is a parameter itself is none.

    energy: a function of a vector that JAX can trace.
    """
    kind = jax.ShapeDtypeStruct((dim,), float)
    program = flattened(jax.make_jaxpr(energy)(kind))
    depends = reached(program, dim, LEAST_SIZE, MAX_SIZE)
    candidates = [
        var
        for var in quantities(program)
        if var in depends and _is_small_mix(depends[var].reshape(-1, dim))
    ]
    best, work = None, 0
    for var in reversed(candidates[-MAX_TRIALS:]):
        try:
            trial, spent = _cut(program, var, dim)
        except TooLargeError:
            break
        work += spent
        # The first one of equals: multiples of a quantity are computed after it.
        if trial is not None and (best is None or len(trial.pairs) <= len(best.pairs)):
            best = trial
        if work > SHARE_OF_WORK * MAX_WORK:
            break
    return best


def _is_small_mix(depends: np.ndarray) -> bool:
    """Whether entries combine parameters, and not too many of them."""
    numbers = depends.sum(axis=1)
    return bool(numbers.max() > 1 and numbers.sum() <= MAX_DERIVATIVES)


def _cut(program: ClosedJaxpr, var: Any, dim: int) -> tuple[Separated | None, int]:
    """A program's part before a quantity, if it separates; also the work it took."""
    part = part_of(program, var)
    if part is None:
        return None, 0
    size = var.aval.size
    after = Interpreter(dim + size)
    symbols = after.sets.singletons()
    inputs = [Value(symbols[:dim]), Value(symbols[dim:].reshape(var.aval.shape))]
    after.run(with_input(program, var), inputs)
    if not after.sets.bent()[dim:].any():
        return None, after.work  # terms of the energy itself, which tell nothing
    links = after.sets.graph().tocoo()
    row, column = links.row, links.col
    is_link = row < column
    row, column = row[is_link], column[is_link]
    if np.any(column >= dim):
        return None, after.work  # entries that interact, or a scale of the errors
    function = jaxpr_as_fun(part)
    pairs = np.stack([row, column], axis=1)
    return Separated(lambda theta: function(theta)[0].ravel(), size, pairs), after.work

r"""Find the linear predictor of a model: a quantity that is affine given a few hubs.

The latent values of a Gaussian process, $\eta = L(c) z$ with $z$ white and $c$ its
scales, link all parameters with each other. Yet all that the likelihood sees of them
is $\eta$, of which each entry has data of its own. Such an $\eta = m(c) + A(c) r$ is a
quantity that the program computes; what it computes from there links few pairs.
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

LEAST_SIZE, MAX_SIZE = 6, 200
"""Entries of the quantity, and of the parameters in which it is affine.

Fewer leave little to a residual.
"""
FEW_HUBS = 4
"""Hubs with which the predictor is of use where the errors of data are not normal."""
MAX_HUBS = 40
MAX_UNKNOWNS = 800
"""Entries of the two matrices that are fitted, at most."""
MAX_TRIALS = 40
"""Quantities that are looked at: the last that the program computes."""
SHARE_OF_WORK = 0.3
"""Of the work that following a program may be, for all of them together."""
NUM_PROBES = 2
"""Points at which it is seen whether the quantity is affine."""
TOLERANCE = 1e-9


class Predictor(NamedTuple):
    r"""A quantity $\eta(c, r) = m(c) + A(c) r$ that separates $r$ from the data.

    hubs: places of $c$; all other parameters are $r$.
    quantity: $\eta$, a function of the unconstrained vector for JAX.
    links: pairs of entries of $\eta$ that interact, $i \le j$, with the diagonal.
    own_links: the same for $r$, if $\eta$ is held.
    outer_hubs: those hubs that interact with $\eta$ or $r$ if $\eta$ is held.
    """

    hubs: tuple[int, ...]
    quantity: Callable[[Vector], Vector]
    links: tuple[tuple[int, int], ...]
    own_links: tuple[tuple[int, int], ...]
    outer_hubs: tuple[int, ...] = ()

    @property
    def has_few_hubs(self) -> bool:
        """Whether the marginal of the hubs can be fitted, if it has no closed form."""
        return len(self.hubs) <= FEW_HUBS


def predictor(energy: Potential, start: np.ndarray) -> Predictor | None:
    """The quantity that leaves the fewest links; None if there is none.

    The model is not evaluated, only the part of it that computes the quantity.

    energy: a function of a vector that JAX can trace.
    start: a point at which the quantity can be computed.
    """
    dim = len(start)
    program = flattened(jax.make_jaxpr(energy)(jax.ShapeDtypeStruct((dim,), float)))
    depends = reached(program, dim, LEAST_SIZE, MAX_SIZE)
    candidates = [
        var
        for var in quantities(program)
        if var in depends
        and depends[var].reshape(-1, dim).any(axis=0).sum() > LEAST_SIZE
    ]
    found, work = [], 0
    for var in reversed(candidates[-MAX_TRIALS:]):
        try:
            trial, spent = _cut(program, var, start)
        except TooLargeError:
            break
        work += spent
        if trial is not None:
            found.append(trial)
        if work > SHARE_OF_WORK * MAX_WORK:
            break
    # The last one of equals: multiples of a quantity are computed after it.
    found.sort(key=lambda one: (len(one.hubs), len(one.links) + len(one.own_links)))
    return next((one for one in found if _is_affine(one, start)), None)


def _cut(
    program: ClosedJaxpr, var: Any, start: np.ndarray
) -> tuple[Predictor | None, int]:
    """A program's parts before and after a quantity; also the work it took.

    None if the quantity is affine without hubs, needs too many of them, or does not
    separate the other parameters from the data.
    """
    part = part_of(program, var)
    if part is None:
        return None, 0
    dim, function = len(start), jaxpr_as_fun(part)
    before = Interpreter(dim)
    before.run(part, [Value(before.sets.singletons())])
    pairs = before.sets.graph().toarray()
    hubs = cover(pairs)
    if FEW_HUBS < len(hubs) <= MAX_HUBS:
        curved = bent(function, start)
        hubs = cover(pairs, curved)
        if hubs != curved:
            return None, before.work  # as with two unknown factors of a matrix
    if not hubs or len(hubs) > MAX_HUBS:
        return None, before.work
    size = var.aval.size
    after = Interpreter(dim + size)
    symbols = after.sets.singletons()
    inputs = [Value(symbols[:dim]), Value(symbols[dim:].reshape(var.aval.shape))]
    after.run(with_input(program, var), inputs)
    work, links = before.work + after.work, after.sets.graph().toarray()
    # What interacts with the quantity itself, such as the scale of errors.
    hubs |= {int(i) for i in np.flatnonzero(links[:dim, dim:].any(axis=1))}
    rest = np.setdiff1d(np.arange(dim), list(hubs))
    if len(hubs) > MAX_HUBS or len(rest) < LEAST_SIZE:
        return None, work
    own, between = pairs_of(links[np.ix_(rest, rest)]), pairs_of(links[dim:, dim:])
    if len(own) + len(between) > MAX_UNKNOWNS:
        return None, work
    ordered = tuple(sorted(hubs))
    others = np.append(rest, np.arange(dim, dim + size))
    outer = tuple(hub for hub in ordered if links[hub, others].any())
    found = Predictor(
        *(ordered, lambda theta: function(theta)[0].ravel()), between, own, outer
    )
    return found, work


def cover(links: np.ndarray, chosen: frozenset[int] = frozenset()) -> set[int]:
    """Few parameters that are part of all links, by greedy choice.

    chosen: those that are hubs in any case.
    """
    links = links.copy()
    np.fill_diagonal(links, False)
    hubs = set(chosen)
    links[list(hubs)] = links[:, list(hubs)] = False
    while links.any():
        most = int(np.argmax(links.sum(axis=1)))
        hubs.add(most)
        links[most] = links[:, most] = False
    return hubs


def bent(function: Callable, start: np.ndarray) -> frozenset[int]:
    """Parameters in which a quantity is not affine.

    Of a product of an effect and its scale the cover takes either.
    """
    # Effects of zero, where a run may start, would hide their scales.
    place = start + 0.5 * np.random.default_rng(0).standard_normal(len(start))
    steps = place + np.array([[[-1.0]], [[0.0]], [[1.0]]]) * np.eye(len(start))
    values = jax.jit(jax.vmap(lambda one: function(one)[0].ravel()))
    low, middle, high = np.asarray(values(steps.reshape(-1, len(start)))).reshape(
        3, len(start), -1
    )
    bend, size = np.abs(low + high - 2 * middle), np.abs(low) + np.abs(high)
    return frozenset(np.flatnonzero(np.any(bend > TOLERANCE * size, axis=1)).tolist())


def pairs_of(links: np.ndarray) -> tuple[tuple[int, int], ...]:
    r"""Pairs $i \le j$ that are linked."""
    rows, columns = np.nonzero(np.triu(links))
    return tuple(zip(rows.tolist(), columns.tolist(), strict=True))


def _is_affine(found: Predictor, start: np.ndarray) -> bool:
    """Whether the Jacobian along all but the hubs depends on the hubs alone."""
    rng = np.random.default_rng(0)
    rest = np.setdiff1d(np.arange(len(start)), found.hubs)
    first = start + 0.5 * rng.standard_normal((NUM_PROBES, len(start)))
    second = first.copy()
    second[:, rest] = rng.standard_normal((NUM_PROBES, len(rest)))
    # One program for all points: operation by operation takes ten times as long.
    jacobians = jax.jit(jax.vmap(jax.jacfwd(found.quantity)))
    slopes = np.asarray(jacobians(np.concatenate([first, second])))[:, :, rest]
    if not np.isfinite(slopes).all():
        return False
    matrix, again = np.split(slopes, 2)
    largest = np.abs(matrix).max(axis=(1, 2))
    return bool(np.all(np.abs(matrix - again).max(axis=(1, 2)) <= TOLERANCE * largest))

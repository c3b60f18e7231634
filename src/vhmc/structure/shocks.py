r"""The linear predictor of a centred form: the shocks, given the path.

In the coordinates $(c, h)$ of a centred form the shocks are $z = A(c)^{-1} (h - m(c))$,
affine in $h$ given the hubs among $c$. Their prior sees $z$, the data see $h$: an
energy of each, that hardly depends on the hubs, and a path between them that does.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun

from vhmc._types import Shared, Vector
from vhmc.structure.predictor import MAX_UNKNOWNS, Predictor, bent, cover, pairs_of
from vhmc.structure.program.flattened import with_input
from vhmc.structure.program.interpreter import Interpreter
from vhmc.structure.program.parts import part_of
from vhmc.structure.program.values import Value

MAX_SIZE = 100
"""Shocks: a matrix of that size is solved with, and differentiated, at every draw."""


def shocks_of(
    program: ClosedJaxpr,
    var: Any,
    places: np.ndarray,
    start: np.ndarray,
    real: frozenset[int],
) -> Predictor | None:
    """The predictor in coordinates where a quantity takes the places of parameters.

    None if the shocks are not all that lies between the path and their prior.

    var: the quantity in the program, affine in the parameters at the places.
    start: a point at which it can be computed.
    real: parameters without constraint, which need not be hubs.
    """
    part = part_of(program, var)
    if part is None or len(places) > MAX_SIZE:
        return None
    dim, size = len(start), len(places)
    function = jaxpr_as_fun(part)
    before = Interpreter(dim)
    before.run(part, [Value(before.sets.singletons())])
    pairs = before.sets.graph().toarray()
    others = np.setdiff1d(np.arange(dim), places)
    linked = {int(i) for i in others if pairs[i, places].any()}
    hubs = cover(pairs, bent(function, start) | linked)
    after = Interpreter(dim + size)
    symbols = after.sets.singletons()
    inputs = [Value(symbols[:dim]), Value(symbols[dim:].reshape(var.aval.shape))]
    after.run(with_input(program, var), inputs)
    links = after.sets.graph().toarray()
    path = np.arange(dim, dim + size)
    if links[np.ix_(places, path)].any():
        return None
    # What interacts with the shocks, or scales what is seen of the path.
    hubs |= {int(i) for i in others if links[i, places].any()}
    hubs |= {int(i) for i in others if links[i, path].any() and i not in real}
    if not hubs or hubs & set(places.tolist()):
        return None
    rest = np.setdiff1d(np.arange(dim), list(hubs))
    symbol = np.arange(dim)
    symbol[places] = path
    own = pairs_of(links[np.ix_(symbol[rest], symbol[rest])])
    between = pairs_of(links[np.ix_(places, places)])
    if len(own) + len(between) > MAX_UNKNOWNS:
        return None
    ordered = tuple(sorted(hubs))
    seen = np.append(symbol[rest], places)
    outer = tuple(hub for hub in ordered if links[hub, seen].any())
    shocks = Shocks(lambda theta: function(theta)[0].ravel(), places)
    return Predictor(ordered, shocks, between, own, outer)


class Shocks:
    """The shocks as a function of the centred coordinates, for JAX.

    path: computes the path from parameters as they are written.
    places: of the shocks, and of the path in the centred coordinates.
    """

    def __init__(self, path: Callable[[Vector], Vector], places: np.ndarray):
        self._path, self._places = path, places

    def __call__(self, x: Vector) -> Shared:
        base = x.at[self._places].set(0.0)
        slopes = jax.jacfwd(self._path)(base)[:, self._places]
        return jnp.linalg.solve(slopes, x[self._places] - self._path(base))

    def affine_parts(self, base: Vector, rest: Shared) -> tuple[Shared, Shared]:
        """The shocks where the rest is zero, and their slopes along it.

        Derivatives of a solution are solutions: one Jacobian of the path will do.

        base: a point at which the rest is zero.
        """
        slopes = jax.jacfwd(self._path)(base)
        right = jnp.zeros_like(slopes).at[:, self._places].set(jnp.eye(len(slopes)))
        right = right - slopes.at[:, self._places].set(0.0)
        both = jnp.column_stack([-self._path(base), right[:, rest]])
        solved = jnp.linalg.solve(slopes[:, self._places], both)
        return solved[:, 0], solved[:, 1:]

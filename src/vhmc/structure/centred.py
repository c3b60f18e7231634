r"""Find the centred form of a model that is written non-centred.

A path $h = m(c) + A(c) z$ of standard normal $z$ links all of them as soon as it is
observed, while its own values are linked to their neighbours alone. Such an $h$ is a
quantity that the program computes: one with as many entries as $z$, affine in $z$ and
invertible. With $h$ in place of $z$ the prior of $z$ links those entries of $h$ that a
row of $A^{-1}$ has, and the program says what else is linked.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import jax
import numpy as np
import scipy.sparse as sp
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun
from scipy.sparse.csgraph import connected_components

from vhmc._types import Potential, Vector
from vhmc.structure.predictor import Predictor
from vhmc.structure.program.flattened import flattened, with_input
from vhmc.structure.program.interpreter import Interpreter
from vhmc.structure.program.parts import part_of, quantities, reached
from vhmc.structure.program.values import Value
from vhmc.structure.shocks import shocks_of

LEAST_SIZE, MAX_SIZE = 4, 200
"""Entries of a quantity: a matrix of that size is inverted at every point."""
MAX_TRIALS = 24
"""Quantities that are looked at, at most: the first that the program computes."""
LINKED = 2.0
"""Neighbours of a parameter among those like it, on average, that are worth a try."""
SPARSER = 0.6
"""Share of the links that must be left, at most."""
NUM_PROBES = 3
"""Points at which a quantity is computed to see how it depends on the parameters."""
TOLERANCE = 1e-9
MAX_CONDITION = 1e8


class Centred(NamedTuple):
    """Coordinates in which a graph is sparser.

    places: of the parameters that are replaced, in order.
    given: other parameters that the quantity depends on.
    quantity: what replaces them, a function of the unconstrained vector for JAX.
    graph: in these coordinates; each entry of the quantity has one of the places.
    predictor: in these coordinates, between the quantity and the prior of what it
        replaces; None if there is none.
    """

    places: tuple[int, ...]
    given: tuple[int, ...]
    quantity: Callable[[Vector], Vector]
    graph: sp.csr_matrix
    predictor: Predictor | None = None


class Trial(NamedTuple):
    """A quantity that may replace parameters.

    places: of the parameters.
    var: the quantity in the program.
    part: that computes it, as a function of the unconstrained vector.
    """

    places: np.ndarray
    var: Any
    part: Callable[[Vector], Vector]


def centred(
    energy: Potential,
    start: np.ndarray,
    sizes: Mapping[str, int],
    graph: sp.csr_matrix,
    real: frozenset[int] = frozenset(),
) -> Centred | None:
    """The centred form with the sparsest graph; None if none is much sparser.

    The model is not evaluated, only the part of it that computes the quantity.

    energy: a function of a vector that JAX can trace.
    start: a point at which the quantity can be computed.
    sizes: entries of the vector that each named parameter takes, in order.
    graph: of the model as it is written.
    real: parameters without constraint.
    """
    ends = np.cumsum(list(sizes.values()))
    blocks = [
        np.arange(end - size, end)
        for end, size in zip(ends, sizes.values(), strict=True)
    ]
    if not any(_is_linked(graph, block) for block in blocks):
        return None
    kind = jax.ShapeDtypeStruct((len(start),), float)
    program = flattened(jax.make_jaxpr(energy)(kind))
    depends = reached(program, len(start), LEAST_SIZE, MAX_SIZE)
    trials = []
    for places, var in _candidates(program, blocks, graph, depends)[:MAX_TRIALS]:
        part = _part(program, var)
        if part is not None:
            trials.append(Trial(places, var, part))
    found: dict[bytes, Centred] = {}
    variables: dict[Callable, Any] = {}
    for (places, var, part), slopes in zip(trials, _probed(trials, start), strict=True):
        inverse = _inverse_pattern(slopes[:, :, places])
        if inverse is None:
            continue
        given = depends[var].reshape(-1, len(start)).copy()
        given[:, places] = False
        # Multiples of a quantity, say, depend on the parameters as it does itself.
        key = b"".join(array.tobytes() for array in (places, inverse, given))
        if key not in found:
            new = _graph(program, var, places, inverse, given)
            others = np.flatnonzero(given.any(axis=0))
            indices = tuple(places.tolist()), tuple(others.tolist())
            found[key] = Centred(*indices, part, new)
            variables[part] = var
    sparser = [one for one in found.values() if _is_sparser(one, graph)]
    if not sparser:
        return None
    best = min(sparser, key=lambda one: one.graph.nnz)
    var, places = variables[best.quantity], np.array(best.places)
    shocks = shocks_of(program, var, places, start, real)
    return best._replace(predictor=shocks)


def _is_sparser(form: Centred, graph: sp.csr_matrix) -> bool:
    """Whether a form has far fewer links, among the quantity's own entries as well.

    Where these stay linked, as in a sparse regression, only scales are set free, and
    the density may have a spike at zero that it does not have as it is written.
    """
    places = list(form.places)
    own, old = (one[places][:, places].nnz for one in (form.graph, graph))
    return form.graph.nnz <= SPARSER * graph.nnz and own <= SPARSER * old


def _is_linked(graph: sp.csr_matrix, places: np.ndarray) -> bool:
    """Whether these parameters have many neighbours among themselves."""
    links = graph[places][:, places].nnz - len(places)
    return LEAST_SIZE <= len(places) <= MAX_SIZE and links >= LINKED * len(places)


def _candidates(
    program: ClosedJaxpr,
    blocks: Sequence[np.ndarray],
    graph: sp.csr_matrix,
    reached_by: Mapping[Any, np.ndarray],
) -> list[tuple[np.ndarray, Any]]:
    """Parameters and quantities of their number that depend on them all."""
    groups = [*((block,) for block in blocks), *combinations(blocks, 2)]
    joined = [np.sort(np.concatenate(group)) for group in groups]
    joined = [places for places in joined if _is_linked(graph, places)]
    found = []
    for var in quantities(program):
        if var not in reached_by:
            continue
        depends: np.ndarray = np.any(
            reached_by[var].reshape(-1, graph.shape[0]), axis=0
        )
        found += [
            (places, var)
            for places in joined
            if var.aval.size == len(places) and depends[places].all()
        ]
    return found


def _part(program: ClosedJaxpr, var: Any) -> Callable[[Vector], Vector] | None:
    """A function that computes a quantity; None if that is not a small one."""
    part = part_of(program, var)
    if part is None:
        return None
    function = jaxpr_as_fun(part)
    return lambda theta: function(theta)[0].ravel()


def _probed(trials: Sequence[Trial], start: np.ndarray) -> list[np.ndarray]:
    """Jacobians of the quantities at pairs of points that differ at the places."""
    rng = np.random.default_rng(0)
    pairs = []
    for trial in trials:
        first = start + 0.5 * rng.standard_normal((NUM_PROBES, len(start)))
        second = first.copy()
        second[:, trial.places] = rng.standard_normal((NUM_PROBES, len(trial.places)))
        pairs.append(np.concatenate([first, second]))

    # One program for all of them: each would take as long to compile.
    @jax.jit
    def jacobians(points):
        return [
            jax.vmap(jax.jacfwd(trial.part))(rows)
            for trial, rows in zip(trials, points, strict=True)
        ]

    return [np.asarray(slopes) for slopes in jacobians(pairs)]


def _inverse_pattern(slopes: np.ndarray) -> np.ndarray | None:
    """Entries of the inverse Jacobian that are not zero; None if it is not affine.

    slopes: Jacobians at pairs of points, the first ones of all pairs first.
    """
    first, second = np.split(slopes, 2)
    if not np.isfinite(slopes).all():
        return None
    if np.abs(first - second).max() > TOLERANCE * np.abs(first).max(initial=0.0):
        return None
    if not np.all(np.linalg.cond(first) < MAX_CONDITION):
        return None
    inverse = np.abs(np.linalg.inv(first))
    largest = inverse.max(axis=(1, 2), keepdims=True)
    return np.any(inverse > TOLERANCE * largest, axis=0)


def _graph(
    program: ClosedJaxpr,
    var: Any,
    places: np.ndarray,
    inverse: np.ndarray,
    given: np.ndarray,
) -> sp.csr_matrix:
    """The graph with a quantity in place of parameters.

    inverse: pattern of the inverse Jacobian of the quantity.
    given: which other parameters each entry of the quantity depends on.
    """
    size, dim = given.shape
    # One symbol more for each entry of the quantity.
    interpreter = Interpreter(dim + size)
    symbols = interpreter.sets.singletons()
    inputs = [Value(symbols[:dim]), Value(symbols[dim:].reshape(var.aval.shape))]
    interpreter.run(with_input(program, var), inputs)
    links = interpreter.sets.graph().astype(int)
    # What each symbol stands for: the replaced ones for a row of the inverse.
    stands = np.eye(dim + size, dim, dtype=bool)
    stands[dim + np.arange(size), places] = True
    stands[np.ix_(places, places)] = inverse
    number, component = connected_components(inverse, directed=False)
    for one in range(number):
        stands[places[component == one]] |= given[component == one].any(axis=0)
    rows = sp.csr_matrix(stands.astype(int))
    graph = sp.csr_matrix((rows.T @ links @ rows) > 0)
    graph.sort_indices()
    return graph

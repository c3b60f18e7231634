"""Read the graph of a black box off gradients that differ in few parameters.

An entry of the gradient is computed from the parameters it depends on. While the others
move it stays as it is, to the last digits, wherever it is evaluated: one gradient for
each parameter shows all pairs that are linked, as the traced program would.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

ROUNDING = 1e-13
"""Change of an entry, over its size, that is no effect but rounding."""
HUB = 0.5
"""Share of the others to which a parameter is linked that is moved on its own."""
MAX_ALONE = 4
"""Such parameters that are moved, at most."""


class Moved(NamedTuple):
    """A set of parameters to move, and those whose gradient must stay as it is."""

    moved: np.ndarray
    still: np.ndarray


def changed(base: np.ndarray, grads: np.ndarray) -> np.ndarray:
    """Whether each entry of each gradient differs from that at another point.

    A gradient that is not finite counts as different everywhere.

    base: of shape (dim,).
    grads: of shape (n, dim).
    """
    with np.errstate(invalid="ignore", over="ignore"):
        size = np.maximum(np.abs(base), np.abs(grads))
        return ~(np.abs(grads - base) <= ROUNDING * size)


def graph_of(is_changed: np.ndarray) -> sp.csr_matrix:
    """Symmetric matrix of the pairs that are linked, with its diagonal.

    is_changed: row i says which entries of the gradient changed as parameter i moved.
    """
    linked = is_changed | is_changed.T | np.eye(len(is_changed), dtype=bool)
    return sp.csr_matrix(linked)


def trials(rng: np.random.Generator, graph: sp.csr_matrix, number: int) -> list[Moved]:
    """Sets of parameters whose moves show links that a graph does not have.

    Parameters of many links are moved one at a time, as nothing is still if they move
    with others. The sets of the rest are as large as leaves about as many still.

    number: of the sets, at most.
    """
    linked = graph.toarray()
    dim = len(linked)
    degree = linked.sum(axis=1) - 1
    wide = np.flatnonzero((degree > HUB * (dim - 1)) & (degree < dim - 1))
    alone = rng.permutation(wide)[: min(MAX_ALONE, number // 2)]
    rest = np.flatnonzero(degree <= HUB * (dim - 1))
    sets = [np.array([hub]) for hub in alone]
    while len(rest) > 1 and len(sets) < number:
        sets.append(_half(rng, linked, rest))
    pairs = [Moved(moved, ~linked[moved].any(axis=0)) for moved in sets]
    return [pair for pair in pairs if pair.still.any()]


def _half(rng: np.random.Generator, linked: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """Random parameters, until they and their neighbours are half of the rest."""
    chosen: list[int] = []
    reached = np.zeros(len(linked), dtype=bool)
    for one in rng.permutation(rest):
        after = reached | linked[one]
        if chosen and after[rest].mean() > HUB:
            continue
        chosen.append(int(one))
        reached = after
    return np.array(chosen)

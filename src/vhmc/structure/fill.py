"""Where the entries of a precision matrix go when its variables are eliminated.

A matrix with the sparsity of a graph is kept as one list: its diagonal, then one entry
for each variable and each neighbour that is left when the variable is eliminated. The
elimination of a variable changes only entries of this list.
"""

from typing import NamedTuple

import numpy as np

from vhmc.structure.elimination import Level


class LevelFill(NamedTuple):
    """Entries that the elimination of a level reads and changes.

    edges: of its variables and their parents, of shape (q, p); missing ones are padded
        with the number of all entries.
    child, first, second: products of two edges of a variable, by position in `edges`.
    target: entry from which each product is taken, sorted.
    updated: the entries, each once.
    starts: where the products of each of them begin.
    """

    edges: np.ndarray
    child: np.ndarray
    first: np.ndarray
    second: np.ndarray
    target: np.ndarray
    updated: np.ndarray
    starts: np.ndarray


class Fill(NamedTuple):
    """Entries of a matrix under elimination.

    levels: by level.
    num_entries: of the whole list.
    """

    levels: tuple[LevelFill, ...]
    num_entries: int


def fill(levels: tuple[Level, ...], size: int) -> Fill:
    """Entries of a matrix of `size` variables that is eliminated in these levels."""
    place: dict[tuple[int, int], int] = {}
    for level in levels:
        for node, parents in zip(level.nodes, level.parents, strict=True):
            for parent in parents[parents < size]:
                entry = size + len(place) // 2
                place[int(node), int(parent)] = place[int(parent), int(node)] = entry
    num_entries = size + len(place) // 2
    found = tuple(_level_fill(level, size, num_entries, place) for level in levels)
    return Fill(found, num_entries)


def _level_fill(
    level: Level, size: int, num_entries: int, place: dict[tuple[int, int], int]
) -> LevelFill:
    edges = np.full(level.parents.shape, num_entries)
    products = []
    for row, (node, padded) in enumerate(zip(level.nodes, level.parents, strict=True)):
        parents = [int(parent) for parent in padded[padded < size]]
        edges[row, : len(parents)] = [place[int(node), p] for p in parents]
        products += [
            (row, a, b, parents[a] if a == b else place[parents[a], parents[b]])
            for a in range(len(parents))
            for b in range(a + 1)
        ]
    table = np.array(products, dtype=int).reshape(-1, 4)
    child, first, second, target = table[np.argsort(table[:, 3], kind="stable")].T
    updated, starts = np.unique(target, return_index=True)
    return LevelFill(edges, child, first, second, target, updated, starts)

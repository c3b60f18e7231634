"""The order in which the variables of a graph are eliminated, in levels.

Variables of one level are not neighbours, so that a level is one batch of arithmetic. A
star has two levels, a chain of a thousand about ten.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse

SLACK = 2
"""A level also takes variables whose degree exceeds the least one by this factor."""


class Level(NamedTuple):
    """Variables that are eliminated together.

    nodes: of shape (q,).
    parents: neighbours that are left, of shape (q, p); missing ones are padded with the
        number of all variables.
    child, slot: places in `parents` that are not padded, sorted by parent.
    updated: the parents, each once.
    starts: where the places of each of them begin.
    """

    nodes: np.ndarray
    parents: np.ndarray
    child: np.ndarray
    slot: np.ndarray
    updated: np.ndarray
    starts: np.ndarray


def eliminate(graph: scipy.sparse.csr_matrix) -> tuple[Level, ...]:
    """Eliminate variables of least degree, those that are not neighbours together.

    graph: symmetric; its diagonal does not matter.
    """
    size = graph.shape[0]
    neighbours = [
        set(graph.indices[graph.indptr[i] : graph.indptr[i + 1]].tolist()) - {i}
        for i in range(size)
    ]
    left = set(range(size))
    levels = []
    while left:
        batch = [
            (node, sorted(neighbours[node])) for node in _independent(left, neighbours)
        ]
        for node, parents in batch:
            for parent in parents:
                neighbours[parent].discard(node)
                neighbours[parent].update(parents)
                neighbours[parent].discard(parent)
        left.difference_update(node for node, _ in batch)
        levels.append(_level(batch, size))
    return tuple(levels)


def _independent(left: set[int], neighbours: list[set[int]]) -> list[int]:
    """Variables of about the least degree, no two of them neighbours."""
    order = sorted(left, key=lambda node: (len(neighbours[node]), node))
    limit = SLACK * max(1, len(neighbours[order[0]]))
    chosen: list[int] = []
    blocked: set[int] = set()
    for node in order:
        if len(neighbours[node]) > limit:
            break
        if node not in blocked:
            chosen.append(node)
            blocked |= neighbours[node]
    return chosen


def _level(batch: list[tuple[int, list[int]]], size: int) -> Level:
    """Index arrays of one level."""
    width = max(len(parents) for _, parents in batch)
    padded = np.full((len(batch), width), size)
    for row, (_, parents) in enumerate(batch):
        padded[row, : len(parents)] = parents
    child, slot = np.nonzero(padded < size)
    order = np.argsort(padded[child, slot], kind="stable")
    child, slot = child[order], slot[order]
    updated, starts = np.unique(padded[child, slot], return_index=True)
    nodes = np.array([node for node, _ in batch])
    return Level(nodes, padded, child, slot, updated, starts)

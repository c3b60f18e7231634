"""Parts of a graph: every parameter is in one of them, and few are told apart."""

import numpy as np
import scipy.sparse as sp

from vhmc.structure.record import Structure
from vhmc.structure.shapes import MOST_ROOTS, MOST_SHAPES, roots_of, shapes_of


def structure(labels, pairs, hubs=()):
    links = np.eye(len(labels), dtype=bool)
    for i, j in pairs:
        links[i, j] = links[j, i] = True
    return Structure(tuple(labels), sp.csr_matrix(links), "given", tuple(hubs))


def members(roots, shapes):
    by_root = [i for root in roots for i in root.members]
    return sorted(by_root + [i for s in shapes for b in s.blocks for i in b.tolist()])


def test_groups_with_the_same_names_and_links_are_one_shape():
    labels = ["tau", *(f"a[{i}]" for i in range(4)), *(f"b[{i}]" for i in range(4))]
    pairs = [(0, 1 + i) for i in range(8)] + [(1 + i, 5 + i) for i in range(3)]
    graph = structure(labels, pairs, hubs=[0])
    roots = roots_of(graph)
    shapes = shapes_of(graph, roots)
    assert [(root.label, root.is_hub) for root in roots] == [("tau", True)]
    found = [(s.label, len(s.blocks), s.num_links, set(s.roots)) for s in shapes]
    assert found == [("a, b", 3, 1, {0}), ("a", 1, 0, {0}), ("b", 1, 0, {0})]
    assert members(roots, shapes) == list(range(9))


def test_many_hubs_and_shapes_are_put_together():
    num = 12
    hubs = [f"beta[{i}]" for i in range(num)]
    labels = hubs + [f"x{i}" for i in range(num)]
    graph = structure(labels, [(i, num + i) for i in range(num)], hubs=range(num))
    roots = roots_of(graph)
    shapes = shapes_of(graph, roots)
    assert [root.label for root in roots] == ["beta (12)"]
    assert len(shapes) == MOST_SHAPES + 1 and shapes[-1].is_mixed
    assert members(roots, shapes) == list(range(2 * num))
    other = structure(labels, [], hubs=range(num, 2 * num))
    assert len(roots_of(other)) == MOST_ROOTS
    assert members(roots_of(other), shapes_of(other, roots_of(other))) == list(
        range(2 * num)
    )

"""Elimination in levels: every variable once, parents that are a clique afterwards."""

import numpy as np
import pytest
import scipy.sparse

from vhmc.structure.elimination import eliminate


def chain(size):
    entries = np.ones(size - 1)
    return scipy.sparse.csr_matrix(
        scipy.sparse.diags_array([entries, entries], offsets=[-1, 1], dtype=float)
    )


def star(size):
    graph = np.zeros((size, size))
    graph[0] = graph[:, 0] = 1
    return scipy.sparse.csr_matrix(graph)


def random_graph(size):
    rng = np.random.default_rng(0)
    graph = rng.uniform(size=(size, size)) < 0.1
    return scipy.sparse.csr_matrix(graph | graph.T)


@pytest.mark.parametrize("graph", [chain(40), star(40), random_graph(40)])
def test_every_variable_is_eliminated_once_after_its_children(graph):
    levels = eliminate(graph)
    size = graph.shape[0]
    order = np.concatenate([level.nodes for level in levels])
    assert sorted(order) == list(range(size))
    when = np.zeros(size + 1, dtype=int)
    for number, level in enumerate(levels):
        when[level.nodes] = number
    when[size] = len(levels)
    for number, level in enumerate(levels):
        assert np.all(when[level.parents] > number)


@pytest.mark.parametrize("graph", [chain(40), star(40), random_graph(40)])
def test_the_factor_of_a_matrix_has_no_entries_but_those_of_parents(graph):
    """The pattern is that of a Cholesky factor in the order of elimination."""
    rng = np.random.default_rng(1)
    dense = graph.toarray() * rng.uniform(0.5, 1.0, graph.shape)
    matrix = dense + dense.T + 50 * np.eye(len(dense))
    levels = eliminate(graph)
    order = np.concatenate([level.nodes for level in levels])
    factor = np.linalg.cholesky(matrix[np.ix_(order, order)])
    allowed = np.eye(len(order), dtype=bool)
    place = np.argsort(order)
    for level in levels:
        for node, parents in zip(level.nodes, level.parents, strict=True):
            near = parents[parents < len(order)]
            allowed[place[near], place[node]] = True
    assert np.abs(factor[~allowed]).max() < 1e-12


def test_levels_are_few_and_parents_too():
    levels = eliminate(chain(1000))
    assert len(levels) <= 12
    assert max(level.parents.shape[1] for level in levels) <= 2
    assert len(eliminate(star(500))) <= 2

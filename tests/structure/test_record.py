"""Blocks given hubs, sentences about them, and what users may pass."""

import numpy as np
import pytest
import scipy.sparse as sp

from vhmc.structure.given import given
from vhmc.structure.record import Structure

LABELS = ("mu", "tau", *(f"eta[{i}]" for i in range(6)))


def linked(dim, *pairs):
    graph = np.eye(dim, dtype=bool)
    for i, j in pairs:
        graph[i, j] = graph[j, i] = True
    return sp.csr_matrix(graph)


def star():
    """Two hubs, six leaves, of which the last two are linked."""
    edges = [(hub, leaf) for hub in (0, 1) for leaf in range(2, 8)]
    return Structure(
        LABELS, linked(8, *edges, (0, 1), (6, 7)), "traced program", hubs=(1,)
    )


def in_lists(blocks):
    return [block.tolist() for block in blocks]


def test_blocks_given_hubs_and_globals():
    structure = star()
    assert structure.globals() == (0,)
    assert in_lists(structure.blocks()) == [[6, 7], [2], [3], [4], [5]]
    assert structure.globals(()) == (0, 1)
    assert in_lists(structure.blocks(())) == in_lists(structure.blocks())
    assert in_lists(structure.blocks([0, 1, 6])) == [[i] for i in (2, 3, 4, 5, 7)]


def test_blocks_and_separators_divide_the_parameters(seed):
    rng = np.random.default_rng(seed)
    for dim in (1, 2, 5, 30):
        pairs = np.argwhere(rng.uniform(size=(dim, dim)) < 1.5 / dim)
        structure = Structure(("x",) * dim, linked(dim, *pairs), "given", hubs=(0,))
        parts = [[*structure.hubs], [*structure.globals()], *structure.blocks()]
        assert sorted(np.concatenate(parts).tolist()) == list(range(dim))
        graph = structure.graph.toarray()
        for block in structure.blocks():
            others = np.setdiff1d(np.concatenate(structure.blocks()), block)
            assert not graph[np.ix_(block, others)].any()


def test_a_dense_graph_is_one_block():
    structure = Structure(("x",) * 5, linked(5, *np.ndindex(5, 5)), "gradients")
    assert structure.globals() == ()
    assert in_lists(structure.blocks()) == [[0, 1, 2, 3, 4]]


def test_two_populations_have_two_globals():
    """Each mean is linked to half of the effects only."""
    edges = [(0, i) for i in range(2, 12)] + [(1, i) for i in range(12, 22)]
    structure = Structure(("x",) * 22, linked(22, *edges), "given")
    assert structure.globals() == (0, 1)
    assert len(structure.blocks()) == 20


def test_sentences():
    assert str(star()) == (
        "14 of 28 pairs of parameters are linked (from the traced program). "
        "Hub: tau; global: mu; given these, 5 blocks of sizes 1 to 2."
    )
    chain = linked(4, (0, 1), (1, 2), (2, 3))
    assert str(Structure(tuple("abcd"), chain, "gradients", (1,))) == (
        "3 of 6 pairs of parameters are linked (from gradients). "
        "Hub: b; given it, 2 blocks of sizes 1 to 2."
    )
    assert str(Structure(tuple("abcd"), chain, "given")).endswith(
        "(as given). One block of 4 parameters."
    )
    assert str(given(False, LABELS)) == "No structure is used."
    assert str(given({"hubs": ["tau"]}, LABELS)) == (
        "Hub: tau; the graph is not known."
    )


@pytest.mark.parametrize("kind", [np.array, np.ndarray.tolist, sp.csr_array])
def test_a_matrix_is_made_symmetric(kind):
    one_way = np.zeros((8, 8), dtype=int)
    one_way[2, 5] = 1
    structure = given(kind(one_way), LABELS)
    assert structure.source == "given"
    np.testing.assert_array_equal(
        structure.graph.toarray(), linked(8, (2, 5)).toarray()
    )


def test_what_is_found_or_off():
    assert given(True, LABELS) is None
    assert given(None, LABELS) is None
    assert given(False, LABELS).is_off
    wished = given({"hubs": "tau"}, LABELS)
    assert not wished.is_off
    assert wished.graph is None
    found = wished.with_graph(star().graph, "gradients")
    assert (found.source, found.hubs) == ("gradients", (1,))
    assert wished.with_graph(None, "gradients").is_off


def test_hubs_by_name():
    assert given({"hubs": ["tau", "mu"]}, LABELS).hubs == (1, 0)
    assert given({"hubs": "eta"}, LABELS).hubs == (2, 3, 4, 5, 6, 7)
    assert given({"hubs": ["eta[3]", "eta[3]"]}, LABELS).hubs == (5,)
    both = given({"hubs": ["mu"], "graph": np.eye(8)}, LABELS)
    assert both.graph.nnz == 8


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("yes", "must be True, False, a matrix of zeros and ones or a dict, got 'yes'"),
        (3, "must be True, False, a matrix of zeros and ones or a dict, got 3"),
        (np.eye(3), "each of the 8 unconstrained parameters, got shape (3, 3)"),
        (2 * np.eye(8), "entries 0 and 1 only"),
        (sp.csr_matrix(np.full((8, 8), np.nan)), "entries 0 and 1 only"),
        ([[1, 0], [1]], "must be True, False"),
        ({"hub": ["tau"]}, 'takes "hubs" and "graph"'),
        ({}, 'takes "hubs" and "graph"'),
        ({"hubs": ["sigma"]}, "hub sigma is not a parameter: there are mu, tau, eta"),
        ({"hubs": [1]}, "hubs must be names of parameters"),
    ],
)
def test_what_is_refused(spec, message):
    with pytest.raises(ValueError) as error:
        given(spec, LABELS)
    assert message in str(error.value)


def test_blocks_need_a_graph():
    with pytest.raises(ValueError, match="not known"):
        given({"hubs": ["mu"]}, LABELS).blocks()

"""Links are read off gradients that stay the same, and missing ones are found."""

import numpy as np
import pytest

from vhmc.structure.differenced import changed, graph_of, trials

NUM = 24


def star():
    """Two hubs, and effects that are linked to nothing else."""
    linked = np.eye(NUM, dtype=bool)
    linked[:2] = linked[:, :2] = True
    return linked


def chain():
    places = np.arange(NUM)
    return np.abs(places[:, None] - places) <= 1


def nested():
    """A mean of all, and two scales of one half each."""
    linked = np.eye(NUM, dtype=bool)
    linked[0] = linked[:, 0] = True
    linked[1, 3:16] = linked[3:16, 1] = True
    linked[2, 16:] = linked[16:, 2] = True
    return linked


def test_rounding_is_no_change_and_a_failure_is_one():
    base = np.array([1.0, -2.0, 0.0])
    grads = [
        base,
        base * (1 + 1e-15),
        base + np.array([0, 1e-9, 0]),
        base + np.array([0, 0, 1e-30]),
        np.full(3, np.nan),
    ]
    expected = [[0, 0, 0], [0, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1]]
    np.testing.assert_array_equal(changed(base, np.array(grads)), expected)


def test_a_link_seen_from_one_side_is_one():
    seen = np.zeros((3, 3), dtype=bool)
    seen[0, 2] = True
    expected = [[1, 0, 1], [0, 1, 0], [1, 0, 1]]
    np.testing.assert_array_equal(graph_of(seen).toarray(), expected)


@pytest.mark.parametrize("make", [star, chain, nested])
def test_what_is_still_is_linked_to_nothing_that_is_moved(make, seed):
    linked = make()
    for one in trials(np.random.default_rng(seed), graph_of(linked), 8):
        assert one.still.any()
        assert not linked[np.ix_(one.moved, one.still)].any()


@pytest.mark.parametrize("make", [star, chain, nested])
def test_trials_find_most_missing_links(make, seed):
    """Each of them alone; usually many are missing, and one that is found suffices."""
    rng = np.random.default_rng(seed)
    linked = make()
    missing = np.argwhere(np.triu(~linked))
    found = []
    for i, j in missing[rng.permutation(len(missing))[:100]]:
        sets = trials(rng, graph_of(linked), 8)
        found.append(
            any(
                (i in one.moved and one.still[j]) or (j in one.moved and one.still[i])
                for one in sets
            )
        )
    assert np.mean(found) > 0.6


def test_a_full_graph_needs_no_trials(seed):
    full = graph_of(np.ones((NUM, NUM), dtype=bool))
    assert trials(np.random.default_rng(seed), full, 8) == []

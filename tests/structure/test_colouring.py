"""A sparse Hessian is exact from as many differences as there are groups."""

import numpy as np
import pytest
import scipy.sparse as sp

from vhmc.structure.colouring import groups_of, hessian_from

DIM = 30


def star():
    linked = np.eye(DIM, dtype=bool)
    linked[:3] = linked[:, :3] = True
    return linked, 4


def chain_with_a_hub():
    places = np.arange(DIM)
    linked = np.abs(places[:, None] - places) <= 1
    linked[-1] = linked[:, -1] = True
    return linked, 4


def full():
    return np.ones((DIM, DIM), dtype=bool), DIM


def random_links():
    rng = np.random.default_rng(0)
    linked = rng.uniform(size=(DIM, DIM)) < 0.1
    return linked | linked.T | np.eye(DIM, dtype=bool), DIM


@pytest.mark.parametrize("make", [star, chain_with_a_hub, full, random_links])
def test_the_hessian_is_exact(make, seed):
    linked, most = make()
    graph = sp.csr_matrix(linked)
    rows = np.random.default_rng(seed).standard_normal((DIM, DIM))
    hessian = (rows + rows.T) * linked
    groups = groups_of(graph)
    assert len(groups) <= most
    np.testing.assert_array_equal(np.sort(np.concatenate(groups)), np.arange(DIM))
    changes = np.array([hessian[:, group].sum(axis=1) for group in groups])
    found = hessian_from(graph, groups, changes)
    np.testing.assert_allclose(found, hessian, rtol=1e-12, atol=1e-12)

"""Chains in two groups: at the same time, and joined in order."""

import threading

import jax
import numpy as np
import pytest

from vhmc.numerics import chain_groups as beside
from vhmc.numerics.chain_groups import num_groups, side_by_side

KEYS = [jax.random.key(i) for i in range(2)]


@pytest.mark.parametrize(
    ("chains", "groups"), [(1, 1), (2, 1), (3, 1), (4, 2), (7, 1), (8, 2), (16, 2)]
)
def test_groups_are_equal_and_have_two_chains_or_more(chains, groups):
    assert num_groups(chains) == groups


def test_results_come_in_the_order_of_the_chains():
    @jax.jit
    def program(key, x, scale):
        noise = jax.random.normal(key, x.shape)
        return scale[:, None] * x + noise, x.sum(axis=1)

    x, scale = np.arange(24.0).reshape(8, 3), np.arange(8.0)
    moved, total = side_by_side(program, KEYS, x, scale)
    for half, key in zip((slice(4), slice(4, 8)), KEYS, strict=True):
        alone = program(key, x[half], scale[half])
        np.testing.assert_array_equal(moved[half], alone[0])
        np.testing.assert_array_equal(total[half], alone[1])


def test_groups_run_at_the_same_time(monkeypatch):
    """Each waits for the other: one after the other the barrier would break."""
    monkeypatch.setattr(beside, "num_cores", lambda: 2)
    barrier = threading.Barrier(2)

    def program(key, x):
        barrier.wait(60)
        return x

    x = np.arange(8.0)[:, None]
    np.testing.assert_array_equal(side_by_side(program, KEYS, x), x)


def test_what_a_group_raises_is_raised():
    def program(key, x):
        raise FloatingPointError("no")

    with pytest.raises(FloatingPointError, match="no"):
        side_by_side(program, KEYS, np.zeros((4, 1)))

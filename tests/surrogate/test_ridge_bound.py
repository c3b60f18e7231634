"""The least ridge follows what the draws show."""

import numpy as np

from vhmc.surrogate.ridge_bound import LEAST_RIDGE, RidgeBound

HOLES = np.array([0.0, 0.1, 0.2, -0.1, -30.0, -np.inf])


def test_holes_raise_the_bound_and_their_absence_lowers_it():
    bound = RidgeBound()
    before = bound.value
    bound.adapt(HOLES)
    assert bound.value == 10 * before
    bound.adapt(np.zeros(6))
    assert bound.value < 10 * before


def test_it_stays_between_its_limits():
    bound = RidgeBound()
    for _ in range(100):
        bound.adapt(np.zeros(6))
    assert bound.value == LEAST_RIDGE[0]
    for _ in range(100):
        bound.adapt(HOLES)
    assert bound.value == LEAST_RIDGE[-1]


def test_holes_of_checked_draws_are_remembered():
    """Else rounds, which are too short to find them, lower the bound again."""
    bound = RidgeBound()
    for _ in range(100):
        bound.adapt(np.zeros(6))
    bound.keep(np.append(np.zeros(95), np.full(5, -30.0)))
    kept = bound.value
    assert kept >= LEAST_RIDGE[1]
    for _ in range(100):
        bound.adapt(np.zeros(6))
    assert bound.value == kept


def test_checked_draws_without_holes_change_nothing():
    bound = RidgeBound()
    before = bound.value
    bound.keep(np.zeros(100))
    assert bound.value == before

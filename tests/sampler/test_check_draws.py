"""Draws from anywhere are judged by gradients at some of them."""

import warnings

import numpy as np
import pytest

import vhmc
from vhmc.numerics.stein import stein_p_value

SCALES = np.array([1.0, 100.0, 0.01])


def gaussian():
    return vhmc.from_callable(
        lambda x: (-0.5 * np.sum((x / SCALES) ** 2), -x / SCALES**2),
        3,
        names={"a": (), "b": (2,)},
    )


def normal_draws(seed=0, number=4000):
    return np.random.default_rng(seed).normal(size=(number, 3)) * SCALES


def judged(draws, budget=200):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return vhmc.check(gaussian(), draws, budget)


def test_draws_of_the_posterior_are_good():
    """Means of 4,000 draws are off by 0.016 sd; the limit is seven of these."""
    assert judged(normal_draws()).status == "good"


def test_an_error_of_a_mean_is_measured():
    draws = normal_draws() + 0.5 * SCALES * [0.0, 1.0, 0.0]
    verdict = judged(draws)
    assert verdict.status == "bad" and "mean of b[0]" in verdict.reasons[0]
    np.testing.assert_allclose(
        verdict.draws_statistics.errors.mean, [0, 0.5, 0], atol=0.1
    )


def test_an_error_of_an_sd_is_measured():
    verdict = judged(normal_draws() * [1.0, 1.0, 0.5])
    assert verdict.status == "bad" and "sd of b[1]" in verdict.reasons[0]
    np.testing.assert_allclose(
        verdict.draws_statistics.errors.sd, [0, 0, -0.5], atol=0.1
    )
    assert "b[1]" in repr(verdict.draws_statistics)


def test_names_and_chains_say_the_same_as_points():
    draws = normal_draws().reshape(4, 1000, 3)
    named = {"a": draws[..., 0], "b": draws[..., 1:]}
    first, second = judged(draws).numbers(), judged(named).numbers()
    assert first == second


def test_the_budget_is_kept():
    target = gaussian()
    vhmc.check(target, normal_draws(), 60)
    assert target.num_evaluations == 60


def test_the_discrepancy_sees_a_shape_with_right_moments():
    """And is uniform for exact draws: below 0.001 once in a thousand seeds."""
    rng = np.random.default_rng(0)
    exact = rng.normal(size=(600, 2))
    assert stein_p_value(rng, exact, exact, exact) > 1e-3
    two = np.where(rng.random((600, 2)) < 0.5, -1.0, 1.0) + 0.1 * exact
    assert stein_p_value(rng, two, two, two) < 1e-3


def test_draws_of_another_shape_are_refused():
    with pytest.raises(ValueError, match="points must have shape"):
        vhmc.check(gaussian(), np.zeros((10, 2)))
    with pytest.raises(ValueError, match="draws of b are missing"):
        vhmc.check(gaussian(), {"a": np.zeros(100)})

"""The estimates beside which the evidence of a run is measured are right themselves."""

import jax.numpy as jnp
import numpy as np
import pytest

from vhmc.lab.baselines.evidence import bridged_evidence, nested_evidence

SCALES = np.array([0.5, 2.0, 1.0])
TRUTH = float(np.sum(np.log(SCALES)) + 1.5 * np.log(2 * np.pi)) + 7.0


def energy(theta):
    """Of a normal with other scales, whose constant is known."""
    return 0.5 * jnp.sum((theta / SCALES - 3.0) ** 2) - 7.0


def exact_draws(seed):
    white = np.random.default_rng(seed).standard_normal((4, 1000, 3))
    return SCALES * (white + 3.0)


def test_a_bridge_from_exact_draws_finds_the_constant():
    found = bridged_evidence(energy, exact_draws(0), seed=0)
    assert 0 < found.error < 0.01
    assert abs(found.value - TRUTH) < 5 * found.error + 1e-6


@pytest.mark.parametrize("wider", [1.0, 1.5])
def test_nested_sampling_finds_it_whatever_the_reference(wider):
    draws = exact_draws(1)
    draws = draws.mean(axis=(0, 1)) + wider * (draws - draws.mean(axis=(0, 1)))
    pytest.importorskip("blackjax")
    found = nested_evidence(energy, draws, seed=0, num_live=400)
    assert 0.02 < found.error < 0.3
    assert abs(found.value - TRUTH) < 5 * found.error


def test_the_error_of_nested_sampling_falls_with_live_points():
    pytest.importorskip("blackjax")
    few, many = (
        nested_evidence(energy, exact_draws(2), seed=0, num_live=number).error
        for number in (100, 900)
    )
    assert many < 0.6 * few

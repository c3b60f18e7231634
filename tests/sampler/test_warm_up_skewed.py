"""Warm-up of maps with skewed marginals: weights of draws, maps that are refused."""

import jax.numpy as jnp
import numpy as np
import pytest

import vhmc
from vhmc.evaluation.evaluator import Evaluator
from vhmc.sampler import warm_up_skewed as module
from vhmc.sampler.warm_up_skewed import EFFECTIVE, MAX_POWER, tempered, warm_up_skewed
from vhmc.transport.affine import Affine

DIM = 16


def effective(weight):
    return weight.sum() ** 2 / np.sum(weight**2) / len(weight)


@pytest.mark.parametrize("sd", [3.0, 300.0])
def test_a_power_of_the_weights_leaves_an_effective_share(sd):
    log_weight = sd * np.random.default_rng(0).standard_normal(400)
    weight = tempered(log_weight)
    assert effective(weight) == pytest.approx(EFFECTIVE, abs=1e-3)
    # Powers keep the order of the weights.
    assert np.all(np.diff(weight[np.argsort(log_weight)]) >= 0)


def test_weights_that_are_nearly_equal_are_taken_to_the_largest_power():
    log_weight = 0.1 * np.random.default_rng(1).standard_normal(50)
    expected = np.exp(MAX_POWER * (log_weight - log_weight.max()))
    np.testing.assert_allclose(tempered(log_weight), expected)


def skewed_evaluator(budget):
    """Logarithms of gamma variables with shape 1, one a parameter."""
    target = vhmc.from_jax(
        lambda p: jnp.sum(p["t"] - jnp.exp(p["t"])), {"t": jnp.zeros(DIM)}
    )
    return Evaluator(target, budget)


def warmed_up(monkeypatch, budget=256):
    monkeypatch.setattr(module, "_is_emulated", lambda *parts: False)
    monkeypatch.setattr(module, "WIDE", 0.0)
    evaluator = skewed_evaluator(budget)
    start = Affine(np.full(DIM, -1.0), np.eye(DIM))
    rng = np.random.default_rng(2)
    return warm_up_skewed(rng, evaluator, start, budget, 16), evaluator


def test_it_finds_skewed_marginals(monkeypatch):
    """Mean -0.577, sd 1.283; five standard errors of 4,000 draws, and a tenth."""
    transport, evaluator = warmed_up(monkeypatch)
    draws = transport.forward(np.random.default_rng(3).standard_normal((4000, DIM)))
    assert evaluator.left == 0
    assert np.abs(draws.mean(axis=0) + 0.5772).max() < 0.2 * 1.2825
    assert np.abs(draws.std(axis=0) / 1.2825 - 1).max() < 0.2


def test_a_bad_map_is_not_returned(monkeypatch):
    good, _ = warmed_up(monkeypatch)
    real, calls = module.refitted, []

    def spoilt(transport, *parts):
        calls.append(transport)
        found = real(transport, *parts)
        far = Affine(np.full(DIM, 40.0), np.eye(DIM))
        return found.then(far) if len(calls) == 15 else found

    monkeypatch.setattr(module, "refitted", spoilt)
    transport, _ = warmed_up(monkeypatch)
    assert len(calls) == 15  # one for every batch but the last, which tries the map
    x = np.zeros((1, DIM))
    assert np.abs(transport.forward(x) - good.forward(x)).max() < 1.0

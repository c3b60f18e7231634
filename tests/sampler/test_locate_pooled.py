"""The search from nearly complete pooling outwards."""

import jax.numpy as jnp
import numpy as np
import pytest

from tests.densities import Density
from vhmc.sampler.effects import Effects
from vhmc.sampler.locate_pooled import locate_pooled

NUM = 30
DATA = 2.0 * np.random.default_rng(3).standard_normal(NUM)
GROUPS = (Effects(NUM, np.arange(NUM), None, 0.0, 2.0, 1.0),)


def centred(t):
    """Effects around zero, one datum each, and the logarithm of their scale."""
    effects, log_scale = t[:-1], t[-1]
    likelihood = -0.5 * jnp.sum((DATA - effects) ** 2)
    prior = -0.5 * jnp.sum((effects * jnp.exp(-log_scale)) ** 2)
    return likelihood + prior - NUM * log_scale - 0.5 * log_scale**2


def found(allowance=300, seed=0, log_density=centred):
    density = Density(log_density)
    rng = np.random.default_rng(seed)
    return density, locate_pooled(rng, density, np.zeros(NUM + 1), allowance, GROUPS)


def test_the_gaussian_is_around_the_mass(seed):
    _, located = found(seed=seed)
    grid = np.linspace(-4, 3, 2001)
    variance = 1 + np.exp(2 * grid)
    log_mass = -0.5 * np.sum(DATA**2) / variance - NUM / 2 * np.log(variance)
    mass = np.exp(log_mass - 0.5 * grid**2 - np.max(log_mass))
    mean = np.average(grid, weights=mass)
    sd = np.sqrt(np.average((grid - mean) ** 2, weights=mass))
    assert abs(located.layer.mean[NUM] - mean) < 1.5 * sd
    shrunk = DATA * np.average(1 - 1 / variance, weights=mass)
    assert np.max(np.abs(located.layer.mean[:NUM] - shrunk)) < 0.5


@pytest.mark.parametrize("allowance", [30, 120, 300])
def test_the_allowance_is_kept(allowance):
    density, _ = found(allowance)
    assert sum(density.counts.values()) <= allowance


def test_no_mode_is_claimed():
    assert not found()[1].modes.has_mode


def test_a_model_without_an_answer_gives_nothing():
    assert found(log_density=lambda t: jnp.log(-1.0 - t[0] ** 2))[1] is None

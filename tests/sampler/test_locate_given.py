"""The search of a hierarchical model: descents in which its scales are held."""

import jax.numpy as jnp
import numpy as np
import pytest

from tests.densities import Density
from vhmc.sampler.locate import locate
from vhmc.sampler.locate_given import NUM_DRAWS, locate_given

DATA = np.array([0.4, -1.2, 2.1, 0.3, -0.7, 1.5, -0.2, 0.9])
SCALE = len(DATA)
"""Coordinate of the logarithm of the scale."""


def centred(t):
    """Effects around zero, one datum each: the energy falls without bound."""
    effects, log_scale = t[:-1], t[-1]
    likelihood = -0.5 * jnp.sum((DATA - effects) ** 2)
    prior = -0.5 * jnp.sum((effects * jnp.exp(-log_scale)) ** 2)
    hyper = log_scale - 0.5 * jnp.exp(2 * log_scale)
    return likelihood + prior - len(DATA) * log_scale + hyper


def found(log_density=centred, allowance=200):
    density = Density(log_density)
    located = locate_given(
        np.random.default_rng(0),
        density,
        np.zeros(SCALE + 1),
        allowance,
        [SCALE],
        density.hessian,
    )
    return density, located


def test_scales_keep_the_values_of_their_starts():
    log = found()[0].log
    scales = log.theta[log.phase == "search", SCALE]
    counts = np.unique(scales, return_counts=True)[1]
    # Newton's steps at the end, three at most, move all coordinates.
    assert np.sum(counts > 1) == 5 and np.sum(counts == 1) <= 3


def test_the_gaussian_is_at_the_conditional_mode():
    _, located = found()
    log_scale = located.layer.mean[SCALE]
    shrunk = DATA / (1 + np.exp(-2 * log_scale))
    sd = np.sqrt(1 / (1 + np.exp(-2 * log_scale)))
    assert np.max(np.abs(located.layer.mean[:-1] - shrunk) / sd) < 0.3


def test_the_neck_does_not_draw_the_search_in():
    density, located = found()
    usual = locate(
        np.random.default_rng(0),
        Density(centred),
        np.zeros(SCALE + 1),
        200,
        density.hessian,
    )
    # The 1 and 99 % quantiles of the log scale are -4.6 and 0.5, by quadrature.
    assert usual.layer.mean[SCALE] < -6
    assert -4.6 < located.layer.mean[SCALE] < 0.5


@pytest.mark.parametrize("allowance", [30, 80, 200])
def test_the_allowance_is_kept(allowance):
    density, _ = found(allowance=allowance)
    # Newton's steps come on top, three at most; one descent is made in any case.
    spent = density.counts["search"] + density.counts["screening"]
    assert spent <= max(allowance, NUM_DRAWS + 1) + 3


def test_a_model_without_an_answer_is_refused():
    with pytest.raises(ValueError, match="not finite at the start"):
        found(lambda t: jnp.log(-1.0 - t[0] ** 2))

"""The search of a hierarchical model: descents in which its scales are held."""

import jax.numpy as jnp
import numpy as np
import pytest

import vhmc
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


def test_draws_that_compare_the_ends_keep_their_scales():
    """A width of scales that no descent has measured would decide the comparison."""
    log = found()[0].log
    searched, screened = (
        np.unique(log.theta[log.phase == phase, SCALE])
        for phase in ("search", "screening")
    )
    assert len(screened) == 5 and np.isin(screened, searched).all()


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


@pytest.mark.filterwarnings("ignore:verdict bad")
def test_a_mode_of_a_hierarchical_model_is_not_missed_in_silence(seed):
    """Squares of effects are seen: the mean of the effects has two signs."""
    number = 6
    squares = np.linspace(3.5, 4.5, number)

    def log_density(p):
        scale = p["tau"]
        effects = -0.5 * jnp.sum(((p["theta"] - p["mu"]) / scale) ** 2)
        data = -0.5 * jnp.sum((squares - p["theta"] ** 2) ** 2) / 0.5**2
        hyper = -0.5 * (p["mu"] / 3) ** 2 - 0.5 * scale**2
        return effects - number * jnp.log(scale) + data + hyper

    target = vhmc.from_jax(
        log_density,
        {"mu": 0.0, "tau": 1.0, "theta": np.zeros(number)},
        constraints={"tau": vhmc.positive},
    )
    posterior = vhmc.sample(target, 600, seed=seed, progress=False)
    share = np.mean(posterior.draws["mu"] > 0)
    assert posterior.verdict.status != "good" or 0.3 < share < 0.7

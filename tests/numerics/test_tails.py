"""Which quantities have a mean and an sd: what draws tell of their tails."""

import numpy as np
import pytest

from vhmc.numerics.tails import needs_ranks, normal_scores, num_moments, tail_indices

CHAINS, DRAWS, RUNS = 4, 1000, 20
USUAL = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "uniform": lambda rng, n: rng.uniform(size=n),
    "exponential": lambda rng, n: rng.exponential(size=n),
    "gamma": lambda rng, n: rng.gamma(0.5, size=n),
    "lognormal": lambda rng, n: np.exp(0.5 * rng.standard_normal(n)),
    "t5": lambda rng, n: rng.standard_t(5, n),
    "indicator": lambda rng, n: 1.0 * (rng.uniform(size=n) < 0.01),
    "constant": lambda rng, n: np.ones(n),
}
WITHOUT_SD = {"t2": lambda rng, n: rng.standard_t(2, n)}
WITHOUT_MEAN = {
    "t1": lambda rng, n: rng.standard_t(1, n),
    "minus t1": lambda rng, n: -np.abs(rng.standard_t(1, n)),
    "inverse gamma": lambda rng, n: 1 / rng.gamma(1.0, size=n),
    "inverse gamma, half": lambda rng, n: 1 / rng.gamma(0.5, size=n),
}


def found(law, seed):
    """Numbers of moments of independent runs of the same law."""
    rng = np.random.default_rng(seed)
    return num_moments(law(rng, (CHAINS, DRAWS, RUNS)))


@pytest.mark.parametrize("name", USUAL)
def test_usual_laws_have_both(name, seed):
    """None of 400 runs alarmed, so under 1 %: five of twenty once in 600,000 times."""
    assert np.sum(found(USUAL[name], seed) < 2) < 5


@pytest.mark.parametrize("name", WITHOUT_SD)
def test_laws_without_an_sd(name, seed):
    """About 1 % of 400 runs were not found: six of twenty once in 10^7 times."""
    assert np.sum(found(WITHOUT_SD[name], seed) == 2) < 6


@pytest.mark.parametrize("name", WITHOUT_MEAN)
def test_laws_without_a_mean(name, seed):
    """At worst 4 % of 400 runs were not found: eight of twenty once in 10^6 times."""
    assert np.sum(found(WITHOUT_MEAN[name], seed) > 0) < 8


def test_ranks_serve_where_a_sample_sd_is_unsteady(seed):
    """All of 200 runs with 2 degrees of freedom, and none with 5."""
    rng = np.random.default_rng(seed)
    shape = CHAINS, DRAWS, RUNS
    assert not needs_ranks(rng.standard_normal(shape)).any()
    heavy = rng.standard_t(2, shape)
    assert np.all(needs_ranks(heavy) | (num_moments(heavy) == 2))
    light = rng.standard_t(5, shape)
    assert needs_ranks(heavy).mean() > 0.5 > needs_ranks(light).mean()


def test_slow_chains_are_worth_fewer_draws(seed):
    """Draws repeated 50 times have the same tail, of which 80 draws tell too little."""
    rng = np.random.default_rng(seed)
    few = rng.standard_t(2, (CHAINS, DRAWS // 50, RUNS))
    lacking = np.sum(num_moments(np.repeat(few, 50, axis=1)) < 2)
    assert lacking < np.sum(found(WITHOUT_SD["t2"], seed) < 2)


def test_the_index_is_that_of_the_law(seed):
    """Pareto tails of index 0.5 and 1.5, to five standard errors of the fit."""
    rng = np.random.default_rng(seed)
    truth = np.array([0.5, 1.5])
    indices = tail_indices(rng.uniform(size=(40_000, 2)) ** -truth)
    error = (1 + truth) / np.sqrt(6 * np.sqrt(40_000))
    assert (np.abs(indices - truth) < 5 * error).all()


def test_units_and_sign_do_not_matter():
    draws = np.random.default_rng(0).standard_t(2, (CHAINS, DRAWS, 1))
    indices = [
        tail_indices(scale * draws[0] + shift)[0]
        for scale, shift in ((1, 0), (-1e-12, 0), (1e12, 5e12))
    ]
    np.testing.assert_allclose(indices, indices[0], rtol=1e-6)


def test_draws_that_overflow_have_no_mean_and_missing_ones_say_nothing():
    draws = np.random.default_rng(0).standard_normal((CHAINS, DRAWS, 2))
    draws[0, 0] = np.inf, np.nan
    assert num_moments(draws).tolist() == [0, 2]


def test_few_draws_tell_nothing():
    assert num_moments(np.full((1, 3, 2), 1e9)).tolist() == [2, 2]


def test_normal_scores_are_those_of_ranks():
    draws = np.array([3.0, 1.0, 2.0])
    scores = normal_scores(np.array([-9.0, 1.0, 2.0, 3.0, np.inf]), draws)
    assert (np.diff(scores) > 0).all() and np.isfinite(scores).all()
    assert scores[2] == 0.0
    np.testing.assert_allclose(scores, -scores[::-1])

"""Errors number by number: their arithmetic, their size, and where they are shown."""

import jax.numpy as jnp
import numpy as np
import pytest

import vhmc
from tests.sampler.test_check import NORMAL, checked, gaussian_surrogate
from vhmc.models.parameters import Parameters
from vhmc.sampler.parameter_errors import (
    BAD,
    DOUBTFUL,
    Sources,
    bounds,
    error_sources,
    parameter_errors,
)
from vhmc.sampler.reasons import Concern

SPACE = Parameters(np.zeros(2), {})
SHIFT = 0.3


def found(surrogate, seed=0, number=400):
    own = np.random.default_rng(seed).standard_normal((50, 2))
    tempered = surrogate.transport.forward(1.5 * own)
    return checked(surrogate, NORMAL, number, tempered, seed)


def test_a_bound_is_the_root_of_the_weighted_squares():
    sources = Sources(*(np.array([value]) for value in (-3.0, 1.0, 2.0, 0.5, 0.0)))
    got = bounds(sources, (1.0, 4.0, 0.25, 8.0, 7.0))
    np.testing.assert_allclose(got, np.sqrt(9 + 4 + 1 + 2))


def test_of_the_posterior_itself_only_chance_is_left():
    """A mean of 100 effective draws has a standard error of a tenth, an sd of 0.07."""
    of_means, of_sds = error_sources(found(gaussian_surrogate()), SPACE, 100.0)
    for sources, expected in ((of_means, 0.1), (of_sds, 0.5**0.5 / 10)):
        np.testing.assert_allclose(sources.chance, expected, rtol=0.35)
        for source in (sources.weighted, sources.noise, sources.stein):
            np.testing.assert_allclose(source, 0.0, atol=1e-9)


def test_a_shift_is_seen_with_its_sign_and_its_noise():
    """Five standard errors, in each of twenty sets of draws."""
    surrogate = gaussian_surrogate(mean=SHIFT)
    for seed in range(20):
        of_means, _ = error_sources(found(surrogate, seed), SPACE, 8000.0)
        assert (of_means.weighted > 0).all()
        error = np.abs(of_means.weighted - SHIFT)
        assert (error < 5 * of_means.noise + 0.05).all()
        np.testing.assert_allclose(np.abs(of_means.stein), SHIFT, atol=0.06)


def test_noise_is_the_spread_over_sets_of_draws():
    """To a factor of one and a half, with 60 sets."""
    surrogate = gaussian_surrogate(sd=0.9)
    pairs = [error_sources(found(surrogate, s), SPACE, 8000.0) for s in range(60)]
    for kind in (0, 1):
        spread = np.std([pair[kind].weighted for pair in pairs])
        noise = np.median([pair[kind].noise for pair in pairs])
        assert noise / 1.5 < spread < 1.5 * noise


def test_words_follow_the_larger_bound_and_what_no_check_can_see():
    check = found(gaussian_surrogate())

    def words(ess, concerns=()):
        rows = parameter_errors(check, SPACE, ess, False, concerns)
        assert [row.name for row in rows] == ["theta[0]", "theta[1]"]
        for row in rows:
            worst = max(row.mean_bound, row.sd_bound)
            if not concerns:
                assert (row.status == "good") == (worst <= DOUBTFUL)
                assert (row.status == "bad") == (not worst <= BAD)
        return {row.status for row in rows}

    assert words(8000.0) == {"good"}
    assert words(15.0) == {"caution"}
    assert words(1.0) == {"bad"}
    assert words(8000.0, [Concern("caution", "another mode")]) == {"caution"}
    assert words(np.nan) == {"bad"}


def test_a_correction_leaves_its_noise_alone():
    check = found(gaussian_surrogate(mean=SHIFT))
    plain, corrected = (
        error_sources(check, SPACE, 100.0, is_c)[0] for is_c in (False, True)
    )
    assert not corrected.weighted.any() and not corrected.stein.any()
    np.testing.assert_array_equal(corrected.noise, plain.noise)


def test_every_number_of_a_run_has_its_row():
    def log_density(p):
        return -0.5 * jnp.sum(p["x"] ** 2) + 3 * jnp.log(p["scale"]) - p["scale"]

    target = vhmc.from_jax(
        log_density, {"x": np.zeros(2), "scale": 1.0}, {"scale": vhmc.positive}
    )
    posterior = vhmc.sample(target, 400, draws=200, progress=False)
    rows = posterior.verdict.parameters
    table = posterior.summary()
    assert list(table.index) == [row.name for row in rows] == posterior.names
    np.testing.assert_array_equal(table["mean_within"], [r.mean_bound for r in rows])
    np.testing.assert_array_equal(table["sd_within"], [r.sd_bound for r in rows])
    only = posterior.summary(var_names=["scale"])
    assert only["mean_within"].tolist() == [rows[2].mean_bound]
    statistics = posterior.verdict.statistics
    if posterior.correction == "none":
        largest = max(max(row.mean_bound, row.sd_bound) for row in rows)
        assert statistics.error_bound == pytest.approx(largest)

"""A run whose posterior has no mean: what it says instead, wherever it says it."""

import re

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import vhmc
from vhmc.sampler.check import choose, with_moments

K_LAW = scipy.stats.invgamma(1.0)
LOST = ["mean", "sd", "mcse_mean", "mcse_sd"]


@pytest.fixture(scope="module")
def posterior():
    """K is inverse gamma with shape 1 (its density falls like 1 / K^2), x is normal."""

    def log_density(p):
        return -2 * jnp.log(p["K"]) - 1 / p["K"] - 0.5 * jnp.sum(p["x"] ** 2)

    target = vhmc.from_jax(
        log_density, {"x": np.zeros(2), "K": 1.0}, {"K": vhmc.positive}
    )
    return vhmc.sample(target, 600, seed=0, progress=False)


def test_the_quantity_is_found(posterior):
    assert posterior.moments.tolist() == [2, 2, 0]
    assert posterior.verdict.status == "good"


def test_the_table_has_a_median_and_a_word(posterior):
    table = posterior.summary()
    assert table["moments"].tolist() == ["", "", "no mean"]
    assert table.loc["K", LOST].isna().all()
    assert table.loc[["x[0]", "x[1]"], LOST].notna().all(axis=None)
    assert table.loc["K", "median"] == np.median(posterior.draws["K"])
    assert table.loc["K", "5%"] < table.loc["K", "median"] < table.loc["K", "95%"]
    only = posterior.summary(var_names=["K"])
    assert only["moments"].tolist() == ["no mean"]
    assert only.loc["K", "median"] == table.loc["K", "median"]


def test_no_expectation_but_quantiles(posterior):
    """Quantiles of a known law: five standard errors, and a hundredth in rank."""
    estimate = posterior.expect()
    assert estimate.kind[2] == "no mean"
    assert np.isnan(estimate.value[2]) and np.isnan(estimate.error[2])
    assert np.isfinite(estimate.value[:2]).all()
    logs = posterior.expect(lambda draws: np.log(draws["K"]))
    assert abs(logs.value[0] - np.euler_gamma) < 5 * logs.error[0] + 0.02
    probabilities = np.array([0.05, 0.5, 0.95])
    found = posterior.quantiles(probabilities)
    assert found.value.shape == found.error.shape == (3, 3)
    value, allowed = found.value[:, 2], 5 * found.error[:, 2]
    assert (value > K_LAW.ppf(probabilities - 0.01) - allowed).all()
    assert (value < K_LAW.ppf(probabilities + 0.01) + allowed).all()


def test_the_page_says_so(posterior, tmp_path):
    text = posterior.report(tmp_path / "out.html").read_text()
    rows = dict(re.findall(r'<tr data-name="(.*?)">(.*?)</tr>', text))
    cells = re.findall(r"<td>(.*?)</td>", rows["K"])
    assert cells[:2] == ["no mean", "–"] and cells[7:9] == ["–", "–"]
    assert float(cells[3]) == pytest.approx(np.median(posterior.draws["K"]), rel=1e-3)
    assert "no mean" not in rows["x[0]"]
    assert "K: no mean, median" in text and "read the quantiles" in text
    assert "no mean" in posterior._repr_html_()


def test_a_posterior_with_moments_says_nothing(posterior, tmp_path):
    target = vhmc.from_jax(lambda x: -0.5 * x @ x, np.zeros(2))
    usual = vhmc.sample(target, 200, draws=200, progress=False)
    assert "moments" not in usual.summary().columns
    assert "read the quantiles" not in usual.report(tmp_path / "x.html").read_text()


def test_ranks_stand_in_for_values_without_an_sd():
    """One draw far out would else be chosen again and again."""
    rng = np.random.default_rng(0)
    draws = rng.standard_normal((8000, 2))
    far = scipy.stats.cauchy.ppf(scipy.stats.norm.cdf(draws[:, 0]))
    draws[:, 0] = far

    def values(thetas):
        return thetas

    judged = with_moments(values, draws)
    found = judged(draws)
    np.testing.assert_array_equal(found[:, 1], draws[:, 1])
    np.testing.assert_allclose(found[:, 0].std(), 1.0, atol=0.01)
    assert (np.argsort(found[:, 0]) == np.argsort(far)).all()
    by_value = choose(np.random.default_rng(1), values, draws, 200)
    by_rank = choose(np.random.default_rng(1), judged, draws, 200)
    assert len(np.unique(by_value.theta, axis=0)) < 170
    assert len(np.unique(by_rank.theta, axis=0)) > 190


def test_values_with_moments_are_judged_as_they_are():
    def values(thetas):
        return np.exp(0.3 * thetas)

    draws = np.random.default_rng(0).standard_normal((4000, 2))
    assert with_moments(values, draws) is values

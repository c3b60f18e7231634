"""The first experiment: its model against SciPy, and its folder of results."""

import csv
import io
import json
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from rich.console import Console

from vhmc.lab.diagnostics import quadrature
from vhmc.lab.experiments.beta_binomial.measure import (
    LOWER,
    UPPER,
    exact_posterior,
    summarise,
)
from vhmc.lab.experiments.beta_binomial.run import Settings, run
from vhmc.lab.experiments.beta_binomial.write import fall, write
from vhmc.lab.experiments.parts import Progress
from vhmc.lab.models.beta_binomial import beta_binomial, cancer_mortality, log_rising


def test_the_data_are_the_published_twenty_pairs():
    data = cancer_mortality()
    assert len(data.deaths) == 20
    assert data.at_risk.sum() == 71478
    assert data.deaths.sum() == 71


def test_log_density_is_scipys_up_to_a_constant():
    data, target = cancer_mortality(), beta_binomial()

    def by_scipy(m, precision):
        likelihood = scipy.stats.betabinom.logpmf(
            data.deaths, data.at_risk, precision * m, precision * (1 - m)
        ).sum()
        log_prior = -math.log(m) - math.log1p(-m) - 2 * math.log1p(precision)
        log_jacobian = math.log(m) + math.log1p(-m) + math.log(precision)
        return -(likelihood + log_prior + log_jacobian)

    points = [(0.001, 1000.0), (0.002, 300.0), (0.0005, 5e4)]
    thetas = np.array([[math.log(m / (1 - m)), math.log(k)] for m, k in points])
    ours = target.evaluate(thetas).energy
    theirs = np.array([by_scipy(*point) for point in points])
    np.testing.assert_allclose(ours - ours[0], theirs - theirs[0], atol=1e-5)


def test_the_box_holds_the_posterior():
    """All but 5e-5 of it, so its moments are those of a box without end."""
    exact = exact_posterior()
    wide = quadrature.grid((-11.0, -8.0), (2.0, 40.0), 500)
    log_p = quadrature.log_probabilities(beta_binomial().potential, wide)
    points = np.asarray(wide.points)
    inside = np.all((points > LOWER) & (points < UPPER), axis=1)
    assert np.exp(log_p)[~inside].sum() < 5.5e-5
    mean, covariance = quadrature.moments(log_p, wide)
    np.testing.assert_allclose(exact.mean, mean, atol=1e-3)
    np.testing.assert_allclose(exact.sd, np.sqrt(np.diag(covariance)), rtol=2e-3)


@pytest.mark.parametrize("x", [1e-3, 1.0, 999.0, 1001.0, 1e6, 1e15, 1e18])
@pytest.mark.parametrize("n", [0, 1, 3, 54, 53583])
def test_rising_factorials_keep_their_digits(x, n):
    """Against the sum of logs, also where log-gammas cancel, and its slope in x."""
    terms = x + np.arange(n)
    value, slope = jax.value_and_grad(log_rising)(jnp.array(x), jnp.array(float(n)))
    # A logarithm of one is zero, which has no digits: ten roundings of one are left.
    ulps = 10 * np.finfo(float).eps
    np.testing.assert_allclose(value, math.fsum(np.log(terms)), rtol=1e-12, atol=ulps)
    np.testing.assert_allclose(slope, math.fsum(1 / terms), rtol=1e-9)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    settings = Settings(nodes=(10, 60), repetitions=2, num_train=600, draws=100)
    return settings, run(tmp_path_factory.mktemp("small"), settings, silent())


def silent():
    return Progress(Console(file=io.StringIO()), "test")


def test_more_nodes_are_closer(small):
    _, results = small
    table = summarise(results.rows)
    assert fall(table) > 10
    assert table[1]["d_sm_median"] < table[0]["d_sm_median"]
    for line in table:
        assert abs(line["acceptance_training"] - 0.85) < 0.05


def test_every_evaluation_is_in_the_costs(small):
    _, results = small
    training = sum(row["evaluations"] for row in results.rows)
    assert results.costs["training"] == training
    assert results.costs["hessian"] == 2
    assert 0.7 < training / (2 * 2 * 600) < 1


def test_the_folder_holds_figures_numbers_and_settings(small, tmp_path):
    settings, results = small
    story = write(tmp_path, settings, results, quick=False)
    assert story.panels[1].claims[0].status == "held"
    assert {path.name for path in tmp_path.iterdir()} == {
        "contours.png",
        "contours.pdf",
        "divergence.png",
        "divergence.pdf",
        "numbers.csv",
        "summary.csv",
        "run.json",
    }
    with (tmp_path / "numbers.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 4
    assert float(rows[0]["kl"]) == results.rows[0]["kl"]
    record = json.loads((tmp_path / "run.json").read_text())
    assert record["settings"]["seed"] == 0
    assert record["evaluations"] == results.costs
    assert {"python", "jax", "vhmc"} <= set(record["versions"])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"nodes": ()}, r"numbers of nodes must grow, got \[\]"),
        ({"nodes": (10, 10)}, r"numbers of nodes must grow, got \[10, 10\]"),
        ({"repetitions": 0}, "repetitions must be at least 1, got 0"),
        ({"draws": 0}, "draws must be at least 1, got 0"),
    ],
)
def test_bad_settings_get_a_sentence(settings, message):
    with pytest.raises(ValueError, match=message):
        Settings(**settings)


@pytest.mark.slow
def test_by_default_the_divergence_falls_by_two_orders_of_magnitude(tmp_path):
    assert fall(summarise(run(tmp_path, Settings(), silent()).rows)) > 100

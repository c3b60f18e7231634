"""The first experiment: its model against SciPy, and its folder of results."""

import csv
import json
import math

import numpy as np
import pytest
import scipy.stats

from vhmc.experiments.beta_binomial.measure import exact_posterior, summarise
from vhmc.experiments.beta_binomial.run import Settings, run
from vhmc.experiments.beta_binomial.write import fall, write
from vhmc.models.beta_binomial import beta_binomial, cancer_mortality


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
    """Doubling the grid changes nothing, so the quadrature has converged."""
    exact = exact_posterior()
    np.testing.assert_allclose(exact.mean, [-6.8154, 7.9393], atol=2e-3)
    np.testing.assert_allclose(exact.sd, [0.2942, 1.4264], atol=2e-3)


@pytest.fixture(scope="module")
def small():
    settings = Settings(nodes=(10, 60), repetitions=3, num_train=800, draws=200)
    return settings, run(settings)


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
    assert results.costs == {
        "search": results.costs["search"],
        "hessian": 2,
        "training": training,
    }
    assert training < 2 * 3 * 800


def test_the_folder_holds_figures_numbers_and_settings(small, tmp_path):
    settings, results = small
    write(tmp_path, settings, results, seconds=1.0)
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
    assert len(rows) == 6
    assert float(rows[0]["kl"]) == results.rows[0]["kl"]
    record = json.loads((tmp_path / "run.json").read_text())
    assert record["settings"]["seed"] == 0
    assert record["evaluations"] == results.costs
    assert {"python", "jax", "vhmc"} <= set(record["versions"])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"nodes": ()}, "at least one number of nodes"),
        ({"repetitions": 0}, "repetitions must be at least 1, got 0"),
        ({"draws": 0}, "draws must be at least 1, got 0"),
    ],
)
def test_bad_settings_get_a_sentence(settings, message):
    with pytest.raises(ValueError, match=message):
        Settings(**settings)


@pytest.mark.slow
def test_by_default_the_divergence_falls_by_two_orders_of_magnitude():
    assert fall(summarise(run(Settings()).rows)) > 100

"""The benchmark of modes: masses and moments are exact, and it runs."""

import numpy as np
import pytest
from typer.testing import CliRunner

from tests.chance import LIMIT
from vhmc import cli
from vhmc.lab.bench.modes.problems import PEAKS, six_modes
from vhmc.lab.bench.modes.run import Divided


@pytest.fixture
def rng(seed):
    return np.random.default_rng(seed)


@pytest.mark.parametrize("name", PEAKS)
def test_masses_add_up_to_one(name):
    peaks = PEAKS[name]()
    assert abs(peaks.masses.sum() - 1) < 1e-12
    assert len(peaks.mean) == len(peaks.sd) == len(peaks.model.names())
    assert np.all(peaks.sd > 0)


def test_draws_of_the_mixture_have_its_masses_and_moments(rng):
    peaks = six_modes(5)
    angle = 2 * np.pi * np.arange(6) / 6
    labels = rng.choice(6, 20_000, p=peaks.masses)
    theta = rng.standard_normal((20_000, 5))
    theta[:, 0] += 9 * np.cos(angle)[labels]
    theta[:, 1] += 9 * np.sin(angle)[labels]
    draws = {"theta": theta}
    errors = np.sqrt(peaks.masses * (1 - peaks.masses) / 20_000)
    assert np.all(np.abs(peaks.shares(draws) - peaks.masses) < LIMIT * errors)
    mean_error, sd_error = peaks.errors(draws)
    assert mean_error < LIMIT / np.sqrt(20_000)
    assert sd_error < LIMIT / np.sqrt(20_000)


def test_labels_have_the_moments_of_all_orders():
    """Two locations at -3 and 3, each known to about 1 / sqrt(40)."""
    peaks = PEAKS["labels-2"]()
    np.testing.assert_allclose(peaks.mean, 0, atol=0.02)
    np.testing.assert_allclose(peaks.sd, 3, atol=0.05)


def test_modes_are_measured(tmp_path):
    words = "bench modes --problems close-2 --seeds 1 --budget 300 --out"
    found = CliRunner().invoke(cli.app, [*words.split(), str(tmp_path)])
    assert found.exit_code == 0, found.output
    header, row = (tmp_path / "rows.csv").read_text().splitlines()
    assert tuple(header.split(",")) == Divided._fields
    assert float(row.split(",")[3]) < 0.3

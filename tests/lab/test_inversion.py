"""The Poisson inversion: its solver against stored answers, its adjoint, its file."""

import json
from pathlib import Path

import numpy as np
import pytest

from vhmc.lab.bench.measure import TimedTarget
from vhmc.lab.bench.structured import inversion
from vhmc.lab.data.dataset import find_folder


@pytest.fixture(scope="module")
def checks():
    folder = find_folder("VHMC_DATA", inversion.FILE)
    with np.load(folder / inversion.FILE) as file:
        return dict(file)


def test_the_solver_meets_the_stored_checks(checks):
    membrane = inversion.Membrane()
    found = np.array([membrane(theta) for theta in checks["test_theta"]])
    np.testing.assert_allclose(found, checks["test_measurements"], atol=1e-10)


def test_the_target_has_the_densities_of_the_checks(checks):
    """The prior is a density in theta: its Jacobian makes the one of log theta."""
    log_theta = np.log(checks["test_theta"][:4])
    target = inversion.target()
    energy = target.evaluate(log_theta).energy
    density = checks["test_log_likelihood"] + checks["test_log_prior"]
    expected = density[:4] + log_theta.sum(axis=1)
    gaps = energy + expected
    np.testing.assert_allclose(gaps, gaps[0], rtol=1e-7)
    direction = np.random.default_rng(0).standard_normal(64)
    ends = log_theta[3] + np.outer([1e-5, -1e-5], direction)
    ahead, behind = target.evaluate(ends).energy
    slope = target.evaluate(log_theta[3:4]).grad[0] @ direction
    np.testing.assert_allclose((ahead - behind) / 2e-5, slope, rtol=1e-6)


def test_the_reference_says_how_good_it_is():
    path = Path(inversion.__file__).with_name(inversion.REFERENCE)
    table = json.loads(path.read_text())
    assert table["r_hat"] < 1.01 and table["ess_bulk"] > 1000
    assert "benchmarks/poisson_reference.py" in table["made_by"]


def test_a_timed_target_has_the_outputs_of_its_target():
    target = inversion.target()
    timed = TimedTarget(target)
    assert timed.observable is target.observable
    assert np.isfinite(timed.evaluate(np.zeros((1, 64))).outputs).all()

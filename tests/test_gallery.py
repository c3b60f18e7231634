"""The scripts of the gallery run as they stand, and their answers are right."""

import importlib.util
import warnings
from pathlib import Path

import numpy as np
import pytest

GALLERY = Path(__file__).parents[1] / "gallery"


def load(name):
    spec = importlib.util.spec_from_file_location(name, GALLERY / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(name, capsys):
    """A script's posterior, and what it printed."""
    module = load(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the libraries that it shows
        posterior = module.main()
    said = capsys.readouterr().out
    assert posterior.verdict.status in said
    assert posterior.verdict.status != "bad", posterior.verdict
    return module, posterior, said


@pytest.mark.slow
class TestPyMC:
    def test_cities(self, capsys):
        _, posterior, said = run("pymc_cities", capsys)
        assert "traced by JAX" in said
        data = posterior.to_arviz()["posterior"]
        assert data["rate"].dims == ("chain", "draw", "city")
        assert data["rate"].sel(city="city 3").shape == (8, 1000)
        assert "highest rate: city" in said


class TestNumPyro:
    def test_regression(self, capsys):
        _, posterior, _ = run("numpyro_regression", capsys)
        assert set(posterior.draws) == {"intercept", "slope", "logit"}
        assert posterior.draws["logit"].shape == (8, 1000, 20)


class TestStan:
    def test_regression(self, capsys):
        _, posterior, said = run("stan_regression", capsys)
        assert "elpd" in said
        fitted, new = posterior.draws["fitted"], posterior.draws["y_new"]
        # Fresh noise of the posterior's own size: 160,000 draws of mean zero.
        noise = (new - fitted) / posterior.draws["sigma"][..., None]
        assert abs(noise.mean()) < 5 / np.sqrt(noise.size)
        assert abs(noise.std() - 1) < 5 / np.sqrt(2 * noise.size)


class TestODE:
    def test_black_box(self, capsys):
        module, posterior, _ = run("ode_black_box", capsys)
        for name, truth in module.TRUTH.items():
            draws = posterior.draws[name]
            assert abs(draws.mean() - truth) < 4 * draws.std()

    def test_sensitivities_are_derivatives(self):
        module = load("ode_black_box")
        model = module.Model(module.simulate())
        point = np.array([1.8, 1.2, 9.5, 0.3])
        _, grad = model(point)
        for i, step in enumerate(np.diag(1e-5 * point)):
            rise = model(point + step)[0] - model(point - step)[0]
            assert rise / (2 * step[i]) == pytest.approx(grad[i], rel=1e-5, abs=1e-5)


@pytest.mark.slow
class TestUMBridge:
    def test_rod(self, capsys):
        module, posterior, said = run("umbridge_rod", capsys)
        assert "the UM-Bridge model rod at http://127.0.0.1:" in said
        for number, truth in enumerate(module.TRUTH, start=1):
            draws = posterior.draws[f"q{number}"]
            assert abs(draws.mean() - truth) < 4 * draws.std()

"""The race on tall data: small enough for a test, and its parts."""

import csv

import numpy as np
import pytest
from typer.testing import CliRunner

from tests.cli.test_cli import call
from vhmc import cli
from vhmc.lab.bench.tall import problems
from vhmc.lab.bench.tall.problems import reference
from vhmc.paper.laplace_guide import laplace


def test_the_reference_is_that_of_quadrature():
    """One column and an intercept: moments on a grid, to the reference's own error."""
    rng = np.random.default_rng(0)
    x = np.stack([np.ones(400), rng.standard_normal(400)], axis=1)
    y = (rng.uniform(size=400) < 0.3).astype(float)
    problem = problems.TallProblem("small", x, y, "")
    found = reference(problem, 100)
    target = problem.target()
    guide = laplace(target, target.start).guide
    sd = np.sqrt(np.diag(np.linalg.inv(np.asarray(guide.precision))))
    sides = [
        m + s * np.linspace(-7, 7, 80) for m, s in zip(guide.mean, sd, strict=True)
    ]
    grid = np.stack(np.meshgrid(*sides, indexing="ij"), axis=-1).reshape(-1, 2)
    energy = target.evaluate(grid).energy
    weight = np.exp(energy.min() - energy)
    weight /= weight.sum()
    mean = weight @ grid
    covariance = (grid - mean).T @ ((grid - mean) * weight[:, None])
    np.testing.assert_allclose(found.mean, mean, atol=0.02 * sd.max())
    np.testing.assert_allclose(found.covariance, covariance, atol=0.03 * sd.max() ** 2)
    assert found.rem < 0.02
    assert found.rec < 0.05


def test_linear_combinations_are_dropped():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((50, 3))
    x = np.concatenate([x, x[:, :1] - 2 * x[:, 2:]], axis=1)
    assert problems.design(x).shape == (50, 4)


@pytest.mark.parametrize("name", ["a9a", "nycflights", "covtype"])
def test_the_real_data_are_there(name):
    problem = problems.make(name)
    shapes = {
        "a9a": (32_561, 51),
        "nycflights": (325_724, 43),
        "covtype": (581_012, 48),
    }
    assert problem.x.shape == shapes[name]
    assert problem.note.startswith("real")


@pytest.mark.slow
def test_a_race_from_end_to_end(tmp_path):
    done = call(
        *("bench", "tall", "--problems", "simulated-2000", "--out", str(tmp_path)),
        *("--methods", "vhmc,sgld,pathfinder", "--limit", "1", "--rounds", "30"),
    )
    assert done.returncode == 0, done.stderr
    with (tmp_path / "races.csv").open() as stream:
        rows = {row["method"]: row for row in csv.DictReader(stream)}
    assert list(rows) == ["vhmc", "sgld", "pathfinder"]
    ours = rows["vhmc"]
    assert float(ours["rem"]) < 0.02
    assert float(ours["rec"]) < 0.2
    assert float(ours["passes"]) <= 1000
    assert (tmp_path / "seconds.png").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--problems", "iris"],
            "problems are a9a, nycflights, covtype and simulated-",
        ),
        (["--methods", "gibbs"], "methods are vhmc, blackjax-nuts"),
        (["--limit", "0"], "limit and times must be positive"),
    ],
)
def test_bad_input_is_one_line(options, message):
    done = CliRunner().invoke(cli.app, ["bench", "tall", *options])
    assert done.exit_code == 2
    assert message in done.stderr and done.stderr.count("\n") == 1

"""`vhmc.sample` takes models as they are, and says what else it would take."""

import functools
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pymc as pm
import pytest

import vhmc
from vhmc.models.model_target import model_target

PROGRAM = Path(__file__).parent / "eight_schools.stan"
DATA = {
    "J": 8,
    "y": [28.0, 8, -3, 7, -1, 1, 18, 12],
    "sigma": [15.0, 10, 16, 11, 9, 11, 10, 18],
}


def regression(x, y=None):
    slope = numpyro.sample("slope", dist.Normal(0, 1))
    numpyro.sample("y", dist.Normal(slope * x, 1), obs=y)


X, Y = np.linspace(-1, 1, 20), np.linspace(-2, 2, 20)


def in_pymc():
    with pm.Model() as model:
        slope = pm.Normal("slope", 0, 1)
        pm.Normal("y", slope * X, 1, observed=Y)
    return model


def same(one, other):
    theta = np.full((1, one.dim), 0.3)
    assert one.evaluate(theta).energy == other.evaluate(theta).energy


def test_a_target_is_taken_as_it_is():
    target = vhmc.from_jax(lambda t: -0.5 * t @ t, jnp.zeros(2))
    assert model_target(target) is target


def test_a_pymc_model():
    model = in_pymc()
    same(model_target(model), vhmc.from_pymc(model))


def test_a_numpyro_model_with_its_arguments_bound():
    bound = functools.partial(regression, X, y=Y)
    same(model_target(bound), vhmc.from_numpyro(regression, X, y=Y))
    same(model_target(lambda: regression(X, Y)), vhmc.from_numpyro(regression, X, Y))


@pytest.mark.parametrize("kind", [Path, str])
def test_a_stan_program_with_its_data(kind):
    same(model_target(kind(PROGRAM), DATA), vhmc.from_stan(PROGRAM, DATA))


def test_the_models_of_all_front_ends_are_sampled():
    expected = X @ Y / (1 + X @ X)
    sd = (1 + X @ X) ** -0.5
    with in_pymc():
        runs = [vhmc.sample(budget=500, progress=False)]
    runs += [
        vhmc.sample(model, 500, progress=False)
        for model in (in_pymc(), functools.partial(regression, X, y=Y))
    ]
    for run in runs:
        # A Gaussian's map is exact: the limit is nine standard errors of 8,000 draws.
        assert abs(run.draws["slope"].mean() - expected) < 0.1 * sd
        assert run.verdict.status == "good"


def test_planning_and_checking_take_models_too():
    model = in_pymc()
    assert vhmc.plan(model, 300).total == 300
    rng = np.random.default_rng(0)
    draws = X @ Y / (1 + X @ X) + (1 + X @ X) ** -0.5 * rng.standard_normal((500, 1))
    assert vhmc.check(model, draws, 100).status == "good"


@pytest.mark.parametrize(
    ("model", "data", "message"),
    [
        (None, None, "the model must be a PyMC model, a NumPyro model"),
        (3, None, "got 3"),
        (1000, None, "must be a PyMC model"),
        (regression, None, "the model needs x: bind the arguments"),
        (lambda theta: -(theta**2), None, "from_jax or vhmc.from_callable"),
    ],
)
def test_what_is_no_model_is_refused_in_a_sentence(model, data, message):
    with pytest.raises(TypeError, match=message):
        vhmc.sample(model, data=data)


def test_paths_and_data_must_be_of_stan():
    with pytest.raises(ValueError, match=r"must end in \.stan, got 'model.py'"):
        vhmc.sample("model.py")
    with pytest.raises(ValueError, match="data is for a Stan program"):
        vhmc.sample(in_pymc(), data={"y": 1})

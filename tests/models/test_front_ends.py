"""One posterior through every front end: the same density, names, shapes and draws."""

import warnings
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pymc as pm
import pytest

import vhmc
from vhmc.evaluation.space import Space
from vhmc.lab.bench import posteriordb
from vhmc.lab.bench.problem import errors

HERE = Path(__file__).parent
REGRESSION = HERE.parents[1] / "gallery" / "regression.stan"
KINDS = "jax", "numpyro", "pymc", "stan"
BY_SCHOOL = {name: ["school"] for name in ("t", "theta", "y")}
BY_NUMBER = {name: [f"{name}_dim_0"] for name in ("beta", "fitted", "y")}
DIMS = {
    "eight_schools": {"numpyro": BY_SCHOOL, "pymc": BY_SCHOOL, "jax": {}, "stan": {}},
    "kidiq": {"numpyro": BY_NUMBER, "pymc": {}, "jax": {}, "stan": {}},
}
"""Names of axes that each front end knows."""


def schools(kind):
    problem = posteriordb.eight_schools()
    data = posteriordb.data("eight_schools")
    y, sigma = data["y"], data["sigma"]
    if kind == "jax":
        return problem.make()
    if kind == "numpyro":

        def model(y):
            mu = numpyro.sample("mu", dist.Normal(0, 5))
            tau = numpyro.sample("tau", dist.HalfCauchy(5))
            with numpyro.plate("school", len(sigma)):
                t = numpyro.sample("t", dist.Normal(0, 1))
                theta = numpyro.deterministic("theta", mu + tau * t)
                numpyro.sample("y", dist.Normal(theta, sigma), obs=y)

        return vhmc.from_numpyro(model, jnp.asarray(y))
    if kind == "pymc":
        names = [f"school {number}" for number in range(8)]
        with pm.Model(coords={"school": names}):
            mu = pm.Normal("mu", 0, 5)
            tau = pm.HalfCauchy("tau", 5)
            t = pm.Normal("t", 0, 1, dims="school")
            theta = pm.Deterministic("theta", mu + tau * t, dims="school")
            pm.Normal("y", theta, sigma, observed=y, dims="school")
            return vhmc.from_pymc()
    data = {"J": 8, "y": y, "sigma": sigma}
    return vhmc.from_stan(HERE / "eight_schools.stan", data)


def kidiq(kind):
    data = posteriordb.data("kidiq")
    score, school, iq = data["kid_score"], data["mom_hs"], data["mom_iq"]
    design = np.stack([np.ones_like(iq), school, iq, school * iq], axis=1)
    if kind == "jax":
        return posteriordb.kidiq().make()
    if kind == "numpyro":

        def model():
            beta = numpyro.sample(
                "beta", dist.ImproperUniform(dist.constraints.real, (), (4,))
            )
            sigma = numpyro.sample("sigma", dist.HalfCauchy(2.5))
            fitted = numpyro.deterministic("fitted", design @ beta)
            numpyro.sample("y", dist.Normal(fitted, sigma), obs=score)

        return vhmc.from_numpyro(model)
    if kind == "pymc":
        with pm.Model() as model:
            beta = pm.Flat("beta", shape=4, initval=np.zeros(4))
            sigma = pm.HalfCauchy("sigma", 2.5)
            fitted = pm.Deterministic("fitted", design @ beta)
            pm.Normal("y", fitted, sigma, observed=score)
        return vhmc.from_pymc(model)
    data = {"N": len(iq), "D": 4, "X": design, "y": score.astype(float)}
    return vhmc.from_stan(REGRESSION, data)


MODELS = {"eight_schools": schools, "kidiq": kidiq}


# A Stan program takes half a minute to compile: one in the default run is enough.
@pytest.fixture(
    scope="module",
    params=["eight_schools", pytest.param("kidiq", marks=pytest.mark.slow)],
)
def same(request):
    """The name of a posterior, and its target through each front end."""
    make = MODELS[request.param]
    return request.param, {kind: make(kind) for kind in KINDS}


def test_densities_and_gradients_are_equal(same):
    name, targets = same
    rng = np.random.default_rng(0)
    thetas = rng.normal(size=(20, targets["jax"].dim))
    if name == "kidiq":
        thetas = thetas * [20.0, 20, 0.2, 0.2, 0.1] + [25.0, 50, 1, -0.5, 3]
    answers = {kind: target.evaluate(thetas) for kind, target in targets.items()}
    expected = answers["jax"]
    assert np.isfinite(expected.energy).all()
    for answer in answers.values():
        gap = answer.energy - expected.energy
        scale = np.abs(expected.energy).max()
        np.testing.assert_allclose(gap, gap[0], atol=1e-10 * max(1.0, scale))
        grads = answer.grad, expected.grad
        np.testing.assert_allclose(*grads, rtol=1e-8, atol=1e-8 * np.abs(grads).max())


def test_constants_are_kept(same):
    """All but one of Stan: it does not know that a bound cuts a Cauchy in half."""
    _, targets = same
    thetas = np.zeros((1, targets["jax"].dim))
    energy = {kind: target.evaluate(thetas).energy for kind, target in targets.items()}
    np.testing.assert_allclose(energy["pymc"], energy["numpyro"], rtol=1e-8)
    np.testing.assert_allclose(energy["stan"], energy["pymc"] + np.log(2), rtol=1e-8)


def test_improper_priors_are_named():
    """Their constant is arbitrary, and so would the evidence be."""
    for kind in ("numpyro", "pymc"):
        assert schools(kind).constants == ""
        assert "the prior of beta is improper" in kidiq(kind).constants


def test_names_and_shapes_are_equal(same):
    _, targets = same
    thetas = np.random.default_rng(1).normal(size=(2, 3, targets["jax"].dim))
    expected = targets["jax"].parameters
    values = expected.constrain(thetas)
    for target in targets.values():
        space: Space = target.parameters
        before = target.num_evaluations
        assert space.names == expected.names
        assert space.shapes == expected.shapes
        labels = [space.label(i).partition("[")[0] for i in range(space.dim)]
        assert labels == [expected.label(i).partition("[")[0] for i in range(space.dim)]
        for name, value in space.constrain(thetas).items():
            np.testing.assert_allclose(value, values[name], rtol=1e-12)
        assert target.num_evaluations == before


def test_derived_quantities_are_equal(same):
    name, targets = same
    thetas = np.random.default_rng(2).normal(size=(2, 3, targets["jax"].dim))
    derived = {"eight_schools": "theta", "kidiq": "fitted"}[name]
    values = [
        targets[kind].parameters.expand(thetas)[derived]
        for kind in KINDS
        if kind != "jax"
    ]
    assert values[0].shape[:2] == (2, 3)
    for value in values[1:]:
        np.testing.assert_allclose(value, values[0], rtol=1e-10)


def test_log_likelihoods_of_single_data_are_equal(same):
    name, targets = same
    thetas = np.random.default_rng(3).normal(size=(2, 3, targets["jax"].dim))
    kinds = ["numpyro", "pymc"] + ["stan"] * (name == "kidiq")
    terms = [
        next(iter(targets[kind].parameters.log_likelihood(thetas).values()))
        for kind in kinds
    ]
    assert terms[0].shape == (2, 3, {"eight_schools": 8, "kidiq": 434}[name])
    for term in terms[1:]:
        np.testing.assert_allclose(term, terms[0], rtol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "jax"])
def test_draws_of_all_agree_with_the_reference(same, kind, seed):
    check_draws(*same, kind, seed)


def test_draws_agree_with_the_reference(same, seed):
    """One front end per posterior: the densities of all are equal, as tested above."""
    name, _ = same
    kind = {"eight_schools": "stan", "kidiq": "pymc"}[name]
    check_draws(*same, kind, seed)


def check_draws(name, targets, kind, seed):
    """A seventh of an sd for means and for sds; the benchmark's medians are 0.04."""
    problem = getattr(posteriordb, name)()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        posterior = vhmc.sample(targets[kind], 1000, seed=seed)
    assert posterior.verdict.status != "bad", posterior.verdict
    assert posterior.num_evaluations <= 1000
    draws = {name: posterior.draws[name] for name in problem.make().parameters.names}
    mean_error, sd_error = errors(problem, draws)
    assert mean_error < 0.15
    assert sd_error < 0.15


def test_dims_and_coords_are_those_of_the_model(same):
    name, targets = same
    for kind, expected in DIMS[name].items():
        dims = targets[kind].parameters.dims
        assert {site: axes for site, axes in dims.items() if axes} == expected, kind
    space = targets["pymc"].parameters
    coords = {"school": [f"school {number}" for number in range(8)]}
    assert space.coords == (coords if name == "eight_schools" else {})
    assert space.label(2) == {"eight_schools": "t[school 0]", "kidiq": "beta[2]"}[name]

"""Shocks as a linear predictor in the coordinates of the path."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.stats import norm

import vhmc
from tests.structure.centred_models import (
    CONSTRAINTS,
    START,
    STEPS,
    Y,
    by_cumsum,
    by_list,
    by_scan,
    prior,
    walk,
)
from vhmc.evaluation.centred_evaluator import CentredEvaluator
from vhmc.sampler.model_graph import centring, fitting_graph, model_graph
from vhmc.structure.shocks import Shocks
from vhmc.transport.conditional_fit import Scores
from vhmc.transport.latent_gaussian_fit import LatentGaussianFit

SCALE = (0,)


@pytest.mark.parametrize("loop", [by_cumsum, by_scan, by_list])
def test_the_shocks_separate_the_path_from_its_prior(loop):
    structure = model_graph(walk(loop))
    found = structure.predictor
    assert found.hubs == SCALE, "the level is one more effect"
    assert len(found.links) == STEPS, "shocks are independent"
    rest = np.setdiff1d(np.arange(STEPS + 2), SCALE)
    x = np.random.default_rng(0).standard_normal(STEPS + 2)
    theta = np.asarray(centring(structure, walk(loop).parameters).forward(x[None]))[0]
    np.testing.assert_allclose(found.quantity(jnp.array(x)), theta[2:], atol=1e-12)
    base = jnp.array(x).at[rest].set(0.0)

    def given(r):
        return found.quantity(base.at[rest].set(r))

    offset, slopes = found.quantity.affine_parts(base, rest)
    np.testing.assert_allclose(offset, given(jnp.zeros(len(rest))), atol=1e-12)
    expected = jax.jacfwd(given)(jnp.zeros(len(rest)))
    np.testing.assert_allclose(slopes, expected, atol=1e-12)


def test_a_path_with_normal_errors_is_fitted_exactly():
    """Both energies are quadratic, and neither depends on the scale."""
    target = walk(by_cumsum)
    structure = model_graph(target)
    graph = fitting_graph(structure, target.parameters)
    evaluator = CentredEvaluator(centring(structure, target.parameters), target, 60)
    rng = np.random.default_rng(1)
    evaluator.evaluate(rng.uniform(-2, 2, (60, target.dim)), "search")
    log = evaluator.log
    scores = Scores(log.theta, log.grad, np.ones(60))
    fit = LatentGaussianFit(rng, scores, graph.predictor, graph.links)
    choice = fit.choose()
    assert choice.terms == ((),), "no function of the scale is needed"
    assert fit.held_out_error(choice) < 1e-12


def test_shocks_that_meet_the_data_beside_the_path_are_left_alone():
    def log_density(p):
        path = p["level"] + jnp.cumsum(p["scale"] * p["z"])
        likelihood = jnp.sum(norm.logpdf(Y, path * jnp.exp(p["z"]), 0.5))
        return likelihood + jnp.sum(norm.logpdf(p["z"])) + prior(p)

    start = START | {"z": np.zeros(STEPS)}
    target = vhmc.from_jax(log_density, start, CONSTRAINTS)
    structure = model_graph(target)
    found = structure.predictor
    assert found is None or not isinstance(found.quantity, Shocks)

"""The quantity that separates parameters from data: found where there is one."""

import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.special import logsumexp

import vhmc
from vhmc.sampler.model_graph import model_graph
from vhmc.structure.separated import separated

PEOPLE, ITEMS = 7, 6
DIM = PEOPLE + 2 * ITEMS + 1
SCALE = DIM - 1
ANSWERS = np.random.default_rng(0).integers(0, 2, (ITEMS, PEOPLE))


def predictor(theta):
    ability, slope, place = jnp.split(theta[:SCALE], [PEOPLE, PEOPLE + ITEMS])
    return jnp.exp(slope)[:, None] * (ability - place[:, None])


def prior(theta):
    ability, others = jnp.split(theta[:SCALE], [PEOPLE])
    effects = 0.5 * jnp.sum(ability**2) * jnp.exp(-2 * theta[SCALE])
    return effects + PEOPLE * theta[SCALE] + 0.5 * jnp.sum(others**2)


def answers(theta):
    eta = predictor(theta)
    return jnp.sum(jnp.logaddexp(0.0, eta) - ANSWERS * eta) + prior(theta)


def answers_before_the_prior(theta):
    """The same, where quantities of the prior are the last that are computed."""
    eta = predictor(theta)
    likelihood = jnp.sum(jnp.logaddexp(0.0, eta) - ANSWERS * eta)
    standardised = theta[:PEOPLE] / jnp.exp(theta[SCALE])
    return likelihood + 0.5 * jnp.sum(standardised**2) + PEOPLE * theta[SCALE]


@pytest.mark.parametrize("energy", [answers, answers_before_the_prior])
def test_only_the_prior_links_parameters_given_the_quantity(energy):
    found = separated(energy, DIM)
    assert found is not None
    assert found.size == PEOPLE * ITEMS
    assert {tuple(pair) for pair in found.pairs.tolist()} == {
        (i, SCALE) for i in range(PEOPLE)
    }
    theta = np.random.default_rng(1).standard_normal(DIM)
    np.testing.assert_allclose(found.quantity(theta), predictor(theta).ravel())


def test_none_if_entries_of_every_quantity_interact():
    def choices(theta):
        return jnp.sum(logsumexp(predictor(theta), axis=1)) + prior(theta)

    found = separated(choices, DIM)
    # Given a normalising constant a row its parameters are not linked any more.
    assert found is None or found.size == ITEMS


def test_none_if_the_errors_have_an_unknown_degree():
    def heavy(theta):
        eta = predictor(theta) - ANSWERS
        degree = jnp.exp(theta[SCALE])
        return jnp.sum((degree + 1) * jnp.log1p(eta**2 / degree)) + prior(theta)

    assert separated(heavy, DIM) is None


def test_terms_of_the_energy_are_no_quantity():
    """They separate every model from its data, and nothing would be left to learn."""

    def terms_last(theta):
        eta = predictor(theta)
        terms = jnp.logaddexp(0.0, eta) * jnp.exp(theta[SCALE]) - ANSWERS * eta
        return jnp.sum(terms) + prior(theta)

    found = separated(terms_last, DIM)
    assert found is None or found.size != PEOPLE * ITEMS


@pytest.mark.parametrize("is_crossed", [True, False])
def test_it_is_used_where_effects_are_crossed(is_crossed):
    """Nested ones are mapped along the graph."""
    row, column = (part.ravel() for part in np.indices((15, 15)))
    column = column if is_crossed else np.zeros_like(row)
    y = np.arange(225) % 2

    def log_density(p):
        eta = p["a"][row] + p["b"][column]
        likelihood = jnp.sum(y * eta - jnp.logaddexp(0.0, eta))
        prior = -0.5 * jnp.sum((p["a"] / p["scale"]) ** 2) - 15 * jnp.log(p["scale"])
        return likelihood + prior - 0.5 * jnp.sum(p["b"] ** 2) - 0.5 * p["scale"] ** 2

    init = {"a": np.zeros(15), "b": np.zeros(15), "scale": 1.0}
    target = vhmc.from_jax(log_density, init, {"scale": vhmc.positive})
    found = model_graph(target, True, centre=True)
    assert (found.separated is not None) == is_crossed

"""Separable energies: exact gradients of a model that is one, and refusal of others."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import vhmc
from vhmc.evaluation.evaluator import Evaluator
from vhmc.numerics.constraints import positive
from vhmc.sampler.model_graph import fitting_graph, model_graph
from vhmc.surrogate.residual import ZeroResidual
from vhmc.surrogate.residual_fit import hold_out
from vhmc.surrogate.separable_fit import Steps, groups_of
from vhmc.surrogate.separated_fit import SeparatedFit, separable_model
from vhmc.surrogate.training_set import training_set
from vhmc.transport.affine import Affine
from vhmc.transport.transport_map import TransportMap

PEOPLE, ITEMS = 40, 30
RNG = np.random.default_rng(3)
ANSWERS = RNG.integers(0, 2, (ITEMS, PEOPLE))
TRIALS = RNG.integers(1, 4, (ITEMS, PEOPLE))
INIT = {
    "ability": np.zeros(PEOPLE),
    "slope": np.zeros(ITEMS),
    "place": np.zeros(ITEMS),
    "location": 0.0,
    "width": 1.0,
    "spread": 1.0,
}


def log_density(p, trials=1):
    eta = jnp.exp(p["slope"])[:, None] * (p["ability"] - p["place"][:, None])
    likelihood = jnp.sum(ANSWERS * eta - trials * jnp.logaddexp(0.0, eta))
    people = -0.5 * jnp.sum((p["ability"] / p["width"]) ** 2)
    people -= PEOPLE * jnp.log(p["width"])
    places = -0.5 * jnp.sum(((p["place"] - p["location"]) / p["spread"]) ** 2)
    places -= ITEMS * jnp.log(p["spread"])
    prior = -p["width"] - jnp.log1p(p["spread"] ** 2) - 0.5 * p["location"] ** 2
    return likelihood + people + places + prior - jnp.sum(p["slope"] ** 2)


def setting(density=log_density):
    """A target, its graph, and the training set of points around the origin."""
    positives = {"width": positive, "spread": positive}
    target = vhmc.from_jax(density, INIT, positives)
    graph = fitting_graph(model_graph(target), target.parameters)
    transport = TransportMap((Affine(np.zeros(target.dim), 0.4 * np.eye(target.dim)),))
    evaluator = Evaluator(target, 1000)
    thetas = 0.4 * np.random.default_rng(1).standard_normal((160, target.dim))
    evaluator.evaluate(thetas, "training")
    return target, graph, training_set(evaluator.log, transport)


def fitted(graph, training):
    model = separable_model(graph, training.x.shape[1])
    assert model is not None
    rng, fit = np.random.default_rng(0), SeparatedFit(model)
    assert fit.serves(training)
    options = {"redraw": True, "choose_anew": True, "least_ridge": 0.0}
    return fit.fit(rng, training, hold_out(rng, training), **options)


def test_gradients_of_an_item_response_model():
    target, graph, training = setting()
    residual, error = fitted(graph, training)
    assert error < 1e-3
    fresh = 0.4 * np.random.default_rng(2).standard_normal((50, target.dim))
    energy, grad = residual.energy.rows(fresh)
    answer = target.evaluate(fresh)
    left = np.std(grad - answer.grad, axis=0) / np.std(answer.grad, axis=0)
    assert left.max() < 0.02
    assert np.std(energy - answer.energy) < 0.02 * np.std(answer.energy)


def test_host_and_traced_residual_agree():
    _, graph, training = setting()
    residual = fitted(graph, training).residual
    x = training.x[:5]
    values, grads = jax.vmap(jax.value_and_grad(residual.on_device()))(x)
    np.testing.assert_allclose(residual.energies(x), values, rtol=1e-8, atol=1e-6)
    np.testing.assert_allclose(residual.grads(x), grads, rtol=1e-8, atol=1e-6)


def test_data_of_different_shapes_are_noticed():
    _, graph, training = setting(lambda p: log_density(p, TRIALS))
    assert fitted(graph, training).error > 0.05


def test_a_prior_that_is_no_effect_with_a_scale_is_refused():
    def walking(p):
        steps = jnp.sum(jnp.diff(p["ability"]) ** 2)
        return log_density(p) - steps

    target, graph, _ = setting(walking)
    assert graph.separated is None or (
        groups_of(graph.separated, target.dim, graph.links) is None
    )


def test_nothing_without_points_to_hold_out():
    _, graph, training = setting()
    fit = SeparatedFit(separable_model(graph, training.x.shape[1]))
    nothing = np.zeros(len(training.x), dtype=bool)
    options = {"redraw": True, "choose_anew": True, "least_ridge": 0.0}
    found = fit.fit(np.random.default_rng(0), training, nothing, **options)
    assert isinstance(found.residual, ZeroResidual)


@pytest.mark.parametrize("place", [-2.9, -1.3, 0.0, 2.2])
def test_a_table_is_the_function_of_its_steps(place):
    rng = np.random.default_rng(4)
    steps = Steps(np.linspace(-3.0, 3.0, 9), np.full(9, 0.75))
    weights = np.append(0.3, rng.uniform(size=9))
    table = jax.device_put(steps.table(weights, slope=0.5))
    expected = steps.slopes(np.array([place])) @ weights + 0.5
    np.testing.assert_allclose(jax.grad(table)(place), expected[0], atol=1e-4)


@pytest.mark.parametrize("place", [-30.0, 40.0])
def test_a_table_goes_on_as_a_parabola(place):
    steps = Steps(np.linspace(-3.0, 3.0, 9), np.full(9, 0.75))
    table = jax.device_put(steps.table(np.append(0.3, np.zeros(9)), slope=0.5))
    np.testing.assert_allclose(jax.grad(table)(place), 0.3 * place + 0.5, rtol=1e-6)


def test_a_line_and_steps_that_cancel_leave_no_parabola():
    """Within the range of the data they may; beyond it the line alone would remain."""
    steps = Steps(np.linspace(-3.0, 3.0, 25), np.full(25, 0.25))
    x = np.linspace(-3.0, 3.0, 200)
    line, rest = np.split(steps.slopes(x), [1], axis=1)
    matched = np.linalg.lstsq(rest - rest[100], -line[:, 0], rcond=1e-8)[0]
    table = jax.device_put(steps.table(np.append(1.0, matched)))
    assert abs(jax.grad(table)(60.0) - jax.grad(table)(0.0)) < 3.0

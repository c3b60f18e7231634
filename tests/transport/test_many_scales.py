"""Models that are Gaussian given more scales than a grid can hold."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse

import vhmc
from tests.structure.test_predictor import SIZE, sparse_regression
from vhmc.evaluation.evaluator import Evaluator
from vhmc.sampler.closed_form import closed_form
from vhmc.sampler.model_graph import fitting_graph, model_graph
from vhmc.sampler.warm_up import spread_of_log_weights
from vhmc.structure.traced import traced_graph
from vhmc.transport.conditional_fit import ConditionalFit, Scores
from vhmc.transport.explicit_energy import explicit_energy
from vhmc.transport.hub_copula import fit_hub_copula
from vhmc.transport.hub_dictionary import Choice
from vhmc.transport.hub_fit import marginal_data
from vhmc.transport.hub_functions import Atom, Link
from vhmc.transport.marginal import AbstractMarginal
from vhmc.transport.structured_fit import with_hub_map

FACTORS, LEVELS, ROWS = 5, 4, 60
SCALES = tuple(range(FACTORS + 1))
DIM = FACTORS + 2 + FACTORS * LEVELS
LINKS = dict.fromkeys(SCALES, Link("exp"))


@functools.cache
def crossed():
    """Rows in the levels of five crossed factors, a scale each and one of the errors.

    The first scale is a precision, all others are standard deviations.
    """
    rng = np.random.default_rng(0)
    level = rng.integers(0, LEVELS, (FACTORS, ROWS))
    y = 1 + rng.standard_normal(ROWS)

    def energy(theta):
        c, mean = theta[: FACTORS + 1], theta[FACTORS + 1]
        effects = theta[FACTORS + 2 :].reshape(FACTORS, LEVELS)
        fit = mean + sum(effects[k][level[k]] for k in range(FACTORS))
        error = jnp.sum((y - fit) ** 2) * jnp.exp(-2 * c[-1]) / 2 + ROWS * c[-1]
        power = jnp.array([1.0] + [-2.0] * (FACTORS - 1))
        square = jnp.sum(effects**2, axis=1) * jnp.exp(power * c[:-1]) / 2
        volume = -LEVELS / 2 * jnp.sum(power * c[:-1])
        prior = jnp.sum(jnp.exp(2 * c) / 2 - c) + mean**2 / 50
        return error + jnp.sum(square) + volume + prior

    return energy


@functools.cache
def fitted():
    rng = np.random.default_rng(1)
    energy = crossed()
    graph = scipy.sparse.csr_matrix(traced_graph(energy, DIM))
    theta = rng.uniform(-2, 2, (80, DIM))
    value, grad = jax.vmap(jax.value_and_grad(energy))(jnp.asarray(theta))
    scores = Scores(theta, np.asarray(grad), np.ones(80))
    fit = ConditionalFit(rng, scores, graph, LINKS, SCALES, SCALES)
    return fit, scores, np.asarray(value)


def test_functions_are_those_of_scales_that_both_variables_have():
    own, other, errors = (Atom(i, "exp", -2.0, 0.0, 1.0) for i in range(3))
    terms = ((), (own,), (other,), (errors,))
    choice = Choice((0, 1, 2), terms, terms, 0.0, is_local=True)
    # An effect of the first scale, with a column of the second and its own.
    shared = np.array([[[False, False, True], [True, False, True]]])
    slopes, linear = choice.allowed(shared)
    expected = [[0, 1], [0, 1], [0, 0], [1, 1]]
    np.testing.assert_array_equal(slopes[0], np.array(expected, bool))
    np.testing.assert_array_equal(linear[0], [True, True, False, True])


def test_six_scales_are_recognised_with_their_powers():
    fit, _, _ = fitted()
    choice = fit.exact()
    assert choice is not None and choice.hubs == SCALES
    powers = [term[0].power for term in choice.terms[1:]]
    assert powers == [1.0] + [-2.0] * FACTORS
    # As many edges as neighbours, then a few functions of its own.
    assert fit.num_unknowns(choice) < FACTORS * LEVELS + 8


def test_full_matrices_give_the_energy_of_the_elimination():
    fit, _, _ = fitted()
    layer = fit.joint(fit.exact())
    assert layer.is_dense
    c = np.random.default_rng(2).uniform(-1, 1, (7, len(SCALES)))
    np.testing.assert_allclose(layer._dense_energy(c), layer._sparse_energy(c))
    step = c + 1e-30j * np.eye(len(SCALES))[2]
    np.testing.assert_allclose(
        np.imag(layer._dense_energy(step)), np.imag(layer._sparse_energy(step))
    )


def test_the_map_of_six_scales_is_the_posterior():
    fit, scores, value = fitted()
    rng = np.random.default_rng(3)
    layer = fit.joint(fit.exact())
    level, slopes = marginal_data(layer, scores, value)
    assert explicit_energy(rng, layer, scores, level, slopes) is not None
    transport, _ = with_hub_map(rng, layer, scores, value)
    draws = transport.forward(rng.standard_normal((200, DIM)))
    x, log_det = transport.inverse_and_log_det(draws)
    energies = np.asarray(jax.vmap(crossed())(jnp.asarray(draws)))
    # What is left is how the scales depend on each other beyond their ranks.
    assert np.std(0.5 * np.sum(x**2, axis=1) + log_det - energies) < 0.5


class Correlated(AbstractMarginal):
    """Five hubs: a normal with correlations, the first one of a skewed function."""

    def __init__(self):
        self.low, self.high = np.full(5, -8.0), np.full(5, 8.0)
        self.scale = np.zeros(5)
        covariance = 0.5 * np.eye(5) + 0.5
        self._precision = np.linalg.inv(covariance)

    def __call__(self, c):
        y = c.copy()
        y[:, 0] = np.sinh(c[:, 0])
        square = 0.5 * np.sum(y @ self._precision * y, axis=1)
        return square - np.log(np.cosh(c[:, 0]))


def test_marginals_and_ranks_of_many_hubs():
    rng = np.random.default_rng(4)
    found = fit_hub_copula(rng, Correlated(), np.arange(5), 5)
    draws = found.forward(rng.standard_normal((4000, 5)))
    normal = np.concatenate([np.sinh(draws[:, :1]), draws[:, 1:]], axis=1)
    # The correlations are those of 200 particles: a standard error of 0.05 if these
    # were independent, and about 0.08 as they are. The seed is fixed.
    np.testing.assert_allclose(normal.std(axis=0), 1, atol=0.15)
    np.testing.assert_allclose(np.corrcoef(normal.T), 0.5 * np.eye(5) + 0.5, atol=0.25)


def test_a_model_of_scales_alone_is_not_evaluated_for_a_closed_form():
    target = vhmc.from_jax(
        lambda p: -jnp.sum(jnp.log(p["a"]) ** 2) - p["a"] @ p["a"] * p["b"] - p["b"],
        {"a": np.ones(5), "b": 1.0},
        {"a": vhmc.positive, "b": vhmc.positive},
    )
    graph = fitting_graph(model_graph(target), target.parameters)
    graph = graph._replace(hubs=tuple(range(6)))
    evaluator, rng = Evaluator(target, 100), np.random.default_rng(0)
    assert closed_form(rng, evaluator, target.start, graph, 100, 16) is None
    assert evaluator.spent == 0


def test_the_map_of_a_sparse_regression_through_its_predictor():
    """Ten scales: found from points around the start, exact but for ranks of hubs."""
    dim = 2 * SIZE + 2
    target = vhmc.from_jax(
        lambda p: -sparse_regression(p["theta"]), {"theta": np.zeros(dim)}
    )
    evaluator = Evaluator(target, 200)
    graph = fitting_graph(model_graph(target), target.parameters)
    transport = closed_form(
        np.random.default_rng(0), evaluator, target.start, graph, 200, 16
    )
    assert transport is not None and len(transport.hubs) == SIZE + 2
    assert evaluator.left >= 200 - 64 - 4 * 16
    draws = transport.forward(np.random.default_rng(1).standard_normal((400, dim)))
    spread = spread_of_log_weights(transport, draws, target.evaluate(draws).energy)
    assert spread < 1.5

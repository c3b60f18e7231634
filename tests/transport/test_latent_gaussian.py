"""The layer of latent Gaussian models: its identities, and fits that are exact."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.structure.test_predictor import SIZE, counts, noisy
from vhmc.structure.predictor import predictor
from vhmc.transport.conditional_fit import Scores
from vhmc.transport.graph import Graph
from vhmc.transport.hub_functions import Atom
from vhmc.transport.latent_gaussian import Factors, LatentGaussian
from vhmc.transport.latent_gaussian_fit import LatentGaussianFit
from vhmc.transport.map_fit import EvaluatedPoints
from vhmc.transport.structured_fit import fit_structured

DIM = SIZE + 3
HUBS = np.array([0, 1])
REST = np.arange(2, DIM)


def random_layer(rng):
    def positive(size):
        rows = rng.standard_normal((2, size, size)) / np.sqrt(size)
        return rows @ rows.swapaxes(1, 2) + 0.1 * np.eye(size)

    size = len(REST)
    factors = Factors(
        positive(size),
        rng.standard_normal((2, size)),
        positive(SIZE),
        rng.standard_normal((2, SIZE)),
    )
    found = predictor(counts, np.zeros(DIM))
    terms = ((), (Atom(1, "exp", -1.0, 0.1, 1.0),))
    return LatentGaussian(HUBS, REST, found.quantity, terms, factors, np.zeros(2))


@pytest.fixture(scope="module")
def layer():
    return random_layer(np.random.default_rng(0))


@pytest.fixture(scope="module")
def x():
    return 0.7 * np.random.default_rng(1).standard_normal((5, DIM))


def test_inverse_undoes_forward(layer, x):
    theta = layer.forward(x)
    np.testing.assert_allclose(layer.inverse(theta), x, atol=1e-8)
    np.testing.assert_allclose(layer.inverse(jnp.asarray(theta)), x, atol=1e-8)
    np.testing.assert_array_equal(theta[:, HUBS], x[:, HUBS])


def test_derivatives_are_those_of_the_layer(layer, x):
    jacobians = np.asarray(jax.vmap(jax.jacfwd(layer.outward))(x))
    grad = np.random.default_rng(2).standard_normal(x.shape)
    pulled = np.einsum("nij,ni->nj", jacobians, grad)
    np.testing.assert_allclose(layer.pull_back(x, grad), pulled, atol=1e-9)
    np.testing.assert_allclose(layer.push_forward(x, pulled), grad, atol=1e-7)
    log_det = np.linalg.slogdet(jacobians)[1]
    np.testing.assert_allclose(layer.log_det(x), log_det, atol=1e-9)
    np.testing.assert_allclose(layer.log_det(jnp.asarray(x)), log_det, atol=1e-9)
    step = np.zeros(DIM)
    step[0] = 1e-5
    slope = (layer.log_det(x + step) - layer.log_det(x - step)) / 2e-5
    np.testing.assert_allclose(layer.log_det_grad(x)[:, 0], slope, atol=1e-6)


def test_rest_energy_is_the_integral_over_the_rest(layer, x):
    """Energy at the conditional mean and half the log determinant of its Hessian."""

    def energy(rest, c):
        theta = jnp.zeros(DIM).at[HUBS].set(c).at[REST].set(rest)
        eta = layer.quantity(theta)
        phi = jnp.array([1.0, jnp.exp(-(c[1] - 0.1))])
        own, own_linear, outer, outer_linear = (
            jnp.tensordot(phi, part, 1) for part in layer.factors
        )
        quadratic = rest @ own @ rest + eta @ outer @ eta
        return 0.5 * quadratic - own_linear @ rest - outer_linear @ eta

    def integrated(c):
        hessian = jax.hessian(energy)(jnp.zeros(len(REST)), c)
        mean = -jnp.linalg.solve(hessian, jax.grad(energy)(jnp.zeros(len(REST)), c))
        return energy(mean, c) + 0.5 * jnp.linalg.slogdet(hessian)[1]

    c = x[:, HUBS]
    values, slopes = jax.vmap(jax.value_and_grad(integrated))(c)
    np.testing.assert_allclose(layer.rest_energy(c), values, atol=1e-8)
    np.testing.assert_allclose(layer.rest_slopes(c), slopes, atol=1e-7)


def evaluated(energy, theta):
    values, grads = jax.vmap(jax.value_and_grad(energy))(theta)
    return EvaluatedPoints(theta, np.asarray(values), np.asarray(grads))


def test_gaussian_errors_of_unknown_scale_are_exact_from_points_anywhere():
    dim = SIZE + 4
    found = predictor(noisy, np.zeros(dim))
    rng = np.random.default_rng(3)
    points = evaluated(noisy, 0.5 * rng.standard_normal((60, dim)))
    scores = Scores(points.theta, points.grad, np.ones(60))
    fit = LatentGaussianFit(rng, scores, found, {})
    layer = fit.layer(fit.choose()._replace(ridge=1e-12))
    fresh = evaluated(noisy, rng.standard_normal((20, dim)))
    x = layer.inverse(fresh.theta)
    pulled = layer.pull_back(x, fresh.grad)
    np.testing.assert_allclose(pulled[:, layer.rest], x[:, layer.rest], atol=1e-3)


def test_counts_are_close_to_gaussian_given_the_hubs():
    """Fitted to the posterior's draws by importance, from a few dozen points."""
    rng = np.random.default_rng(4)
    graph = Graph(np.ones((DIM, DIM)), predictor=predictor(counts, np.zeros(DIM)))
    points = evaluated(counts, 0.5 * rng.standard_normal((60, DIM)))
    for _ in range(3):
        weights = np.exp(-np.maximum(points.energy - points.energy.min() - 15, 0) / 5)
        transport = fit_structured(rng, points, graph, weights).transport
        new = evaluated(counts, transport.forward(rng.standard_normal((30, DIM))))
        points = EvaluatedPoints(
            *(np.concatenate(rows) for rows in zip(points, new, strict=True))
        )
    assert transport.hubs == [0, 1]
    x, grad = transport.pull_back(new.theta, new.grad)
    assert np.median(np.mean((grad - x) ** 2, axis=1)) < 0.2

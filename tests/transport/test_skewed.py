"""Skewed layers: inverses, gradients, determinants, and their fit."""

import jax
import jax.numpy as jnp
import numpy as np

from vhmc.transport.affine import Affine
from vhmc.transport.affine_fit import fit_affine
from vhmc.transport.skewed import Skewed
from vhmc.transport.skewed_fit import _Objective, refitted, skewed_map
from vhmc.transport.transport_map import TransportMap

DIM = 3
FACTOR = np.linalg.cholesky(np.eye(DIM) + 0.4)
TRUTH = TransportMap(
    (
        Skewed(
            np.array([1.0, -2.0, 0.5]),
            np.array([1.0, 0.3, 2.0]),
            np.array([0.8, -0.5, 0.0]),
            np.array([0.1, 0.0, 0.2]),
        ),
        Affine(np.array([0.2, -0.1, 0.0]), FACTOR),
    )
)


def evaluated(number, rng):
    """Draws of the map above, and the gradients of the energy that it has."""
    theta = TRUTH.forward(rng.standard_normal((number, DIM)))

    def energy(theta):
        x, log_det = TRUTH.inverse_and_log_det(theta[None])
        return 0.5 * jnp.sum(x**2) + log_det[0]

    return theta, np.asarray(jax.vmap(jax.grad(energy))(jnp.asarray(theta)))


def test_the_layer_inverts_and_its_scores_are_those_of_autodiff():
    rng = np.random.default_rng(0)
    x = 2 * rng.standard_normal((40, DIM))
    np.testing.assert_allclose(TRUTH.inverse(TRUTH.forward(x)), x, rtol=1e-9, atol=1e-9)
    theta, grad = evaluated(10, rng)
    x, score = TRUTH.pull_back(theta, grad)
    np.testing.assert_allclose(score, x, rtol=1e-7, atol=1e-7)
    layer = TRUTH.layers[0]
    pushed = layer.push_forward(x, layer.pull_back(x, grad))
    np.testing.assert_allclose(pushed, grad, rtol=1e-9)
    far = layer.forward(np.array([[1e30, -1e30, 0.0]]))
    assert np.isfinite(far).all()


def test_the_slope_of_the_objective_is_that_of_differences():
    rng = np.random.default_rng(1)
    theta, grad = evaluated(20, rng)
    objective = _Objective(*TRUTH.layers, theta + 0.1, grad, np.ones(20))
    place, direction = 0.2 * rng.standard_normal((2, 2 * DIM))
    ahead, behind = (objective(place + h * direction)[0] for h in (1e-6, -1e-6))
    slope = objective(place)[1] @ direction
    np.testing.assert_allclose((ahead - behind) / 2e-6, slope, rtol=1e-5)


def test_the_fit_finds_skewed_marginals():
    theta, grad = evaluated(300, np.random.default_rng(2))
    layer = Affine(theta.mean(axis=0), np.diag(theta.std(axis=0)))
    gaussian, found = TransportMap((layer,)), skewed_map(layer)
    for _ in range(6):
        x, score = gaussian.pull_back(theta, grad)
        gaussian = gaussian.then(fit_affine(x, score, np.ones(len(x))))
        found = refitted(found, theta, grad)
    errors = []
    for transport in (gaussian, found):
        x, score = transport.pull_back(theta, grad)
        errors.append(np.mean((score - x) ** 2))
    assert errors[1] < 0.25 * errors[0]


def test_few_points_fit_the_affine_layer_alone():
    theta, grad = evaluated(2, np.random.default_rng(3))
    first = skewed_map(Affine(np.zeros(DIM), np.eye(DIM)))
    found = refitted(first, theta, grad)
    np.testing.assert_array_equal(found.layers[0].skewness, 0.0)
    assert not np.array_equal(found.layers[1].mean, first.layers[1].mean)


def test_the_fit_weighs_points():
    theta, grad = evaluated(60, np.random.default_rng(4))
    first = skewed_map(Affine(np.zeros(DIM), np.eye(DIM)))
    twice = refitted(first, np.tile(theta, (2, 1)), np.tile(grad, (2, 1)))
    weighted = refitted(first, theta, grad, np.full(60, 2.0))
    alone = refitted(first, theta, grad)
    np.testing.assert_array_equal(weighted.forward(theta), alone.forward(theta))
    assert not np.array_equal(twice.forward(theta), alone.forward(theta))

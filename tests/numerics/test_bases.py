"""Node Jacobians, normal equations, and the way to Gaussian processes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vhmc.numerics.bases import additive, fourier, radial, radial_at, softplus
from vhmc.numerics.gaussian import gaussian, standard_normal
from vhmc.paper import score_matching
from vhmc.paper.potentials import Surrogate

DIM, NODES = 3, 7
LAWS = {
    "softplus": additive,
    "tanh": lambda *a: additive(*a, activation=jnp.tanh),
    "sin": lambda *a: additive(*a, activation=jnp.sin),
    "erf": lambda *a: additive(*a, activation=jax.scipy.special.erf),
    "fourier": fourier,
    "radial": radial,
}
GUIDE = gaussian(
    jnp.array([1.0, -2.0, 0.5]),
    jnp.array([[2.0, 0.3, 0.0], [0.3, 1.0, 0.1], [0.0, 0.1, 4.0]]),
)


@pytest.mark.parametrize("law", LAWS)
@given(seed=st.integers(0, 2**16), size=st.floats(1e-2, 1e2))
@settings(max_examples=20, deadline=None)
def test_jacobian_equals_autodiff(law, seed, size):
    key_nodes, key_theta = jax.random.split(jax.random.key(seed))
    basis = LAWS[law](key_nodes, NODES, GUIDE)
    theta = GUIDE.mean + size * jax.random.normal(key_theta, (DIM,))
    expected = jax.jacobian(basis.features)(theta).T
    assert basis.jacobian(theta).shape == (DIM, NODES)
    np.testing.assert_allclose(basis.jacobian(theta), expected, rtol=1e-9, atol=1e-14)


def test_softplus_and_its_slope_are_stable():
    x = np.linspace(-700, 700, 1401)
    values, slopes = jax.vmap(jax.value_and_grad(softplus))(jnp.asarray(x))
    np.testing.assert_allclose(values, np.logaddexp(0, x), rtol=1e-12)
    np.testing.assert_allclose(slopes, 1 / (1 + np.exp(-x)), rtol=1e-12)


def test_nodes_follow_the_stated_laws():
    """Mean and variance of 40,000 draws, within five standard errors."""
    num = 20_000
    basis = additive(jax.random.key(0), num, GUIDE, scale=2.0)
    whitened = np.linalg.solve(np.asarray(GUIDE.whiten).T, basis.directions.T).T
    offsets = basis.offsets + basis.directions @ GUIDE.mean
    for sample, sd in ((whitened.ravel(), 2 / np.sqrt(DIM)), (offsets, 1.0)):
        assert abs(sample.mean()) < 5 * sd / np.sqrt(sample.size)
        assert abs(sample.var() / sd**2 - 1) < 5 * np.sqrt(2 / sample.size)


def test_unit_nodes_are_centred_at_the_origin():
    basis = additive(jax.random.key(0), 4, standard_normal(DIM))
    assert basis.directions.shape == (4, DIM)


@pytest.mark.parametrize("law", [additive, fourier, radial])
def test_no_nodes_is_an_error(law):
    with pytest.raises(ValueError, match="number of nodes must be at least 1, got 0"):
        law(jax.random.key(0), 0, GUIDE)


def kernel(a, b, length):
    return np.exp(-0.5 * ((a[:, None] - b[None]) ** 2).sum(-1) / length**2)


def test_radial_nodes_at_all_points_are_gp_regression():
    """Values y at points X: the fit's mean is K_* (K + noise I)^-1 y."""
    rng = np.random.default_rng(0)
    points, new = rng.normal(size=(12, 2)), rng.normal(size=(5, 2))
    values, noise, length = rng.normal(size=12), 0.1, 0.9
    gram = kernel(points, points, length)
    expected = kernel(new, points, length) @ np.linalg.solve(
        gram + noise * np.eye(12), values
    )

    basis = radial_at(jnp.asarray(points), length)
    fit = score_matching.init(12, ridge=noise, penalty=basis.gram())
    for point, value in zip(points, values, strict=True):
        row = basis.features(jnp.asarray(point))[None]
        fit = score_matching.update(fit, row, jnp.array([value]))
    mean = jax.vmap(Surrogate(basis, fit.weights))(jnp.asarray(new))
    np.testing.assert_allclose(mean, expected, rtol=1e-7)


def test_radial_nodes_at_inducing_points_are_sparse_gp_regression():
    """Gradients g at points X under the prior induced by U (subset of regressors).

    The direct solve has covariance k_U(x) K_UU^-1 k_U(x') and its derivatives:
    mean = k_U K_UU^-1 A' (A K_UU^-1 A' + noise I)^-1 g.
    """
    rng = np.random.default_rng(1)
    inducing, points, new = (rng.normal(size=(n, 2)) for n in (6, 15, 5))
    grads, noise, length = rng.normal(size=(15, 2)), 0.3, 1.1
    differences = points[:, None] - inducing[None]
    jac = -differences / length**2 * kernel(points, inducing, length)[..., None]
    jac = jac.transpose(0, 2, 1).reshape(-1, 6)
    prior = np.linalg.inv(kernel(inducing, inducing, length))
    observed = jac @ prior @ jac.T + noise * np.eye(30)
    expected = (
        kernel(new, inducing, length)
        @ prior
        @ jac.T
        @ np.linalg.solve(observed, grads.ravel())
    )

    basis = radial_at(jnp.asarray(inducing), length)
    fit = score_matching.init(6, ridge=noise, penalty=basis.gram())
    jacs = jax.vmap(basis.jacobian)(jnp.asarray(points))
    fit = score_matching.update(fit, jacs.reshape(-1, 6), jnp.asarray(grads).ravel())
    mean = jax.vmap(Surrogate(basis, fit.weights))(jnp.asarray(new))
    np.testing.assert_allclose(mean, expected, rtol=1e-6)

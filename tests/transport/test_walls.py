"""The layer behind walls is a bijection, and flattens what it was made for."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vhmc.transport.walls import Walls, half_normal, whole_normal

INF = np.inf


def one_wall(scale=1.0):
    return Walls(np.eye(1), np.zeros(1), np.full(1, INF), np.full(1, scale))


@pytest.fixture(scope="module")
def layer():
    """A wall below, none, an oblique one with another opposite, and one above."""
    matrix = np.eye(4)
    matrix[2] = 0.5, -0.5, 0.5, 0.5
    low, high = np.array([0.0, -INF, 1.0, -INF]), np.array([INF, INF, 3.0, 2.0])
    return Walls(matrix, low, high, np.array([1.0, 1.0, 1.0, 0.3]))


def points(number=7):
    return 2.0 * np.random.default_rng(0).standard_normal((number, 4))


def test_forward_and_inverse_undo_each_other_on_host_and_device(layer):
    x = points()
    theta = layer.forward(x)
    np.testing.assert_allclose(layer.inverse(theta), x, atol=1e-10)
    np.testing.assert_allclose(layer.inverse(jnp.asarray(theta)), x, atol=1e-8)


def test_all_outer_points_are_within_the_walls(layer):
    y = layer.forward(10 * points(200)) @ layer.matrix.T
    assert (y >= layer.low - 1e-12).all()
    assert (y <= layer.high + 1e-12).all()


def test_a_point_beyond_a_wall_is_not_a_number(layer):
    theta = layer.forward(points(1))
    theta[0, 0] = -0.1
    assert np.isnan(layer.inverse(theta)[0, 0])


def test_gradients_and_determinants_are_those_of_autodiff(layer):
    x = points()
    theta = layer.forward(x)
    inward = np.asarray(
        jax.vmap(jax.jacfwd(lambda row: layer.inverse(row[None])[0]))(
            jnp.asarray(theta)
        )
    )
    log_det = -np.linalg.slogdet(inward)[1]
    np.testing.assert_allclose(layer.log_det(x), log_det, atol=1e-9)
    np.testing.assert_allclose(layer.inverse_and_log_det(theta)[1], log_det, atol=1e-9)
    grad = np.random.default_rng(1).standard_normal(x.shape)
    pulled = np.linalg.solve(inward.swapaxes(1, 2), grad[..., None])[..., 0]
    np.testing.assert_allclose(layer.pull_back(x, grad), pulled, atol=1e-9)
    np.testing.assert_allclose(layer.push_forward(x, pulled), grad, atol=1e-9)
    step = 1e-5 * np.eye(4)
    slopes = [(layer.log_det(x + e) - layer.log_det(x - e)) / 2e-5 for e in step]
    np.testing.assert_allclose(layer.log_det_grad(x), np.stack(slopes, 1), atol=1e-8)


def test_the_linear_part_is_the_slope_at_zero(layer):
    step = 1e-5 * np.eye(4)
    slopes = (layer.forward(step) - layer.forward(-step)) / 2e-5
    np.testing.assert_allclose(layer.linear_part, slopes.T, atol=1e-8)


def test_reverse_mode_is_finite_although_branches_are_not_taken(layer):
    def energy(theta):
        x, log_det = layer.inverse_and_log_det(theta[None])
        return jnp.sum(x**2) / 2 + log_det[0]

    grads = jax.vmap(jax.grad(energy))(jnp.asarray(layer.forward(points())))
    assert jnp.isfinite(grads).all()


@given(st.floats(-30, 100))
def test_the_half_normal_and_its_inverse(z):
    z = np.array([z])
    u = half_normal(z)
    assert u > 0
    np.testing.assert_allclose(whole_normal(u), z, atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize("scale", [0.01, 1.0, 100.0])
def test_half_a_normal_becomes_a_normal(scale):
    """Its energy, that is: half the square, up to a constant."""
    layer = one_wall(scale)
    x = np.linspace(-6, 6, 25)[:, None]
    energy = (layer.forward(x)[:, 0] / scale) ** 2 / 2 - layer.log_det(x)
    np.testing.assert_allclose(energy - energy[0], (x[:, 0] ** 2 - 36) / 2, atol=1e-9)


def test_an_interval_of_constant_density_becomes_a_normal():
    layer = Walls(np.eye(1), np.full(1, -2.0), np.full(1, 5.0), np.ones(1))
    x = np.linspace(-6, 6, 25)[:, None]
    energy = -layer.log_det(x)
    np.testing.assert_allclose(energy - energy[0], (x[:, 0] ** 2 - 36) / 2, atol=1e-9)


def test_far_from_a_wall_the_layer_is_the_identity():
    """The mass above five widths is shifted by less than 1e-5 of a width."""
    x = np.linspace(6, 40, 20)[:, None]
    layer = one_wall()
    np.testing.assert_allclose(np.diff(layer.forward(x) - x, axis=0), 0, atol=0.06)
    np.testing.assert_allclose(layer.log_det(x), 0, atol=0.02)

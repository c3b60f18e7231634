"""Warm-up: a Gaussian leaves the mode for the mass."""

import jax.numpy as jnp
import numpy as np

from tests.densities import Density
from vhmc.sampler.locate import Located, Modes, locate
from vhmc.sampler.warm_up import _is_wide, log_weights, warm_up
from vhmc.transport.affine import Affine
from vhmc.transport.transport_map import TransportMap

ONE_MODE = Modes(
    np.zeros((1, 8)), np.zeros(1), np.zeros((1, 8)), np.ones(1, dtype=bool), True
)


def test_it_leaves_a_mode_for_the_mass():
    """A log-gamma with shape 1 has its mass 0.58 below its mode, skewed."""
    density = Density(lambda t: jnp.sum(t - jnp.exp(t)))
    located = Located(Affine(np.zeros(8), np.eye(8)), [], ONE_MODE)
    layer = warm_up(np.random.default_rng(0), density, located, 96, 16)
    assert layer.mean.mean() < -0.2
    assert sum(density.counts.values()) <= 96


def test_it_stops_where_the_gaussian_is_the_posterior():
    density = Density(lambda t: -0.5 * jnp.sum(t**2))
    located = Located(Affine(np.zeros(8), np.eye(8)), [], ONE_MODE)
    layer = warm_up(np.random.default_rng(0), density, located, 1600, 16)
    assert sum(density.counts.values()) <= 5 * 16
    np.testing.assert_allclose(layer.mean, 0.0, atol=0.3)


def test_too_small_an_allowance_evaluates_nothing():
    density = Density(lambda t: -0.5 * jnp.sum(t**2))
    located = Located(Affine(np.ones(8), np.eye(8)), [], ONE_MODE)
    layer = warm_up(np.random.default_rng(0), density, located, 31, 16)
    assert layer is located.layer and not density.counts


def test_a_neck_without_a_mode_is_left_for_a_point_on_the_way():
    """Centred eight-dimensional funnel: the energy falls for ever as `v` does."""

    def log_density(theta):
        v, x = theta[0], theta[1:]
        return -0.5 * (v / 3) ** 2 - 0.5 * jnp.sum(x**2) * jnp.exp(-v) - 4 * v

    density, rng = Density(log_density), np.random.default_rng(0)
    located = locate(rng, density, np.ones(9), 200, density.hessian)
    assert located.layer.mean[0] < -15
    layer = warm_up(rng, density, located, 150, 16)
    assert abs(layer.mean[0]) < 6
    assert density.counts["screening"] + density.counts["warm-up"] <= 150


def test_a_map_that_is_too_narrow_along_a_scale_is_not_kept():
    """Its log weights hardly vary: given the scale the effects are normal."""
    rng = np.random.default_rng(0)

    def funnel(t):
        effects = t[:20] / jnp.exp(t[20])
        return -0.5 * jnp.sum(effects**2) - 20 * t[20] - 0.5 * t[20] ** 2

    def normal(t):
        return -0.5 * jnp.sum(t**2)

    for log_density, width, is_wide in ((funnel, 0.02, False), (normal, 1.0, True)):
        factor = np.diag(np.append(np.ones(20), width))
        transport = TransportMap((Affine(np.zeros(21), factor),))
        theta = transport.forward(rng.standard_normal((400, 21)))
        answer = Density(log_density)(theta, "warm-up")
        assert np.std(log_weights(transport, theta, answer.energy)) < 1.0
        assert _is_wide(transport, theta, answer.grad) == is_wide

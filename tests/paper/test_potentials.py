"""Potentials as functions and as distributions."""

import jax
import jax.numpy as jnp
import numpy as np

from vhmc.numerics.bases import additive
from vhmc.numerics.gaussian import gaussian, standard_normal
from vhmc.paper.potentials import Blend, Surrogate

BASIS = additive(jax.random.key(0), 8, standard_normal(3))
SURROGATE = Surrogate(BASIS, jax.random.normal(jax.random.key(1), (8,)))
THETA = jnp.array([0.3, -1.2, 2.0])


def test_surrogate_gradient_is_the_jacobian_times_the_weights():
    expected = BASIS.jacobian(THETA) @ SURROGATE.weights
    np.testing.assert_allclose(jax.grad(SURROGATE)(THETA), expected, rtol=1e-12)


def test_surrogate_as_a_distribution():
    assert SURROGATE.log_density(THETA) == -SURROGATE(THETA)
    np.testing.assert_array_equal(
        SURROGATE.score(THETA), jax.grad(SURROGATE.log_density)(THETA)
    )


def test_gaussian_is_the_quadratic_form():
    mean = jnp.array([1.0, 0.0, -1.0])
    precision = jnp.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.2], [0.0, 0.2, 3.0]])
    potential = gaussian(mean, precision)
    difference = THETA - mean
    np.testing.assert_allclose(
        potential(THETA), 0.5 * difference @ precision @ difference, rtol=1e-12
    )
    np.testing.assert_allclose(potential.precision, precision, rtol=1e-12)


def test_blend_runs_from_guide_to_surrogate():
    guide = standard_normal(3)
    for mu, expected in ((0.0, guide(THETA)), (1.0, SURROGATE(THETA))):
        np.testing.assert_allclose(
            Blend(SURROGATE, guide, jnp.array(mu))(THETA), expected, rtol=1e-12
        )
    half = Blend(SURROGATE, guide, jnp.array(0.5))(THETA)
    np.testing.assert_allclose(half, (guide(THETA) + SURROGATE(THETA)) / 2, rtol=1e-12)

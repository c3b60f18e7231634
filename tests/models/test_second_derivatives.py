"""Hessians of models that JAX differentiates only in reverse, or only once."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental.ode import odeint

import vhmc


def decay(theta):
    """A quantity that decays at the rate exp(theta[0]) from theta[1], seen thrice."""
    times = jnp.array([0.0, 0.5, 1.0, 2.0])
    path = odeint(lambda y, t, rate: -rate * y, theta[1], times, jnp.exp(theta[0]))
    return -0.5 * jnp.sum((path[1:] - 1.0) ** 2)


def in_closed_form(theta):
    times = jnp.array([0.5, 1.0, 2.0])
    path = theta[1] * jnp.exp(-jnp.exp(theta[0]) * times)
    return -0.5 * jnp.sum((path - 1.0) ** 2)


@jax.custom_vjp
def outside(theta):
    """Minus the sum of fourth powers, by a program that JAX cannot look into."""
    shape = jax.ShapeDtypeStruct((), float)
    return jax.pure_callback(
        lambda x: -np.sum(np.asarray(x) ** 4, axis=-1),
        shape,
        theta,
        vmap_method="broadcast_all",
    )


def forward(theta):
    grad = jax.pure_callback(
        lambda x: -4 * np.asarray(x) ** 3,
        jax.ShapeDtypeStruct(theta.shape, float),
        theta,
        vmap_method="broadcast_all",
    )
    return outside(theta), grad


outside.defvjp(forward, lambda grad, cotangent: (cotangent * grad,))


def test_an_adjoint_solver_has_a_hessian():
    target = vhmc.from_jax(decay, np.array([0.1, 1.5]))
    point = np.array([0.2, 1.2])
    expected = -jax.hessian(in_closed_form)(point)
    np.testing.assert_allclose(target.hessian(point), expected, rtol=1e-4)
    assert target.hessian_price == 2 == target.num_evaluations


def test_gradients_are_differenced_where_they_have_no_derivative():
    target = vhmc.from_jax(outside, np.ones(3))
    point = np.array([0.5, 1.0, -2.0])
    np.testing.assert_allclose(
        target.hessian(point), np.diag(12 * point**2), rtol=1e-6, atol=1e-6
    )
    assert target.hessian_price == 6 == target.num_evaluations


def test_a_hessian_is_found_without_an_evaluation():
    for density, start in ((decay, np.ones(2)), (outside, np.ones(3))):
        target = vhmc.from_jax(density, start)
        assert target.hessian_price
        assert target.num_evaluations == 0


@pytest.mark.slow
def test_a_run_on_an_adjoint_solver():
    def log_density(theta):
        return 100 * decay(theta) - 0.5 * jnp.sum(theta**2)

    posterior = vhmc.sample(
        vhmc.from_jax(log_density, np.ones(2)), 600, seed=0, progress=False
    )
    assert posterior.verdict.status == "good"

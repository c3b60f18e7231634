"""Training in blocks: the same minimiser as the printed update, and its limits."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import vhmc
from vhmc.paper import score_matching
from vhmc.paper.blocks import train_in_blocks
from vhmc.paper.sample import initial_kernel


def quartic():
    return vhmc.from_jax(
        lambda t: -0.25 * jnp.sum(t**4) - 0.5 * jnp.sum(t**2) - 0.3 * t[0] * t[1],
        np.array([0.5, -0.5, 0.3]),
    )


def trained(method, target, seed=0):
    guide = vhmc.paper.laplace(target, target.start).guide
    kernel = initial_kernel(jax.random.key(1), method, guide)
    key = jax.random.key(seed)
    return train_in_blocks(key, method, target, guide.mean, guide, kernel)


def test_the_weights_are_those_of_the_printed_update():
    target = quartic()
    method = vhmc.paper.VHMC(num_features=40, num_train=200, ridge=0.1)
    done = trained(method, target)
    fit = score_matching.init(40, 0.1)
    for theta, grad in zip(done.theta, done.grad, strict=True):
        jac = done.surrogate.basis.jacobian(jnp.asarray(theta))
        fit = score_matching.update(fit, jac, jnp.asarray(grad))
    np.testing.assert_allclose(done.surrogate.weights, fit.weights, rtol=1e-6)


def test_every_accepted_state_is_paid_for_once():
    target = quartic()
    before = target.num_evaluations
    done = trained(vhmc.paper.VHMC(num_features=40, num_train=200), target)
    search = vhmc.paper.laplace(quartic(), quartic().start)
    spent = target.num_evaluations - before - search.num_search - search.num_hessian
    assert len(done.theta) == len(done.grad) == spent
    assert len(done.states) == len(done.times) == 208  # whole chunks of 16
    assert (np.diff(done.times) >= 0).all()
    moved = np.any(np.diff(done.states, axis=0) != 0, axis=1).sum()
    assert moved == len(done.theta) or moved + 1 == len(done.theta)


def test_the_surrogate_approaches_the_gradients():
    target = quartic()
    done = trained(
        vhmc.paper.VHMC(num_features=200, num_train=1000, ridge=1e-2), target
    )
    points = done.theta[-50:]
    found = np.asarray(jax.vmap(jax.grad(done.surrogate))(jnp.asarray(points)))
    exact = target.evaluate(points).grad
    assert np.mean((found - exact) ** 2) < 0.1 * np.mean(exact**2)


def test_other_nodes_are_refused():
    method = vhmc.paper.VHMC(num_features=40, num_train=32, nodes=vhmc.paper.fourier)
    with pytest.raises(ValueError, match="additive softplus"):
        trained(method, quartic())

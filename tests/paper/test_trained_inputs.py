"""Algorithm 2 with trained input weights."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from vhmc.numerics.bases import additive, fourier
from vhmc.numerics.gaussian import gaussian, standard_normal
from vhmc.paper import score_matching
from vhmc.paper.potentials import Surrogate
from vhmc.paper.trained_inputs import refit, train_inputs

GUIDE = gaussian(jnp.array([1.0, -2.0]), jnp.array([[4.0, 1.0], [1.0, 0.5]]))


def gradients(number):
    """Gradients of a curved energy at draws of the guide."""
    rng = np.random.default_rng(0)
    covariance = np.linalg.inv(np.asarray(GUIDE.precision))
    thetas = rng.multivariate_normal(np.asarray(GUIDE.mean), covariance, number)

    def energy(theta):
        x = GUIDE.whiten @ (theta - GUIDE.mean)
        return 0.5 * jnp.sum(x**2) + jnp.sin(2 * x[0]) * jnp.cos(x[1])

    return thetas, np.asarray(jax.vmap(jax.grad(energy))(thetas))


def error(basis, fit, thetas, grads):
    surrogate = Surrogate(basis, fit.weights)
    return np.mean((np.asarray(jax.vmap(jax.grad(surrogate))(thetas)) - grads) ** 2)


def test_the_solve_is_the_online_fit():
    thetas, grads = gradients(20)
    basis = additive(jax.random.key(0), 8, GUIDE)
    fit = score_matching.init(8, 0.1)
    for theta, grad in zip(jnp.asarray(thetas), jnp.asarray(grads), strict=True):
        fit = score_matching.update(fit, basis.jacobian(theta), grad)
    solved = refit(basis, thetas, grads, 0.1)
    np.testing.assert_allclose(solved.weights, fit.weights, rtol=1e-6)
    np.testing.assert_allclose(solved.gram_inv, fit.gram_inv, rtol=1e-6, atol=1e-9)


def test_trained_nodes_fit_gradients_better_than_those_drawn():
    thetas, grads = gradients(500)
    seen, fresh = slice(0, 250), slice(250, 500)
    basis = additive(jax.random.key(1), 12, GUIDE, scale=1.5)
    drawn = refit(basis, thetas[seen], grads[seen], 0.01)
    surrogate = Surrogate(basis, drawn.weights)
    trained = train_inputs(
        jax.random.key(2), surrogate, GUIDE, thetas[seen], grads[seen]
    )
    fit = refit(trained, thetas[seen], grads[seen], 0.01)
    new, old = (
        error(nodes, one, thetas[fresh], grads[fresh])
        for nodes, one in ((trained, fit), (basis, drawn))
    )
    assert new < 0.5 * old


def test_only_softplus_nodes_can_be_trained():
    guide = standard_normal(2)
    surrogate = Surrogate(fourier(jax.random.key(0), 4, guide), jnp.zeros(4))
    with pytest.raises(ValueError, match="softplus"):
        train_inputs(jax.random.key(1), surrogate, guide, *gradients(40))

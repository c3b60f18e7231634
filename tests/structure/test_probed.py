"""Graphs from gradients miss no edge, and are given up where they cannot be told."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from vhmc.structure.probed import graph_from_gradients

NUM_GROUPS = 10


def star(rng, num):
    """Log scale, mean and group effects with normal data, drawn from the prior."""
    log_scale = -0.5 + 0.5 * rng.standard_normal(num)
    mean = rng.standard_normal(num)
    effect = rng.standard_normal((num, NUM_GROUPS)) * np.exp(log_scale)[:, None]

    def energy(theta):
        spread = (theta[2:] - theta[1]) * jnp.exp(-theta[0])
        data = jnp.sum((theta[2:] - 0.3) ** 2) / 2
        prior = 2 * (theta[0] + 0.5) ** 2 + theta[1] ** 2 / 2
        return jnp.sum(spread**2) / 2 + NUM_GROUPS * theta[0] + data + prior

    thetas = np.column_stack([log_scale, mean, mean[:, None] + effect])
    expected = np.eye(NUM_GROUPS + 2, dtype=bool)
    expected[:2] = expected[:, :2] = True
    return energy, thetas, expected


def chain(rng, num):
    """A weak, curved chain."""
    thetas = rng.standard_normal((num, 12))

    def energy(theta):
        links = 0.3 * theta[1:] * theta[:-1] + 0.2 * jnp.sin(theta[1:] * theta[:-1])
        return jnp.sum(theta**2) / 2 + jnp.sum(links) + jnp.sum(jnp.cosh(theta))

    places = np.arange(12)
    return energy, thetas, np.abs(places[:, None] - places) <= 1


def dense(rng, num):
    """A logistic regression: many weak links."""
    x = rng.standard_normal((200, 9))
    thetas = 0.2 * rng.standard_normal((num, 9))

    def energy(theta):
        return jnp.sum(jnp.logaddexp(0.0, x @ theta)) + jnp.sum(theta**2)

    return energy, thetas, np.ones((9, 9), dtype=bool)


def gradients(energy, thetas):
    return np.asarray(jax.jit(jax.vmap(jax.grad(energy)))(thetas))


@pytest.mark.parametrize(("make", "num"), [(star, 160), (chain, 120)])
def test_no_edge_is_missed_and_few_are_too_many(make, num, seed):
    energy, thetas, expected = make(np.random.default_rng(seed), num)
    found = graph_from_gradients(thetas, gradients(energy, thetas)).toarray()
    np.testing.assert_array_equal(found, found.T)
    assert not (expected & ~found).any()
    assert (found & ~expected).sum() <= 0.2 * (~expected).sum()


def test_a_dense_model_has_no_graph(seed):
    energy, thetas, _ = dense(np.random.default_rng(seed), 100)
    assert graph_from_gradients(thetas, gradients(energy, thetas)) is None


def test_noise_is_not_taken_for_independence(seed):
    """Gradients that no parameter predicts get all edges."""
    rng = np.random.default_rng(seed)
    thetas, grads = rng.standard_normal((2, 120, 6))
    assert graph_from_gradients(thetas, grads) is None


def test_too_few_points_have_no_graph(seed):
    energy, thetas, _ = chain(np.random.default_rng(seed), 47)
    assert graph_from_gradients(thetas, gradients(energy, thetas)) is None


def test_points_without_an_answer_are_left_out(seed):
    energy, thetas, expected = chain(np.random.default_rng(seed), 120)
    grads = gradients(energy, thetas)
    thetas, grads = np.vstack([thetas, thetas[:5]]), np.vstack([grads, grads[:5]])
    grads[-5:] = np.nan
    found = graph_from_gradients(thetas, grads).toarray()
    assert not (expected & ~found).any()

"""The online fit equals the batch ridge, and stays so."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vhmc.numerics.bases import additive
from vhmc.numerics.gaussian import standard_normal
from vhmc.paper import score_matching
from vhmc.surrogate.network_fit import Nodes, solve_with

UPDATE = jax.jit(score_matching.update)
SEEDS = st.integers(0, 2**16)
RIDGES = st.sampled_from([1e-6, 1e-3, 1.0, 1e3])


def random_problem(seed, num=9, dim=3, nodes=6):
    key_jacs, key_grads = jax.random.split(jax.random.key(seed))
    jacs = jax.random.normal(key_jacs, (num, dim, nodes))
    return jacs, jax.random.normal(key_grads, (num, dim))


def host(basis):
    """The same nodes for the host."""
    return Nodes(np.asarray(basis.directions), np.asarray(basis.offsets))


def rounding(ridge):
    """C starts at 1 / ridge, so its rounding errors do too: ten of them."""
    return 10 * np.finfo(float).eps * max(1.0, 1 / ridge)


@given(seed=SEEDS, ridge=RIDGES)
@settings(deadline=None, max_examples=40)
def test_online_fit_equals_batch_ridge(seed, ridge):
    jacs, grads = random_problem(seed)
    fit = score_matching.init(6, ridge)
    for jac, grad in zip(jacs, grads, strict=True):
        fit = UPDATE(fit, jac, grad)
    stacked = jacs.reshape(-1, 6)
    normal = stacked.T @ stacked + ridge * jnp.eye(6)
    expected = jnp.linalg.solve(normal, stacked.T @ grads.ravel())
    atol = rounding(ridge)
    np.testing.assert_allclose(fit.weights, expected, rtol=1e-8, atol=atol)
    np.testing.assert_allclose(fit.gram_inv, jnp.linalg.inv(normal), 1e-8, atol)


@given(seed=SEEDS, ridge=RIDGES)
@settings(deadline=None, max_examples=20)
def test_a_block_equals_its_points_one_by_one(seed, ridge):
    jacs, grads = random_problem(seed)
    one_by_one = score_matching.init(6, ridge)
    for jac, grad in zip(jacs, grads, strict=True):
        one_by_one = UPDATE(one_by_one, jac, grad)
    block = UPDATE(score_matching.init(6, ridge), jacs.reshape(-1, 6), grads.ravel())
    np.testing.assert_allclose(
        block.weights, one_by_one.weights, rtol=1e-8, atol=rounding(ridge)
    )


@given(seed=SEEDS)
@settings(deadline=None, max_examples=20)
def test_online_fit_equals_normal_equations(seed):
    """The printed update and the Hadamard form, to rounding."""
    key_nodes, key_theta, key_grad = jax.random.split(jax.random.key(seed), 3)
    basis = additive(key_nodes, 8, standard_normal(3))
    thetas = jax.random.normal(key_theta, (30, 3))
    grads = jax.random.normal(key_grad, (30, 3))
    fit = score_matching.init(8, ridge=1e-2)
    for theta, grad in zip(thetas, grads, strict=True):
        fit = UPDATE(fit, basis.jacobian(theta), grad)
    weights = solve_with(
        host(basis).normal_terms(*map(np.asarray, (thetas, grads))), 1e-2
    )
    np.testing.assert_allclose(fit.weights, weights, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("ridge", [1e-8, pytest.param(1e-4, marks=pytest.mark.slow)])
def test_no_drift_in_a_hundred_thousand_updates(ridge):
    """C stays symmetric, positive definite and right, and so do the weights.

    The printed `C - W A C` is run beside it: at a ridge of 1e-8 it is destroyed long
    before the end, which is why the root is carried.
    """
    dim, nodes, num = 2, 100, 100_000
    key_nodes, key_theta = jax.random.split(jax.random.key(0))
    basis = additive(key_nodes, nodes, standard_normal(dim))
    thetas = 2 * jax.random.normal(key_theta, (num, dim))
    grads = jnp.tanh(thetas) + thetas

    def absorb(carry, pair):
        fit, printed = carry
        theta, grad = pair
        jac = basis.jacobian(theta)
        jac_cov = jac @ printed
        gain = jnp.linalg.solve(jnp.eye(dim) + jac_cov @ jac.T, jac_cov).T
        return (score_matching.update(fit, jac, grad), printed - gain @ jac_cov), None

    start = score_matching.init(nodes, ridge), jnp.eye(nodes) / ridge
    (fit, printed), _ = jax.jit(lambda s: jax.lax.scan(absorb, s, (thetas, grads)))(
        start
    )

    normal = host(basis).normal_terms(np.asarray(thetas), np.asarray(grads))
    cov = np.asarray(fit.gram_inv)
    assert np.array_equal(cov, cov.T)
    assert np.linalg.eigvalsh(cov).min() > 0
    matrix = normal[0] + ridge * np.eye(nodes)
    rounding_once = np.finfo(float).eps * np.linalg.cond(matrix)
    assert np.abs(cov @ matrix - np.eye(nodes)).max() < 10 * rounding_once
    best = solve_with(normal, ridge)
    jacs = jax.vmap(basis.jacobian)(thetas[:1000])
    np.testing.assert_allclose(jacs @ fit.weights, jacs @ best, atol=1e-4)
    if ridge == 1e-8:
        assert not is_positive_definite(np.asarray(printed))


def is_positive_definite(matrix):
    if not np.isfinite(matrix).all():
        return False
    return np.linalg.eigvalsh((matrix + matrix.T) / 2).min() > 0


@pytest.mark.parametrize("ridge", [0.0, -1.0, float("nan")])
def test_ridge_must_be_positive(ridge):
    with pytest.raises(ValueError, match="ridge must be positive, got"):
        score_matching.init(3, ridge)


def test_there_must_be_nodes():
    with pytest.raises(ValueError, match="at least 1, got 0"):
        score_matching.init(0, 1.0)

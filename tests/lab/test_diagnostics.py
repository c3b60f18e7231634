"""Diagnostics against answers that are known."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special

from vhmc.lab.diagnostics import quadrature
from vhmc.lab.diagnostics.amari import amari_distance, is_same_twin
from vhmc.lab.experiments.truth import zero_variance_mean
from vhmc.numerics.effective_size import bulk_ess, geyer_ess, split_rhat
from vhmc.numerics.gaussian import gaussian, standard_normal

BOX = quadrature.grid((-9.0, -9.0), (9.0, 9.0), 181)
SHIFTED = gaussian(jnp.array([0.5, -0.3]), jnp.array([[2.0, 0.3], [0.3, 0.8]]))


def autoregression(rho, num, seed):
    noise = np.random.default_rng(seed).normal(size=num)
    chain = np.empty(num)
    chain[0] = noise[0]
    for t in range(1, num):
        chain[t] = rho * chain[t - 1] + np.sqrt(1 - rho**2) * noise[t]
    return chain


@pytest.mark.parametrize(("rho", "sd"), [(0.0, 0.023), (0.5, 0.040), (0.9, 0.077)])
def test_geyer_ess_of_an_autoregression(rho, sd, seed):
    """Five chains average to B (1 - rho) / (1 + rho), to five standard errors.

    sd: relative standard deviation of one chain's estimate, and 0.01 its bias, measured
    over 200 chains of other seeds.
    """
    num, repeats = 20_000, 5
    chains = [autoregression(rho, num, [seed, k]) for k in range(repeats)]
    ess = np.mean([geyer_ess(chain) for chain in chains])
    error = ess / (num * (1 - rho) / (1 + rho)) - 1
    assert abs(error) < 0.01 + 5 * sd / np.sqrt(repeats)


def test_geyer_and_bulk_ess_agree_on_one_chain(seed):
    chain = autoregression(0.7, 20_000, seed)
    assert 0.85 < geyer_ess(chain) / bulk_ess(chain.reshape(2, -1)) < 1.15


def test_geyer_ess_keeps_the_shape_and_knows_a_constant():
    chain = np.random.default_rng(0).normal(size=(1000, 2, 3))
    chain[:, 0, 0] = 0.1
    sizes = geyer_ess(chain)
    assert sizes.shape == (2, 3)
    assert np.isnan(sizes[0, 0])
    assert np.isfinite(sizes.ravel()[1:]).all()


def test_rhat_sees_chains_apart():
    draws = np.random.default_rng(0).normal(size=(4, 500, 2))
    assert split_rhat(draws).max() < 1.05
    draws[0, :, 1] += 5
    assert split_rhat(draws)[1] > 1.5
    assert split_rhat(draws[1:2]).max() < 1.05


def test_quadrature_moments_and_kl_of_gaussians():
    log_p = quadrature.log_probabilities(standard_normal(2), BOX)
    log_q = quadrature.log_probabilities(SHIFTED, BOX)
    mean, covariance = quadrature.moments(log_q, BOX)
    expected = np.linalg.inv(SHIFTED.precision)
    np.testing.assert_allclose(mean, SHIFTED.mean, atol=1e-9)
    np.testing.assert_allclose(covariance, expected, atol=1e-9)
    exact = 0.5 * (
        np.trace(expected)
        + np.sum(np.square(SHIFTED.mean))
        - 2
        - np.linalg.slogdet(expected)[1]
    )
    assert abs(quadrature.kl_divergence(log_q, log_p) - exact) < 1e-9
    assert quadrature.kl_divergence(log_p, log_p) == 0


def test_edge_mass_sees_a_potential_that_is_not_normalisable():
    good = quadrature.log_probabilities(standard_normal(2), BOX)
    bad = quadrature.log_probabilities(lambda theta: -theta[0], BOX)
    assert quadrature.edge_mass(good, BOX) < 1e-15
    assert quadrature.edge_mass(bad, BOX) > 0.05


def test_expected_score_distance_of_gaussians():
    """E_q |P_q (x - m) - x|^2 / 2 in closed form."""
    log_q = quadrature.log_probabilities(SHIFTED, BOX)
    distance = quadrature.score_distance(
        SHIFTED, BOX.points, BOX.points, jnp.exp(log_q)
    )
    excess = np.asarray(SHIFTED.precision) - np.eye(2)
    covariance = np.linalg.inv(SHIFTED.precision)
    mean = np.asarray(SHIFTED.mean)
    exact = 0.5 * (np.trace(excess @ covariance @ excess) + mean @ mean)
    assert abs(distance - exact) < 1e-9


def test_empirical_score_distance_estimates_the_expected_one(seed):
    """100,000 independent draws, five standard errors."""
    normals = jax.random.normal(jax.random.key(seed), (100_000, 2))
    thetas = SHIFTED.mean + jnp.linalg.solve(SHIFTED.whiten, normals.T).T
    log_q = quadrature.log_probabilities(SHIFTED, BOX)
    expected = quadrature.score_distance(
        SHIFTED, BOX.points, BOX.points, jnp.exp(log_q)
    )
    squares = 0.5 * jnp.sum((jax.vmap(jax.grad(SHIFTED))(thetas) - thetas) ** 2, axis=1)
    error = squares.std() / np.sqrt(len(squares))
    equal = jnp.full(len(thetas), 1 / len(thetas))
    found = quadrature.score_distance(SHIFTED, thetas, thetas, equal)
    assert abs(found - expected) < 5 * error


def test_amari_distance_ignores_order_sign_and_scale():
    rng = np.random.default_rng(0)
    matrix = rng.standard_normal((4, 4))
    twin = np.diag([1.0, -2.0, 0.5, 3.0]) @ matrix[[2, 0, 3, 1]]
    assert amari_distance(twin, matrix) == pytest.approx(0, abs=1e-9)
    assert amari_distance(matrix + 0.3 * rng.standard_normal((4, 4)), matrix) > 0.1


def test_twins_are_told_apart():
    rng = np.random.default_rng(0)
    matrix = 5 * rng.standard_normal((3, 3))
    near = matrix + 0.01 * rng.standard_normal((10, 3, 3))
    turned = np.array([-1.0, 1.0, 1.0])[:, None] * matrix
    draws = np.concatenate([near, [matrix[[1, 0, 2]], turned]])
    expected = [True] * 10 + [False] * 2
    np.testing.assert_array_equal(is_same_twin(draws, matrix), expected)


def test_gradients_take_the_chance_out_of_a_mean():
    """Exactly for a Gaussian; tenfold for a gamma variable of shape 50, on its log."""
    rng = np.random.default_rng(0)
    draws = rng.standard_normal((50, 2)) @ np.array([[1.0, 0.5], [0.0, 2.0]]) + 3.0
    precision = np.linalg.inv(np.array([[1.0, 0.5], [0.5, 4.25]]))
    found = zero_variance_mean(draws, (draws - 3.0) @ precision)
    np.testing.assert_allclose(found, 3.0, rtol=1e-10)
    logs = np.log(rng.gamma(50.0, size=(200, 40)))
    means = [zero_variance_mean(x[:, None], np.exp(x[:, None]) - 50)[0] for x in logs]
    assert np.std(means) < 0.2 * np.std(logs.mean(axis=1))
    assert abs(np.mean(means) - scipy.special.digamma(50)) < 0.005

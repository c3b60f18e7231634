"""The linear predictor: found where it separates parameters from data, else not."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.linalg import solve_triangular

from vhmc.structure.predictor import predictor

SIZE = 8
GRID = np.linspace(-2.0, 2.0, SIZE)
COUNTS = np.array([3.0, 1, 4, 1, 5, 9, 2, 6])
DIAGONAL = tuple((i, i) for i in range(SIZE))


def factor(log_range, log_scale):
    squares = (GRID[:, None] - GRID) ** 2
    cov = jnp.exp(2 * log_scale - squares / (2 * jnp.exp(2 * log_range)))
    return jnp.linalg.cholesky(cov + 1e-6 * jnp.eye(SIZE))


def latent(theta):
    return theta[2] + factor(theta[0], theta[1]) @ theta[3 : 3 + SIZE]


def white(theta):
    path = theta[2 : 2 + SIZE]
    return solve_triangular(factor(theta[0], theta[1]), path, lower=True)


def counts(theta):
    eta = latent(theta)
    return jnp.sum(jnp.exp(eta) - COUNTS * eta) + 0.5 * jnp.sum(theta**2)


def centred_counts(theta):
    path, shocks = theta[2 : 2 + SIZE], white(theta)
    volume = jnp.sum(jnp.log(jnp.diagonal(factor(theta[0], theta[1]))))
    prior = 0.5 * shocks @ shocks + volume + 0.5 * jnp.sum(theta[:2] ** 2)
    return jnp.sum(jnp.exp(path) - COUNTS * path) + prior


def noisy(theta):
    squares = (COUNTS - latent(theta)) ** 2
    prior = 0.5 * jnp.sum(theta**2)
    return jnp.sum(0.5 * squares * jnp.exp(-2 * theta[-1]) + theta[-1]) + prior


@pytest.mark.parametrize(
    ("energy", "dim", "hubs", "quantity"),
    [
        (counts, SIZE + 3, (0, 1), latent),
        (centred_counts, SIZE + 2, (0, 1), white),
        (noisy, SIZE + 4, (0, 1, SIZE + 3), None),
    ],
)
def test_found_with_its_hubs(energy, dim, hubs, quantity):
    found = predictor(energy, np.zeros(dim))
    assert found is not None
    assert found.hubs == hubs
    assert found.links == DIAGONAL
    assert len(found.own_links) == dim - len(hubs)
    theta = np.random.default_rng(0).standard_normal(dim)
    if quantity is not None:
        np.testing.assert_allclose(found.quantity(theta), quantity(theta), rtol=1e-10)


def test_curvature_is_what_the_links_say():
    """Of the rest given the hubs: own entries, and those of the quantity."""
    theta = np.random.default_rng(1).standard_normal(SIZE + 3)
    found = predictor(counts, np.zeros(SIZE + 3))
    assert found is not None
    slopes = np.asarray(jax.jacfwd(found.quantity)(theta))[:, 2:]
    by_entry = np.diag(np.exp(np.asarray(found.quantity(theta))))
    expected = np.eye(SIZE + 1) + slopes.T @ by_entry @ slopes
    hessian = np.asarray(jax.hessian(counts)(theta))[2:, 2:]
    np.testing.assert_allclose(hessian, expected, rtol=1e-8, atol=1e-8)


DESIGN = np.random.default_rng(2).standard_normal((20, SIZE))


def regression(theta):
    eta = DESIGN @ theta
    return jnp.sum(jnp.logaddexp(0.0, eta)) + 0.5 * theta @ theta


def curved(theta):
    """Two factors that are unknown both: affine in neither given few hubs."""
    eta = theta[:SIZE, None] * theta[SIZE:]
    return jnp.sum(jnp.exp(eta) - 3 * eta) + 0.5 * theta @ theta


@pytest.mark.parametrize(("energy", "dim"), [(regression, SIZE), (curved, 2 * SIZE)])
def test_none_without_few_hubs(energy, dim):
    assert predictor(energy, np.zeros(dim)) is None


ANSWERS = np.arange(20) / 10 - 1


def sparse_regression(theta):
    """Half-Cauchy local scales and one overall, as logarithms; normal errors."""
    slopes = theta[:SIZE] * jnp.exp(theta[SIZE : 2 * SIZE] + theta[-2])
    squares = jnp.sum((ANSWERS - DESIGN @ slopes) ** 2)
    scales = theta[SIZE:-1]
    prior = 0.5 * jnp.sum(theta[:SIZE] ** 2) + jnp.exp(2 * theta[-1]) / 2 - theta[-1]
    prior += jnp.sum(jnp.log1p(jnp.exp(2 * scales)) - scales)
    return 0.5 * squares * jnp.exp(-2 * theta[-1]) + 20 * theta[-1] + prior


def test_many_scales_are_hubs_and_not_the_effects_that_they_scale():
    found = predictor(sparse_regression, np.zeros(2 * SIZE + 2))
    assert found.hubs == tuple(range(SIZE, 2 * SIZE + 2))
    assert not found.has_few_hubs


def test_says_which_hubs_the_program_uses_beyond_it():
    """The scale of the errors is one; those of the process enter through it alone."""
    found = predictor(noisy, np.zeros(SIZE + 4))
    assert found.outer_hubs == (SIZE + 3,)
    assert predictor(counts, np.zeros(SIZE + 3)).outer_hubs == ()

"""The inverse Hessian from gradients at several points."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from vhmc.sampler.curvature import Curvature


def gaussian_points(seed, number, dim=6):
    """Points, their gradients and the covariance, in units from 1e-4 to 1e4."""
    rng = np.random.default_rng(seed)
    mixing = rng.standard_normal((dim, dim)) + 2 * np.eye(dim)
    factor = np.geomspace(1e-4, 1e4, dim)[:, None] * mixing
    white = rng.standard_normal((number, dim))
    points = white @ factor.T
    return points, np.linalg.solve(factor.T, white.T).T, factor @ factor.T


@given(seed=st.integers(0, 2**16))
def test_as_many_pairs_as_dimensions_give_the_covariance_of_a_gaussian(seed):
    points, grads, covariance = gaussian_points(seed, 10)
    found = Curvature(points[0], grads[0], points[1:], grads[1:])
    newton = points[0] - found.times(grads[0])
    white = np.linalg.solve(np.linalg.cholesky(covariance), newton)
    assert np.abs(white).max() < 1e-2


@given(seed=st.integers(0, 2**16))
def test_it_is_positive_definite_whatever_the_gradients(seed):
    rng = np.random.default_rng(seed)
    points, grads = rng.standard_normal((2, 12, 6))
    found = Curvature(points[0], grads[0], points[1:], grads[1:])
    assert grads[0] @ found.times(grads[0]) > 0
    factor = found.factor()
    assert np.all(np.diag(factor) > 0)


def test_the_factor_is_that_of_the_product():
    points, grads, _ = gaussian_points(0, 4)
    found = Curvature(points[0], grads[0], points[1:], grads[1:])
    factor = found.factor()
    np.testing.assert_allclose(
        factor @ factor.T @ grads[0], found.times(grads[0]), rtol=1e-6
    )


def test_without_a_pair_the_first_step_is_one_long():
    nothing = np.empty((0, 3))
    grad = np.array([3.0, 4.0, 0.0])
    step = Curvature(np.zeros(3), grad, nothing, nothing).times(grad)
    np.testing.assert_allclose(np.linalg.norm(step), 1.0)

"""The affine layer by regression: what it is for normal and for other energies."""

import numpy as np

from vhmc.transport.affine_fit import fit_affine
from vhmc.transport.affine_regression import PRECISIONS, fit_by_regression

DIM, MANY = 3, 200_000


def test_a_normal_energy_gives_its_mean_and_precision():
    rng = np.random.default_rng(0)
    root = rng.standard_normal((DIM, DIM))
    precision, mean = np.eye(DIM) + root @ root.T, rng.standard_normal(DIM)
    x = rng.standard_normal((MANY, DIM))  # so many that nothing is shrunk
    layer = fit_by_regression(x, (x - mean) @ precision, np.ones(MANY))
    np.testing.assert_allclose(layer.mean, mean, atol=2e-4)
    found = np.linalg.inv(layer.factor @ layer.factor.T)
    np.testing.assert_allclose(found, precision, rtol=1e-3, atol=1e-3)


def test_the_precision_is_the_mean_hessian_and_not_larger():
    """Least Fisher divergence makes a Gaussian narrower where the energy is rough."""
    x = np.random.default_rng(1).standard_normal((MANY, DIM))
    grad = x + 1.5 * np.sin(3 * x)
    hessian = 1 + 4.5 * np.exp(-4.5)  # the mean of 1 + 4.5 cos 3 x
    layer = fit_by_regression(x, grad, np.ones(MANY))
    np.testing.assert_allclose(np.diag(layer.factor) ** -2, hessian, rtol=0.02)
    narrow = fit_affine(x, grad, np.ones(MANY))
    assert np.all(np.diag(narrow.factor) < 0.9 * np.diag(layer.factor))


def test_it_grows_in_small_steps():
    x = np.random.default_rng(2).standard_normal((200, DIM))
    layer = fit_by_regression(x, -x, np.ones(200))
    covariance = layer.factor @ layer.factor.T
    np.testing.assert_allclose(covariance, np.eye(DIM) / PRECISIONS[0], atol=1e-9)

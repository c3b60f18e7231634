"""Affine layers, and their fit to points and gradients."""

import numpy as np
import pytest

from vhmc.transport.affine import Affine, affine_from_precision, divergence
from vhmc.transport.affine_fit import fit_affine, geometric_mean, widen, widen_along

RNG = np.random.default_rng(0)


def spd(dim):
    root = RNG.standard_normal((dim, dim))
    return root @ root.T + np.eye(dim)


def test_layers_invert():
    layer = affine_from_precision(RNG.standard_normal(4), spd(4))
    x = RNG.standard_normal((5, 4))
    np.testing.assert_allclose(layer.inverse(layer.forward(x)), x, atol=1e-12)


def test_geometric_mean_solves_its_equation():
    covariance, information = spd(4), spd(4)
    mean = geometric_mean(covariance, information)
    np.testing.assert_allclose(mean @ information @ mean, covariance, rtol=1e-9)


def test_gradients_of_a_gaussian_determine_it_wherever_the_points_are():
    """With many points the identity, to which the fit is shrunk, has no weight."""
    mean, precision = RNG.standard_normal(3), spd(3)
    thetas = 5 + 0.3 * RNG.standard_normal((100_000, 3))
    grads = (thetas - mean) @ precision
    layer = Affine(np.zeros(3), np.eye(3))
    for _ in range(4):
        x = layer.inverse(thetas)
        inner = fit_affine(x, layer.pull_back(x, grads), np.ones(len(x)))
        layer = layer.compose(inner)
    np.testing.assert_allclose(layer.mean, mean, atol=0.01)
    covariance = layer.factor @ layer.factor.T
    np.testing.assert_allclose(covariance, np.linalg.inv(precision), atol=0.01)


def test_a_layer_is_widened_only_where_points_exceed_it():
    x = RNG.standard_normal((500, 2)) * np.array([4.0, 1.0])
    wide = widen(x)
    assert 4 < wide.factor[0, 0] < 5.5
    assert abs(wide.factor[1, 1] - 1) < 0.1
    same = widen(RNG.standard_normal((500, 2)))
    np.testing.assert_allclose(same.factor, np.eye(2), atol=1e-12)


def test_a_layer_is_widened_along_one_parameter():
    """Too little for the test in all directions at once, but not for one alone."""
    dim = 20
    x = RNG.standard_normal((150, dim))
    x[:, 3] *= 1.5
    identity = np.eye(dim)
    np.testing.assert_allclose(widen(x).factor, identity, atol=1e-12)
    wide = widen_along(x, identity)
    widths = np.sqrt(np.diag(wide.factor @ wide.factor.T))
    assert 1.8 < widths[3] < 2.8
    np.testing.assert_allclose(np.delete(widths, 3), 1.0, atol=1e-12)


def test_divergence_is_that_of_gaussians():
    layer = Affine(np.array([0.5]), np.array([[0.5]]))
    exact = 0.5 * (1 / 4 + 1 / 4 - 1 + np.log(4))
    assert divergence(layer) == pytest.approx(exact)

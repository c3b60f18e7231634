"""Gaussians in awkward units, and densities with walls and plateaus."""

import jax.numpy as jnp
import numpy as np

from vhmc.lab.bench.search.quest import Quest


def _gaussian(mean: np.ndarray, covariance: np.ndarray, start: np.ndarray) -> Quest:
    # Whitened in the density: a product with the precision would lose digits.
    whiten = np.linalg.inv(np.linalg.cholesky(covariance))

    def log_density(theta):
        return -0.5 * jnp.sum((whiten @ (theta - mean)) ** 2)

    return Quest(log_density, start, mean)


def _rotated(dim: int, condition: float) -> np.ndarray:
    axes, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((dim, dim)))
    return (axes * np.geomspace(condition**-0.5, condition**0.5, dim)) @ axes.T


def gaussian_rotated() -> Quest:
    """Ten dimensions, condition number a million, random axes."""
    return _gaussian(np.full(10, 3.0), _rotated(10, 1e6), np.zeros(10))


def gaussian_50() -> Quest:
    """Fifty dimensions, condition number ten thousand, random axes."""
    return _gaussian(np.full(50, 1.0), _rotated(50, 1e4), np.zeros(50))


def gaussian_units() -> Quest:
    """Correlated parameters with standard deviations from 1e-6 to 1e6."""
    sds = np.geomspace(1e-6, 1e6, 10)
    correlation = 0.5 + 0.5 * np.eye(10)
    return _gaussian(5 * sds, correlation * np.outer(sds, sds), np.zeros(10))


def gaussian_far() -> Quest:
    """A start 300 standard deviations away in each of ten directions."""
    return _gaussian(np.full(10, 300.0), _rotated(10, 10.0), np.zeros(10))


def gamma_walls() -> Quest:
    """Gamma variables of four scales, unconstrained: the density ends at zero."""
    shapes = np.array([5.0, 8.0, 12.0, 20.0])
    scales = np.array([0.1, 1.0, 10.0, 100.0])

    def log_density(theta):
        inside = jnp.all(theta > 0)
        x = jnp.where(inside, theta, 1.0) / scales
        value = jnp.sum((shapes - 1) * jnp.log(x) - x)
        return jnp.where(inside, value, -jnp.inf)

    return Quest(log_density, np.full(4, 1.5), shapes * scales)


def box_walls() -> Quest:
    """A Gaussian in a box ten wide; the starts are beside it or in its corners."""
    covariance = _rotated(5, 100.0)
    whiten = np.linalg.inv(np.linalg.cholesky(covariance))

    def log_density(theta):
        value = -0.5 * jnp.sum((whiten @ (theta - 2.0)) ** 2)
        return jnp.where(jnp.all(jnp.abs(theta) < 10), value, -jnp.inf)

    return Quest(log_density, np.full(5, -8.5), np.full(5, 2.0))


def rosenbrock_far() -> Quest:
    """A curved valley in four dimensions, entered from far away."""

    def log_density(theta):
        ahead, behind = theta[1:], theta[:-1]
        valley = jnp.sum((ahead - 0.3 * behind**2) ** 2) / 0.1
        return -0.5 * (valley + jnp.sum((theta - 1) ** 2))

    return Quest(log_density, np.full(4, -8.0), np.array([1.0, 0.4, 0.1, 0.1]))


def cauchy_far() -> Quest:
    """Location and scale of Cauchy errors: far away the energy is nearly flat."""
    rng = np.random.default_rng(1)
    y = 500.0 + 2.0 * rng.standard_cauchy(60)

    def log_density(theta):
        location, log_scale = theta
        residual = (y - location) * jnp.exp(-log_scale)
        likelihood = -jnp.sum(jnp.log1p(residual**2)) - len(y) * log_scale
        return likelihood - 0.5 * (location / 1000) ** 2 - 0.5 * (log_scale / 5) ** 2

    return Quest(log_density, np.zeros(2), np.array([500.0, 0.7]))


def softmax_counts() -> Quest:
    """Logits of six kinds from 1,000 counts, pinned by a weak prior."""
    counts = np.array([3.0, 11.0, 60.0, 170.0, 256.0, 500.0])

    def log_density(theta):
        logits = theta - jnp.log(jnp.sum(jnp.exp(theta - jnp.max(theta))))
        logits = logits - jnp.max(theta)
        return jnp.sum(counts * logits) - 0.5 * jnp.sum((theta / 3) ** 2)

    return Quest(log_density, np.zeros(6), np.log(counts) - np.mean(np.log(counts)))

"""Regressions on covariates as they come: raw units, no centring."""

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln
from jaxtyping import Array

from vhmc.lab.bench.problem import negative_binomial
from vhmc.lab.bench.search.quest import Quest

UNITS = np.array([1e-6, 1e-3, 1.0, 1e3, 1e6])
"""Of the covariates."""
FLAT = 20.0
"""Standard deviation of the prior of a coefficient, in units in which it is about 1."""


def _years(number: int) -> np.ndarray:
    return np.linspace(1951, 2020, number)


def _normal(x: np.ndarray, y: np.ndarray, widths: np.ndarray) -> Quest:
    """Linear regression with the logarithm of the noise as last coordinate."""

    def log_density(theta):
        slopes, log_noise = theta[:-1], theta[-1]
        residual = (y - x @ slopes) * jnp.exp(-log_noise)
        likelihood = -0.5 * jnp.sum(residual**2) - len(y) * log_noise
        prior = -0.5 * jnp.sum((slopes / widths) ** 2) - 0.5 * (log_noise / 5) ** 2
        return likelihood + prior

    slopes = np.linalg.lstsq(x, y, rcond=None)[0]
    noise = np.log(np.std(y - x @ slopes))
    return Quest(log_density, np.zeros(x.shape[1] + 1), np.append(slopes, noise))


def linear_years() -> Quest:
    """A trend over calendar years: intercept and slope correlate by 0.99994."""
    rng = np.random.default_rng(2)
    years = _years(50)
    y = 14 + 0.02 * (years - 1980) + 0.15 * rng.standard_normal(50)
    x = np.stack([np.ones(50), years], axis=1)
    return _normal(x, y, np.array([1e4, 10.0]))


def linear_units() -> Quest:
    """Five covariates whose units range over twelve orders of magnitude."""
    rng = np.random.default_rng(3)
    x = np.column_stack([np.ones(80), (5 + rng.standard_normal((80, 5))) * UNITS])
    slopes = np.append(1.0, np.array([1.0, -0.5, 0.3, 0.0, 2.0]) / UNITS)
    y = x @ slopes + 0.5 * rng.standard_normal(80)
    return _normal(x, y, FLAT * np.append(1.0, 1 / UNITS))


def linear_quartic() -> Quest:
    """Powers of a covariate between 0 and 10, up to the fourth."""
    rng = np.random.default_rng(4)
    x = np.linspace(0, 10, 60)[:, None] ** np.arange(5)
    y = x @ np.array([1.0, 2.0, -0.6, 0.05, 0.0]) + 0.7 * rng.standard_normal(60)
    return _normal(x, y, np.full(5, 100.0))


def linear_wide() -> Quest:
    """Thirty correlated columns, uncentred."""
    rng = np.random.default_rng(5)
    x = rng.standard_normal((120, 30)) + 3 * rng.standard_normal((120, 1)) + 20
    y = x @ rng.standard_normal(30) + rng.standard_normal(120)
    return _normal(x, y, np.full(30, 10.0))


def _logistic(x: np.ndarray, y: np.ndarray, widths: np.ndarray, near) -> Quest:
    def log_density(theta):
        eta = x @ theta
        likelihood = jnp.sum(y * eta - jnp.logaddexp(0.0, eta))
        return likelihood - 0.5 * jnp.sum((theta / widths) ** 2)

    return Quest(log_density, np.zeros(x.shape[1]), near)


def _answers(rng: np.random.Generator, eta: np.ndarray) -> np.ndarray:
    return (rng.uniform(size=len(eta)) < 1 / (1 + np.exp(-eta))).astype(float)


def logistic_units() -> Quest:
    """Yes-or-no answers on covariates of five units."""
    rng = np.random.default_rng(6)
    x = np.column_stack([np.ones(200), (2 + rng.standard_normal((200, 5))) * UNITS])
    near = np.append(-1.0, np.array([1.0, -0.7, 0.5, 0.2, -0.6]) / UNITS)
    widths = FLAT * np.append(1.0, 1 / UNITS)
    return _logistic(x, _answers(rng, x @ near), widths, near)


def logistic_years() -> Quest:
    """A trend of a probability over calendar years."""
    rng = np.random.default_rng(7)
    years = _years(150)
    x = np.stack([np.ones(150), years], axis=1)
    near = np.array([-0.04 * 1985, 0.04])
    return _logistic(x, _answers(rng, x @ near), np.array([1e4, 10.0]), near)


def _poisson(x: np.ndarray, y: np.ndarray, near: np.ndarray) -> Quest:
    def log_density(theta):
        eta = x @ theta
        return jnp.sum(y * eta - jnp.exp(eta)) - 0.5 * jnp.sum((theta / FLAT) ** 2)

    return Quest(log_density, np.zeros(x.shape[1]), near)


def poisson_huge() -> Quest:
    """Counts on a covariate up to ten: rates of 1e8 and more at random starts."""
    rng = np.random.default_rng(8)
    age = rng.uniform(0, 10, 100)
    x = np.stack([np.ones(100), age, rng.standard_normal(100)], axis=1)
    near = np.array([0.5, 0.2, -0.3])
    return _poisson(x, rng.poisson(np.exp(x @ near)).astype(float), near)


def poisson_overflow() -> Quest:
    """Counts on ages up to 90: rates that overflow at a fifth of the starts."""
    rng = np.random.default_rng(9)
    age = rng.uniform(20, 90, 100)
    x = np.stack([np.ones(100), age, age**2 / 10], axis=1)
    near = np.array([-1.0, 0.06, -0.004])
    return _poisson(x, rng.poisson(np.exp(x @ near)).astype(float), near)


def negative_binomial_raw() -> Quest:
    """Overdispersed counts on two raw covariates; the size is on a log scale."""
    rng = np.random.default_rng(10)
    x = np.column_stack(
        [np.ones(120), rng.uniform(15, 35, 120), rng.uniform(900, 1100, 120) / 100]
    )
    near = np.array([1.0, 0.08, -0.1, 0.7])
    rate = np.exp(x @ near[:3]) * rng.gamma(2, 1 / 2, 120)
    y = rng.poisson(rate).astype(float)

    def log_density(theta):
        likelihood = negative_binomial(y, x @ theta[:3], jnp.exp(theta[3]))
        return jnp.sum(likelihood) - 0.5 * jnp.sum((theta / FLAT) ** 2)

    return Quest(log_density, np.zeros(4), near)


def gamma_regression() -> Quest:
    """Positive responses of about a million, log link, log shape."""
    rng = np.random.default_rng(11)
    x = np.column_stack([np.ones(90), 10 + 2 * rng.standard_normal((90, 2))])
    near = np.array([12.0, 0.2, -0.1, 1.0])
    shape = np.exp(near[3])
    y = rng.gamma(shape, np.exp(x @ near[:3]) / shape)

    def log_density(theta):
        eta, shape = x @ theta[:3], jnp.exp(theta[3])
        terms = shape * (theta[3] - eta) + (shape - 1) * jnp.log(y)
        terms = terms - shape * y * jnp.exp(-eta) - gammaln(shape)
        return jnp.sum(terms) - 0.5 * jnp.sum((theta / FLAT) ** 2)

    return Quest(log_density, np.zeros(4), near)


def student_far() -> Quest:
    """Student-t errors of four degrees of freedom; the start is 300 sd away."""
    rng = np.random.default_rng(12)
    x = np.column_stack([np.ones(80), rng.standard_normal((80, 3))])
    near = np.array([40.0, -30.0, 20.0, 10.0, -0.5])
    y = x @ near[:4] + np.exp(-0.5) * rng.standard_t(4, size=80)

    def log_density(theta):
        residual = (y - x @ theta[:4]) * jnp.exp(-theta[4])
        likelihood = -2.5 * jnp.sum(jnp.log1p(residual**2 / 4)) - 80 * theta[4]
        return likelihood - 0.5 * jnp.sum((theta / 100) ** 2)

    return Quest(log_density, np.zeros(5), near)


def decay_raw() -> Quest:
    """An exponential decay with a floor, in seconds and counts, and its noise."""
    rng = np.random.default_rng(13)
    seconds = np.linspace(0, 3000, 40)
    y = 5e4 * np.exp(-seconds / 800) + 1e4 + 1500 * rng.standard_normal(40)

    def curve(theta) -> Array:
        return jnp.exp(theta[0] - seconds * jnp.exp(theta[1])) + jnp.exp(theta[2])

    def log_density(theta):
        residual = (y - curve(theta)) * jnp.exp(-theta[3])
        likelihood = -0.5 * jnp.sum(residual**2) - len(y) * theta[3]
        return likelihood - 0.5 * jnp.sum((theta / FLAT) ** 2)

    near = np.log(np.array([5e4, 1 / 800, 1e4, 1500]))
    return Quest(log_density, np.array([8.0, -8.0, 8.0, 8.0]), near)


def weibull_hours() -> Quest:
    """Lifetimes of about ten thousand hours on a temperature in Kelvin."""
    rng = np.random.default_rng(14)
    kelvin = rng.uniform(290, 350, 70)
    near = np.array([19.0, -0.03, 0.4])
    scale = np.exp(near[0] + near[1] * kelvin)
    y = scale * rng.weibull(np.exp(near[2]), 70)

    def log_density(theta):
        log_time = jnp.log(y) - theta[0] - theta[1] * kelvin
        shape = jnp.exp(theta[2])
        likelihood = theta[2] + shape * log_time - jnp.exp(shape * log_time)
        return jnp.sum(likelihood) - 0.5 * jnp.sum((theta / FLAT) ** 2)

    return Quest(log_density, np.zeros(3), near)

"""Smooth maps of normal variables: one mode, exact draws."""

import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm

from vhmc.lab.bench.verdict.case import Case, rotation, traced


def gaussian(rng: np.random.Generator) -> Case:
    """Correlated normals of 2 to 30 dimensions, condition numbers up to a million."""
    dim = int(rng.integers(2, 31))
    axes = rotation(rng, dim)
    sds = np.geomspace(1, 10 ** rng.uniform(0.5, 3), dim)
    mean = sds.mean() * rng.standard_normal(dim)
    whiten, colour = (axes / sds).T, axes * sds

    def log_density(x):
        return -0.5 * jnp.sum((whiten @ (x - mean)) ** 2)

    def draw(rng, size):
        return mean + rng.standard_normal((size, dim)) @ colour.T

    return traced(log_density, np.zeros(dim), draw)


def badly_scaled(rng: np.random.Generator) -> Case:
    """Skewed variables whose units range over eight orders of magnitude."""
    dim = int(rng.integers(2, 13))
    units, skew = 10 ** rng.uniform(-4, 4, dim), rng.uniform(0.1, 0.6, dim)
    axes = rotation(rng, dim)

    def log_density(x):
        y = x / units
        z = (jnp.arcsinh(y) - 0.5) / skew
        return -0.5 * jnp.sum((axes.T @ z) ** 2) - 0.5 * jnp.sum(jnp.log1p(y**2))

    def draw(rng, size):
        z = rng.standard_normal((size, dim)) @ axes.T
        return units * np.sinh(0.5 + skew * z)

    return traced(log_density, 0.5 * units, draw)


def banana(rng: np.random.Generator) -> Case:
    """Parabolas over a first coordinate, half of them rotated."""
    dim = int(rng.integers(2, 11))
    curvature, width = rng.uniform(0.2, 1.5), rng.uniform(0.3, 1.0)
    is_bent = np.arange(1, dim) <= max(1, dim // 2)
    axes = rotation(rng, dim) if rng.uniform() < 0.5 else np.eye(dim)
    bend = curvature * is_bent

    def log_density(theta):
        x = theta @ axes
        rest = (x[1:] - bend * (x[0] ** 2 - 1)) / width
        return -0.5 * x[0] ** 2 - 0.5 * jnp.sum(rest**2)

    def draw(rng, size):
        x = rng.standard_normal((size, dim))
        x[:, 1:] = width * x[:, 1:] + bend * (x[:, :1] ** 2 - 1)
        return x @ axes.T

    return traced(log_density, rng.standard_normal(dim), draw)


def sinusoid(rng: np.random.Generator) -> Case:
    """A ridge along a sine."""
    dim = int(rng.integers(2, 7))
    height, pace = rng.uniform(0.5, 2.5), rng.uniform(0.7, 2.5)
    width = rng.uniform(0.2, 0.8)

    def log_density(x):
        ridge = (x[1] - height * jnp.sin(pace * x[0])) / width
        return -0.5 * (x[0] ** 2 + ridge**2 + jnp.sum(x[2:] ** 2))

    def draw(rng, size):
        x = rng.standard_normal((size, dim))
        x[:, 1] = width * x[:, 1] + height * np.sin(pace * x[:, 0])
        return x

    return traced(log_density, rng.standard_normal(dim), draw)


def two_regimes(rng: np.random.Generator) -> Case:
    """Standard deviations that change from one level to another along a coordinate."""
    dim = int(rng.integers(2, 9))
    change, sharpness = rng.uniform(0.3, 1.5), rng.uniform(1.0, 6.0)

    def log_density(x):
        log_sd = change * jnp.tanh(sharpness * x[0])
        rest = -0.5 * jnp.sum((x[1:] * jnp.exp(-log_sd)) ** 2)
        return -0.5 * x[0] ** 2 + rest - (dim - 1) * log_sd

    def draw(rng, size):
        x = rng.standard_normal((size, dim))
        x[:, 1:] *= np.exp(change * np.tanh(sharpness * x[:, :1]))
        return x

    return traced(log_density, 0.5 * rng.standard_normal(dim), draw)


def funnel(rng: np.random.Generator) -> Case:
    """A log variance with an sd of 0.5 to 2.5, and 2 to 9 variables of it."""
    dim, spread = int(rng.integers(3, 11)), rng.uniform(0.5, 2.5)

    def log_density(x):
        rest = jnp.sum(norm.logpdf(x[1:], 0, jnp.exp(x[0] / 2)))
        return norm.logpdf(x[0], 0, spread) + rest

    def draw(rng, size):
        x = rng.standard_normal((size, dim))
        x[:, 0] *= spread
        x[:, 1:] *= np.exp(x[:, :1] / 2)
        return x

    # The sd of an average of squares is too large to compare sds of some draws.
    return traced(log_density, rng.standard_normal(dim), draw, by_rank=spread > 1)


def ring(rng: np.random.Generator) -> Case:
    """A ring in the plane, or most of one, with up to three normal variables."""
    dim = int(rng.integers(2, 6))
    radius, width = rng.uniform(1.5, 4.0), rng.uniform(0.2, 0.8)
    pull = rng.uniform(0, 2)

    def log_density(x):
        distance = jnp.sqrt(x[0] ** 2 + x[1] ** 2 + 1e-12)
        shell = -0.5 * ((distance - radius) / width) ** 2 - jnp.log(distance)
        return shell + pull * x[0] / distance - 0.5 * jnp.sum(x[2:] ** 2)

    def draw(rng, size):
        angle = rng.vonmises(0.0, pull, size)
        distance = radius + width * rng.standard_normal(size)
        low = distance <= 0
        while low.any():
            distance[low] = radius + width * rng.standard_normal(low.sum())
            low = distance <= 0
        plane = distance[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
        return np.concatenate([plane, rng.standard_normal((size, dim - 2))], axis=1)

    return traced(log_density, np.append([radius, 0.1], np.zeros(dim - 2)), draw)

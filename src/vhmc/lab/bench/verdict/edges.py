"""Heavy tails, walls of zero density, and parameters with bounds."""

import jax.numpy as jnp
import numpy as np
import scipy.stats
from jax.scipy.special import betaln
from jax.scipy.stats import gamma

from vhmc.lab.bench.verdict.case import Case, rotation, traced
from vhmc.numerics.constraints import positive, simplex, unit_interval


def heavy_tails(rng: np.random.Generator) -> Case:
    """Student t, jointly or in each coordinate, of 1 to 8 degrees of freedom."""
    dim, freedom = int(rng.integers(2, 9)), float(rng.choice([1.0, 1.5, 5.0, 8.0]))
    is_joint, scales = rng.uniform() < 0.5, 10 ** rng.uniform(-0.5, 0.5, dim)

    def log_density(x):
        squares = (x / scales) ** 2 / freedom
        if is_joint:
            return -0.5 * (freedom + dim) * jnp.log1p(jnp.sum(squares))
        return -0.5 * (freedom + 1) * jnp.sum(jnp.log1p(squares))

    def draw(rng, size):
        shared = rng.chisquare(freedom, (size, 1 if is_joint else dim)) / freedom
        return scales * rng.standard_normal((size, dim)) / np.sqrt(shared)

    start = scales * rng.standard_normal(dim)
    return traced(log_density, start, draw, by_rank=freedom <= 2)


def box(rng: np.random.Generator) -> Case:
    """Independent normals of which walls cut off some of one or both sides."""
    dim = int(rng.integers(2, 9))
    is_cut = np.arange(dim) < rng.integers(1, dim + 1)
    low = np.where(is_cut, rng.uniform(-2, 0.5, dim), -np.inf)
    is_closed = is_cut & (rng.uniform(size=dim) < 0.5)
    high = np.where(is_closed, low + rng.uniform(1, 4, dim), np.inf)
    start = np.where(is_cut, low + 0.4, 0.0)

    def log_density(x):
        is_inside = jnp.all((x > low) & (x < high))
        return jnp.where(is_inside, -0.5 * jnp.sum(x**2), -jnp.inf)

    def draw(rng, size):
        return scipy.stats.truncnorm.rvs(low, high, size=(size, dim), random_state=rng)

    return traced(log_density, start, draw)


def half_space(rng: np.random.Generator) -> Case:
    """A correlated normal on one side of a plane, which keeps 20 to 90 % of it."""
    dim = int(rng.integers(2, 9))
    axes = rotation(rng, dim) * np.geomspace(1, rng.uniform(1, 5), dim)
    normal = rotation(rng, dim)[0]  # of the plane, in white coordinates
    edge = scipy.stats.norm.ppf(1 - rng.uniform(0.2, 0.9))
    whiten = np.linalg.inv(axes)
    start = axes @ (normal * (edge + 1))

    def log_density(x):
        z = whiten @ x
        return jnp.where(z @ normal > edge, -0.5 * jnp.sum(z**2), -jnp.inf)

    def draw(rng, size):
        z = rng.standard_normal((size, dim))
        beyond = scipy.stats.truncnorm.rvs(edge, np.inf, size=size, random_state=rng)
        z += np.outer(beyond - z @ normal, normal)
        return z @ axes.T

    return traced(log_density, start, draw)


def positive_values(rng: np.random.Generator) -> Case:
    """Gamma and log-normal parameters, positive, and shares between zero and one."""
    shapes, sigma = 10 ** rng.uniform(-0.3, 1.2, 3), rng.uniform(0.2, 0.7)
    a, b = 10 ** rng.uniform(-0.2, 1, 2)

    def log_density(p):
        rates = jnp.sum(gamma.logpdf(p["rate"], shapes))
        log_size = jnp.log(p["size"])
        size = -0.5 * (log_size / sigma) ** 2 - log_size
        share = (a - 1) * jnp.log(p["share"]) + (b - 1) * jnp.log1p(-p["share"])
        return rates + size + share - betaln(a, b)

    def draw(rng, size):
        rates = rng.gamma(shapes, size=(size, 3))
        sizes = np.exp(sigma * rng.standard_normal((size, 1)))
        return np.concatenate([rates, sizes, rng.beta(a, b, (size, 1))], axis=1)

    init = {"rate": np.ones(3), "size": 1.0, "share": 0.5}
    supports = {"rate": positive, "size": positive, "share": unit_interval}
    return traced(log_density, init, draw, supports)


def shares(rng: np.random.Generator) -> Case:
    """Probabilities of 3 to 8 kinds, of which some are hardly ever seen."""
    size = int(rng.integers(3, 9))
    counts = np.round(10 ** rng.uniform(-0.5, 2, size)) + 0.5

    def log_density(p):
        return jnp.sum((counts - 1) * jnp.log(p["share"]))

    def draw(rng, number):
        return rng.dirichlet(counts, number)

    init = {"share": np.full(size, 1 / size)}
    return traced(log_density, init, draw, {"share": simplex})

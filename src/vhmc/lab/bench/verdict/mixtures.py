"""Mixtures of normals: separate modes, spikes in slabs, contaminated normals."""

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp

from vhmc.lab.bench.verdict.case import Case, traced


def mixture(
    means: np.ndarray, sds: np.ndarray, weights: np.ndarray, start: np.ndarray
) -> Case:
    """Normals with means and sds in a row each."""
    log_weights = np.log(weights) - np.sum(np.log(sds), axis=1)

    def log_density(x):
        parts = -0.5 * jnp.sum(((x - means) / sds) ** 2, axis=1)
        return logsumexp(parts + log_weights)

    def draw(rng, size):
        which = rng.choice(len(weights), size, p=weights)
        return means[which] + sds[which] * rng.standard_normal((size, len(start)))

    return traced(log_density, start, draw)


def _direction(rng: np.random.Generator, dim: int) -> np.ndarray:
    chosen = rng.standard_normal(dim)
    return chosen / np.linalg.norm(chosen)


def _pair(rng: np.random.Generator, low: float, high: float) -> Case:
    """Two normals whose means are some sds apart."""
    dim = int(rng.integers(2, 9))
    step = rng.uniform(low, high) * _direction(rng, dim)
    sds = np.exp(0.3 * rng.standard_normal((2, dim)))
    weight = np.exp(rng.uniform(np.log(0.05), np.log(0.5)))
    means = np.stack([np.zeros(dim), step])
    start = step * rng.uniform() + rng.standard_normal(dim)
    return mixture(means, sds, np.array([1 - weight, weight]), start)


def separated(rng: np.random.Generator) -> Case:
    """Two modes 6 to 15 sds apart; the lesser has 5 to 50 % of the mass."""
    return _pair(rng, 6.0, 15.0)


def overlapping(rng: np.random.Generator) -> Case:
    """Two normals 1.5 to 4 sds apart."""
    return _pair(rng, 1.5, 4.0)


def three_modes(rng: np.random.Generator) -> Case:
    """Three normals, near or far from each other."""
    dim, distance = int(rng.integers(2, 7)), rng.uniform(2.0, 10.0)
    means = np.stack([distance * _direction(rng, dim) for _ in range(3)])
    sds = np.exp(0.3 * rng.standard_normal((3, dim)))
    weights = np.maximum(rng.dirichlet(np.full(3, 2.0)), 0.05)
    start = rng.standard_normal(dim)
    return mixture(means, sds, weights / weights.sum(), start)


def spike_and_slab(rng: np.random.Generator) -> Case:
    """Half of the mass in a slab 10 to 100 times as wide, in 3 to 20 dimensions."""
    dim, ratio = int(rng.integers(3, 21)), 10 ** rng.uniform(1, 2)
    slab_mean = ratio * rng.uniform(0, 0.5) * rng.standard_normal(dim)
    means = np.stack([np.zeros(dim), slab_mean])
    sds = np.stack([np.ones(dim), np.full(dim, ratio)])
    start = ratio * rng.uniform() * rng.standard_normal(dim)
    return mixture(means, sds, np.array([0.5, 0.5]), start)


def contaminated(rng: np.random.Generator) -> Case:
    """A normal with 3 to 20 % of one that is 2 to 5 times as wide."""
    dim, share = int(rng.integers(2, 11)), rng.uniform(0.03, 0.2)
    sds = np.stack([np.ones(dim), np.full(dim, rng.uniform(2, 5))])
    weights = np.array([1 - share, share])
    return mixture(np.zeros((2, dim)), sds, weights, rng.standard_normal(dim))


def needle(rng: np.random.Generator) -> Case:
    """A normal, and a needle in or beside it with 10 to 40 % of the mass."""
    dim, share = int(rng.integers(2, 7)), rng.uniform(0.1, 0.4)
    place = rng.uniform(0, 4) * _direction(rng, dim)
    sds = np.stack([np.ones(dim), np.full(dim, 10 ** rng.uniform(-2, -1))])
    means = np.stack([np.zeros(dim), place])
    return mixture(means, sds, np.array([1 - share, share]), rng.standard_normal(dim))

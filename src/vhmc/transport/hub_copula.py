"""Map many hubs to a normal: their marginals and rank correlations by Gibbs sampling.

A grid over more than four hubs has too many points. The marginal energy of hubs takes
no evaluation of the model, so it is sampled: each hub in turn from its conditional
density on a grid, for many particles at once. The mean of these conditional densities
is the hub's marginal density, smooth into the tails.
"""

import numpy as np
from scipy.special import logsumexp, ndtri_exp

from vhmc.transport.hub_grid import extended, log_cumulative
from vhmc.transport.hub_map import NUM_KNOTS, REACH, HubMap, hub_map
from vhmc.transport.marginal import AbstractMarginal

NUM_PARTICLES = 40
GRID_SIZE = 48
"""Places along a hub at which its conditional density is tabulated."""
NUM_SWEEPS = 8
NUM_DROPPED = 3
"""Sweeps before the particles count."""
TAIL = 1e-6
"""Mass of a marginal beyond the ends of the next grid."""
START = 0.15
"""Spread of the particles at first, over half the range of the hubs."""
MAX_CORRELATION = 0.95


def fit_hub_copula(
    rng: np.random.Generator, energy: AbstractMarginal, hubs: np.ndarray, dim: int
) -> HubMap:
    """The layer under which the marginals of the hubs, and their ranks, are normal."""
    low, high = energy.low.copy(), energy.high.copy()
    middle, half = (low + high) / 2, (high - low) / 2
    noise = np.clip(rng.standard_normal((NUM_PARTICLES, len(low))), -2, 2)
    particles = middle + START * half * noise
    kept: list[np.ndarray] = []
    densities: list[list[np.ndarray]] = [[] for _ in low]
    axes = [np.linspace(a, b, GRID_SIZE) for a, b in zip(low, high, strict=True)]
    for sweep in range(NUM_SWEEPS):
        for hub, axis in enumerate(axes):
            rows = _conditionals(energy, particles, hub, axis)
            particles[:, hub] = _drawn(rng, axis, rows)
            if sweep >= NUM_DROPPED:
                densities[hub].append(rows)
        if sweep >= NUM_DROPPED:
            kept.append(particles.copy())
        elif sweep:
            # Around the mass, so that the grids resolve it.
            rows_of = [
                _conditionals(energy, particles, j, axes[j]) for j in range(len(axes))
            ]
            axes = [_zoomed(*pair) for pair in zip(axes, rows_of, strict=True)]
    knots = np.linspace(-REACH, REACH, NUM_KNOTS)
    draws = np.concatenate(kept)
    quantiles, scores = [], []
    for hub, axis in enumerate(axes):
        rows = np.concatenate(densities[hub])
        fine, log_cdf, log_sf = log_cumulative(axis, logsumexp(rows, axis=0))
        score = np.where(log_cdf < log_sf, ndtri_exp(log_cdf), -ndtri_exp(log_sf))
        quantiles.append(extended(knots, score, fine))
        scores.append(np.interp(draws[:, hub], fine, score))
    return hub_map(hubs, dim, np.array(quantiles), _correlation(np.array(scores)))


def _conditionals(
    energy: AbstractMarginal, particles: np.ndarray, hub: int, axis: np.ndarray
) -> np.ndarray:
    """Log density of a hub given the others, one particle a row."""
    points = np.repeat(particles[:, None], len(axis), axis=1)
    points[:, :, hub] = axis
    density = -energy(points.reshape(-1, particles.shape[1]))
    density = density.reshape(len(particles), len(axis))
    return density - logsumexp(density, axis=1, keepdims=True)


def _drawn(rng: np.random.Generator, axis: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """A place for each row, uniform within its cell of the grid."""
    total = np.cumsum(np.exp(rows), axis=1)
    place = rng.uniform(size=(len(rows), 1)) * total[:, -1:]
    cell = np.argmax(total >= place, axis=1)
    offset = rng.uniform(-0.5, 0.5, len(rows)) * (axis[1] - axis[0])
    return np.clip(axis[cell] + offset, axis[0], axis[-1])


def _zoomed(axis: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """A grid around the mass of the mean of the rows, with a margin."""
    mass = np.exp(logsumexp(rows, axis=0) - np.log(len(rows)))
    below = int(np.searchsorted(np.cumsum(mass), TAIL))
    above = len(axis) - 1 - int(np.searchsorted(np.cumsum(mass[::-1]), TAIL))
    margin = (1 + (above - below) / 8) * (axis[1] - axis[0])
    ends = axis[below] - margin, axis[above] + margin
    return np.linspace(max(ends[0], axis[0]), min(ends[1], axis[-1]), GRID_SIZE)


def _correlation(scores: np.ndarray) -> np.ndarray:
    """Of the hubs' normal scores, shrunk where it is no more than noise."""
    size = scores.shape[1]
    correlation = np.clip(np.corrcoef(scores), -MAX_CORRELATION, MAX_CORRELATION)
    noise = 1 / np.sqrt(size)
    correlation = np.where(np.abs(correlation) < 2 * noise, 0.0, correlation)
    np.fill_diagonal(correlation, 1.0)
    values, vectors = np.linalg.eigh(correlation)
    return (vectors * np.maximum(values, 0.05)) @ vectors.T

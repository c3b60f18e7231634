"""Integrate the hubs' marginal density on a grid, and map it to a normal one."""

import numpy as np
from scipy.interpolate import PchipInterpolator
from scipy.special import logsumexp, ndtri_exp

from vhmc.transport.hub_map import NUM_KNOTS, REACH, HubMap, hub_map
from vhmc.transport.marginal import AbstractMarginal

GRID_SIZES = {1: 400, 2: 56, 3: 26, 4: 14}
"""Points of the grid along each hub, by the number of hubs."""
NUM_ZOOMS = 4
"""Grids in a row, each around the mass that the one before has found."""
CLOSE = 0.9
"""Width of the next grid, over that of the last, from which there is no next one."""
TEMPERATURES = 4.0 ** np.arange(12)
LEAST_WIDTH = 0.02
"""Least width of a hub's marginal, over that of the evaluated hubs."""
TAIL = 1e-5
"""Mass of a marginal beyond the ends of the grid."""
END = 0.3
"""Normal scores from which the tangent beyond the grid is taken."""


def fit_hub_map(energy: AbstractMarginal, hubs: np.ndarray, dim: int) -> HubMap:
    """The layer under which the marginals of the hubs, and their ranks, are normal."""
    axes, density = _on_grid(energy)
    cumulative = [
        log_cumulative(axes[j], _marginal(density, j)) for j in range(len(axes))
    ]
    knots = np.linspace(-REACH, REACH, NUM_KNOTS)
    quantiles, scores = [], []
    for axis, log_cdf, log_sf in cumulative:
        score = np.where(log_cdf < log_sf, ndtri_exp(log_cdf), -ndtri_exp(log_sf))
        quantiles.append(extended(knots, score, axis))
        scores.append(score)
    correlation = _correlation(axes, density, cumulative, scores)
    return hub_map(hubs, dim, np.array(quantiles), correlation)


def _on_grid(energy: AbstractMarginal) -> tuple[list[np.ndarray], np.ndarray]:
    """Axes of a grid that holds the mass, and the log density on it.

    A density that is far narrower than the evaluated hubs comes from a bad fit: it is
    tempered until it is not.
    """
    for temperature in TEMPERATURES:
        axes, density = _zoomed(energy, temperature)
        widths = np.array(
            [_width(axis, _marginal(density, j)) for j, axis in enumerate(axes)]
        )
        if np.all(widths >= LEAST_WIDTH * energy.scale):
            break
    return axes, density


def _zoomed(
    energy: AbstractMarginal, temperature: float
) -> tuple[list[np.ndarray], np.ndarray]:
    low, high = energy.low, energy.high
    size = GRID_SIZES[len(low)]
    for _ in range(NUM_ZOOMS):
        axes, density = _tabulated(energy, temperature, low, high)
        ends = []
        for j, axis in enumerate(axes):
            mass = np.exp(_marginal(density, j))
            below = np.searchsorted(np.cumsum(mass), TAIL)
            above = size - 1 - np.searchsorted(np.cumsum(mass[::-1]), TAIL)
            margin = (1 + (above - below) / 12) * (axis[1] - axis[0])
            ends.append((axis[below] - margin, axis[above] + margin))
        before = low, high
        low, high = np.array(ends).T.clip(energy.low, energy.high)
        if np.all(high - low > CLOSE * (before[1] - before[0])):
            break
    return axes, density


def _tabulated(
    energy: AbstractMarginal, temperature: float, low: np.ndarray, high: np.ndarray
) -> tuple[list[np.ndarray], np.ndarray]:
    """Axes of a grid, and the log density on it."""
    size = GRID_SIZES[len(low)]
    axes = [np.linspace(a, b, size) for a, b in zip(low, high, strict=True)]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    density = -energy(grid.reshape(-1, len(low))) / temperature
    density = np.nan_to_num(density, nan=-1e100, posinf=-1e100, neginf=-1e100)
    density = density.reshape(grid.shape[:-1])
    return axes, density - logsumexp(density)


def _width(axis: np.ndarray, log_density: np.ndarray) -> float:
    mass = np.exp(log_density - logsumexp(log_density))
    return float(np.sqrt(mass @ (axis - mass @ axis) ** 2))


def _marginal(density: np.ndarray, j: int) -> np.ndarray:
    others = tuple(k for k in range(density.ndim) if k != j)
    return logsumexp(density, axis=others) if others else density


def log_cumulative(
    axis: np.ndarray, log_density: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A finer axis with the logs of the mass on either side."""
    floor = log_density.max() - 300
    fine = np.linspace(axis[0], axis[-1], 2001)
    smooth = PchipInterpolator(axis, np.maximum(log_density, floor))(fine)
    total = logsumexp(smooth)
    log_cdf = np.logaddexp.accumulate(smooth - total)
    log_sf = np.logaddexp.accumulate((smooth - total)[::-1])[::-1]
    # Half of each cell's own mass to either side.
    half = smooth - total - np.log(2)
    log_cdf, log_sf = (
        rows + np.log1p(-np.exp(np.minimum(half - rows, -1e-12)))
        for rows in (log_cdf, log_sf)
    )
    return fine, log_cdf, log_sf


def extended(knots: np.ndarray, score: np.ndarray, axis: np.ndarray) -> np.ndarray:
    """Values at the knots, along straight lines beyond the first and last score."""
    is_inside = np.isfinite(score) & (np.abs(score) < REACH)
    score, axis = score[is_inside], axis[is_inside]
    values = np.interp(knots, score, axis)
    for is_end, end, inner in (
        (knots < score[0], 0, score[0] + END),
        (knots > score[-1], -1, score[-1] - END),
    ):
        slope = (np.interp(inner, score, axis) - axis[end]) / (inner - score[end])
        values[is_end] = axis[end] + slope * (knots[is_end] - score[end])
    return values


def _correlation(axes, density, cumulative, scores) -> np.ndarray:
    """Of the hubs' normal scores."""
    num_hubs = len(axes)
    correlation = np.eye(num_hubs)
    for j in range(num_hubs):
        for k in range(j):
            others = tuple(i for i in range(num_hubs) if i not in (j, k))
            joint = np.exp(logsumexp(density, axis=others) if others else density)
            one, other = (
                np.interp(axes[i], cumulative[i][0], scores[i]) for i in (k, j)
            )
            correlation[j, k] = correlation[k, j] = np.clip(
                one @ joint @ other, -0.95, 0.95
            )
    values, vectors = np.linalg.eigh(correlation)
    return (vectors * np.maximum(values, 0.02)) @ vectors.T

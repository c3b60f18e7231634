r"""Fit the hubs' marginal: regress their energy, then integrate it on a grid.

With the rest standardised, $U - V(c, r)$ is a function $e(c)$ of the hubs, plus what
the conditional layer has left. Energies and hub gradients determine it by least
squares. The marginal density of one to four hubs is then known on a grid.
"""

import numpy as np
from scipy.interpolate import PchipInterpolator
from scipy.special import expit, logsumexp, ndtri_exp

from vhmc.transport.conditional import AbstractConditional
from vhmc.transport.conditional_fit import Scores, location
from vhmc.transport.hub_map import NUM_KNOTS, REACH, HubMap, hub_map
from vhmc.transport.influence import MAX_ERROR
from vhmc.transport.marginal import AbstractMarginal

GRID_SIZES = {1: 400, 2: 56, 3: 26, 4: 14}
"""Points of the grid along each hub, by the number of hubs."""
NUM_ZOOMS = 4
"""Grids in a row, each around the mass that the one before has found."""
TEMPERATURES = 4.0 ** np.arange(12)
LEAST_WIDTH = 0.02
"""Least width of a hub's marginal, over that of the evaluated hubs."""
TAIL = 1e-5
"""Mass of a marginal beyond the ends of the grid."""
END = 0.3
"""Normal scores from which the tangent beyond the grid is taken."""
WIDER = 1.5
"""Width of the normal that the network is added to, over that of the points."""
NODES = {1: 80, 2: 200, 3: 300, 4: 400}
"""Nodes of the network, by the number of hubs."""
NODE_SCALES = 0.7, 5.0
MARGIN = 0.7
"""How far beyond the evaluated hubs the energy is used, in their sds."""
OPEN = 0.02
"""Density at an end of this range, over the largest, at which it is extended."""
MAX_EXTENSIONS = 2
"""Steps of one sd by which it is extended, at most."""
HELD_OUT = 0.3
USABLE = 0.01
"""Weight, over the largest one, of points that are used."""
REWEIGHTINGS = 3
RIDGES = 10.0 ** np.arange(-9.0, 0.0)
SLACK = 1.05
"""The largest ridge within this factor of the least held-out error is taken."""


class HubEnergy(AbstractMarginal):
    r"""The marginal energy of hubs, $\frac12 |y|^2$ plus a network of softplus nodes.

    $y$ are standardised hubs. Nodes grow at most linearly, so the density can be
    normalised for any weights.

    hubs: their coordinates.
    scores: points with their gradients and weights.
    level, slopes: marginal energies at the points and their gradients, with noise.
    low, high: how far beyond the evaluated hubs it may be used.
    """

    def __init__(
        self,
        rng: np.random.Generator,
        hubs: np.ndarray,
        scores: Scores,
        level: np.ndarray,
        slopes: np.ndarray,
    ):
        is_usable = scores.weight > USABLE * scores.weight.max()
        is_usable &= np.isfinite(level + slopes.sum(axis=1))
        scores, level, slopes = (
            scores.where(is_usable),
            level[is_usable],
            slopes[is_usable],
        )
        c = scores.theta[:, hubs]
        center, scale = location(scores)
        self.center, self.scale = center[hubs], WIDER * scale[hubs]
        self.low = c.min(axis=0) - MARGIN * self.scale
        self.high = c.max(axis=0) + MARGIN * self.scale
        y = self._standardised(c)
        level, slopes = level - 0.5 * np.sum(y**2, axis=1), slopes * self.scale - y
        self._directions, self._offsets = _nodes(rng, y, scores.weight)
        self._weights = self._fitted(rng, y, level, slopes, scores.weight)

    def __call__(self, c: np.ndarray) -> np.ndarray:
        """Energies of hubs, the rest integrated out, one point a row."""
        y = self._standardised(c)
        outputs = np.logaddexp(y @ self._directions.T + self._offsets, 0.0)
        return 0.5 * np.sum(y**2, axis=1) + outputs @ self._weights

    def _standardised(self, c: np.ndarray) -> np.ndarray:
        return (c - self.center) / self.scale

    def _fitted(
        self,
        rng: np.random.Generator,
        y: np.ndarray,
        level: np.ndarray,
        slopes: np.ndarray,
        weight: np.ndarray,
    ) -> np.ndarray:
        """Weights by least squares; energies and each hub's gradient have own noise."""
        inputs = y @ self._directions.T + self._offsets
        active = expit(inputs)
        blocks = [np.logaddexp(inputs, 0.0)]
        blocks += [active * column for column in self._directions.T]
        rights = [level, *slopes.T]
        # The constant of the energies goes with their weighted mean.
        is_out = rng.uniform(size=len(y)) < HELD_OUT
        noise = np.array([_spread(right, weight) for right in rights])
        trusts = [weight / size**2 for size in noise]
        for _ in range(REWEIGHTINGS):
            kept = _normal(blocks, rights, [trust * ~is_out for trust in trusts])
            trials = []
            for ridge in RIDGES:
                weights, constant = kept.solve(ridge)
                rests = _rests(blocks, rights, weights, constant)
                error = sum(
                    trust[is_out] @ np.minimum(rest[is_out] ** 2, MAX_ERROR * s**2)
                    for trust, rest, s in zip(trusts, rests, noise, strict=True)
                )
                trials.append((error, ridge))
            least = min((error for error, _ in trials if error == error), default=0.0)
            ridge = max(
                (ridge for error, ridge in trials if error <= SLACK * least),
                default=RIDGES[-1],
            )
            weights, constant = _normal(blocks, rights, trusts).solve(ridge)
            rests = _rests(blocks, rights, weights, constant)
            noise = np.array([_spread(rest, weight) for rest in rests])
            trusts = [
                weight / size**2 / (1 + (rest / size) ** 2 / MAX_ERROR)
                for rest, size in zip(rests, noise, strict=True)
            ]
        # Points that are too few or too wild leave the normal alone.
        return np.nan_to_num(weights, nan=0.0, posinf=0.0, neginf=0.0)


def marginal_data(
    layer: AbstractConditional, scores: Scores, energy: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Energies and gradients along the hubs, with the rest standardised."""
    x = layer.inverse(scores.theta)
    grad = layer.pull_back(x, scores.grad) - layer.log_det_grad(x)
    square = np.sum(x[:, layer.rest] ** 2, axis=1)
    return energy - 0.5 * square - layer.log_det(x), grad[:, layer.hubs]


def _nodes(
    rng: np.random.Generator, y: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Directions and offsets of softplus nodes whose hinges are among the points."""
    num_hubs = y.shape[1]
    number = NODES[num_hubs]
    directions = rng.standard_normal((number, num_hubs))
    along = rng.integers(0, num_hubs, number)
    is_single = rng.uniform(size=number) < 0.5
    directions[is_single] = np.eye(num_hubs)[along[is_single]]
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    low, high = np.log(NODE_SCALES)
    directions *= np.exp(rng.uniform(low, high, (number, 1)))
    at = y[rng.choice(len(y), number, p=weight / weight.sum())]
    spots = 1.2 * at + 0.3 * rng.standard_normal(at.shape)
    return directions, -np.sum(directions * spots, axis=1)


def _spread(rows: np.ndarray, weight: np.ndarray) -> float:
    """Robust weighted standard deviation about the median."""
    order = np.argsort(rows)
    total = np.cumsum(weight[order]) / weight.sum()
    low, high = (rows[order[np.searchsorted(total, q)]] for q in (0.16, 0.84))
    return 0.5 * float(high - low) + 1e-4


class _Normal:
    """Normal equations, decomposed once for all ridges.

    mean, constant: what the outputs and the energies were centred by.
    """

    def __init__(
        self, matrix: np.ndarray, right: np.ndarray, mean: np.ndarray, constant: float
    ):
        self._values, self._vectors = np.linalg.eigh(matrix)
        self._along = self._vectors.T @ right
        self._mean, self._constant = mean, constant

    def solve(self, ridge: float) -> tuple[np.ndarray, float]:
        """Weights, and the constant of the energies."""
        values = np.maximum(self._values, 0.0) + ridge * self._values.mean()
        weights = self._vectors @ (self._along / values)
        return weights, float(self._constant - self._mean @ weights)


def _normal(
    blocks: list[np.ndarray], rights: list[np.ndarray], trusts: list[np.ndarray]
) -> _Normal:
    outputs, level, trust = blocks[0], rights[0], trusts[0]
    probability = trust / max(trust.sum(), 1e-300)
    mean, constant = probability @ outputs, float(probability @ level)
    blocks = [outputs - mean, *blocks[1:]]
    rights = [level - constant, *rights[1:]]
    matrix = sum(b.T @ (b * t[:, None]) for b, t in zip(blocks, trusts, strict=True))
    right = sum(b.T @ (t * r) for b, t, r in zip(blocks, trusts, rights, strict=True))
    return _Normal(matrix, right, mean, constant)


def _rests(
    blocks: list[np.ndarray],
    rights: list[np.ndarray],
    weights: np.ndarray,
    constant: float,
) -> list[np.ndarray]:
    rests = [r - b @ weights for b, r in zip(blocks, rights, strict=True)]
    return [rests[0] - constant, *rests[1:]]


def fit_hub_map(energy: AbstractMarginal, hubs: np.ndarray, dim: int) -> HubMap:
    """The layer under which the marginals of the hubs, and their ranks, are normal."""
    axes, density = _on_grid(energy)
    cumulative = [
        _log_cumulative(axes[j], _marginal(density, j)) for j in range(len(axes))
    ]
    knots = np.linspace(-REACH, REACH, NUM_KNOTS)
    quantiles, scores = [], []
    for axis, log_cdf, log_sf in cumulative:
        score = np.where(log_cdf < log_sf, ndtri_exp(log_cdf), -ndtri_exp(log_sf))
        quantiles.append(_extended(knots, score, axis))
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
    first, last = _extended_range(energy, temperature)
    low, high = first, last
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
        low, high = np.array(ends).T.clip(first, last)
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


def _extended_range(
    energy: AbstractMarginal, temperature: float
) -> tuple[np.ndarray, np.ndarray]:
    """The range of the hubs, farther where the density has not fallen at its end.

    There the mass goes on beyond the evaluated hubs, as it does down a neck: draws must
    get there to be evaluated.
    """
    low, high = energy.low.copy(), energy.high.copy()
    for _ in range(MAX_EXTENSIONS):
        axes, density = _tabulated(energy, temperature, low, high)
        marginals = [_marginal(density, j) for j in range(len(axes))]
        ends = np.array([(m[0] - m.max(), m[-1] - m.max()) for m in marginals])
        is_open = ends > np.log(OPEN)
        if not is_open.any():
            break
        low = low - np.where(is_open[:, 0], energy.scale, 0.0)
        high = high + np.where(is_open[:, 1], energy.scale, 0.0)
    return low, high


def _width(axis: np.ndarray, log_density: np.ndarray) -> float:
    mass = np.exp(log_density - logsumexp(log_density))
    return float(np.sqrt(mass @ (axis - mass @ axis) ** 2))


def _marginal(density: np.ndarray, j: int) -> np.ndarray:
    others = tuple(k for k in range(density.ndim) if k != j)
    return logsumexp(density, axis=others) if others else density


def _log_cumulative(
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


def _extended(knots: np.ndarray, score: np.ndarray, axis: np.ndarray) -> np.ndarray:
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

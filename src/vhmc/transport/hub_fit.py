r"""Fit the hubs' marginal energy to energies and gradients along the hubs.

With the rest standardised, $U - V(c, r)$ is a function $e(c)$ of the hubs, plus what
the conditional layer has left. Energies and hub gradients determine it by least
squares.
"""

import numpy as np
from scipy.special import expit

from vhmc.transport.conditional import AbstractConditional
from vhmc.transport.conditional_fit import Scores, location
from vhmc.transport.influence import MAX_ERROR
from vhmc.transport.latent_gaussian import LatentGaussian
from vhmc.transport.marginal import AbstractMarginal

WIDER = 1.5
"""Width of the normal that the network is added to, over that of the points."""
NODES = {1: 80, 2: 200, 3: 300, 4: 400}
"""Nodes of the network, by the number of hubs."""
NODE_SCALES = 0.7, 5.0
BEYOND = 10.0
"""How far beyond the evaluated hubs the energy is used, in units of their scale."""
LEAST_SLOPE = 1.0
"""Of the energy beyond the evaluated hubs, outwards and in the same unit."""
SECANT = 0.3
"""Step over which slope and curvature are taken there, in the same unit."""
HELD_OUT = 0.3
USABLE = 0.01
"""Weight, over the largest one, of points that are used."""
REWEIGHTINGS = 3
RIDGES = 10.0 ** np.arange(-9.0, 0.0)
SLACK = 1.05
"""The largest ridge within this factor of the least held-out error is taken."""


class HubEnergy(AbstractMarginal):
    r"""The marginal energy of hubs, $\frac12 |y|^2$ plus a network of softplus nodes.

    $y$ are standardised hubs. Beyond the evaluated ones the energy goes on with its
    slope and curvature there, along a straight line down a neck, and upwards in any
    case: the density can be normalised for any weights.

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
        self._first, self._last = c.min(axis=0), c.max(axis=0)
        self.low = self._first - BEYOND * self.scale
        self.high = self._last + BEYOND * self.scale
        y = self._standardised(c)
        level, slopes = level - 0.5 * np.sum(y**2, axis=1), slopes * self.scale - y
        self._directions, self._offsets = _nodes(rng, y, scores.weight)
        self._weights = self._fitted(rng, y, level, slopes, scores.weight)

    def __call__(self, c: np.ndarray) -> np.ndarray:
        """Energies of hubs, the rest integrated out, one point a row."""
        inside = c.clip(self._first, self._last)
        energy = self._between(inside)
        at_end = energy.copy()
        for j, scale in enumerate(self.scale):
            beyond = (c[:, j] - inside[:, j]) / scale
            rows = np.flatnonzero(beyond)
            if not len(rows):
                continue
            beyond, near, far = beyond[rows], inside[rows], inside[rows]
            near[:, j] -= np.sign(beyond) * SECANT * scale
            far[:, j] -= np.sign(beyond) * 2 * SECANT * scale
            first = at_end[rows] - self._between(near)
            second = at_end[rows] - self._between(far)
            curvature = np.maximum(2 * first - second, 0.0) / SECANT**2
            slope = first / SECANT + 0.5 * SECANT * curvature
            slope = np.maximum(slope, LEAST_SLOPE)
            energy[rows] += slope * np.abs(beyond) + 0.5 * curvature * beyond**2
        return energy

    def _between(self, c: np.ndarray) -> np.ndarray:
        """Energies of hubs among the evaluated ones."""
        y = self._standardised(c)
        inputs = y @ self._directions.T + self._offsets
        # As logaddexp(inputs, 0), which takes several times as long.
        outputs = np.maximum(inputs, 0.0) + np.log1p(np.exp(-np.abs(inputs)))
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
    layer: AbstractConditional | LatentGaussian, scores: Scores, energy: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Energies and gradients along the hubs, with the rest standardised."""
    x, grad, log_det = layer.pulled_back(scores.theta, scores.grad)
    square = np.sum(x[:, layer.rest] ** 2, axis=1)
    return energy - 0.5 * square - log_det, grad[:, layer.hubs]


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

r"""The conditional layer: all variables but a few hubs are Gaussian given the hubs.

Variables are eliminated one after the other along the model's graph. With $c$ the hubs
and $r_a$ the neighbours of $r_k$ that are left, $r_k$ has the conditional energy

$$\tfrac12 d_k(c) r_k^2 + r_k \Bigl(\sum_a e_{ka}(c) r_a - h_k(c)\Bigr).$$

The layer is $r_k = (h_k - \sum_a e_{ka} r_a) / d_k + x_k / \sqrt{d_k}$; hubs stay. Two
families say how $d, e, h$ depend on the hubs: `by_level` and `joint`.
"""

import abc
from typing import NamedTuple

import numpy as np

from vhmc._types import Shared
from vhmc.structure.elimination import Level
from vhmc.transport.layer import AbstractLayer, PulledBack

STEP = 1e-30
"""Imaginary step of derivatives, which have no cancellation and so no error."""


class Moments(NamedTuple):
    """The conditionals of one level, one point a column.

    precision: of shape (q, n).
    gain: factors of the parents, of shape (q, p, n).
    mean: the mean where all parents are zero, of shape (q, n).
    """

    precision: Shared
    gain: Shared
    mean: Shared


class AbstractConditional(AbstractLayer):
    r"""A layer that leaves hubs alone and standardises all else given the hubs.

    hubs, rest: coordinates of each.
    center, scale: of the rest, in whose standardised coordinates the rest is done.
    levels: of the elimination of the rest.
    """

    hubs: Shared
    rest: Shared
    center: Shared
    scale: Shared
    levels: tuple[Level, ...]

    @abc.abstractmethod
    def _moments(self, c: Shared) -> list[Moments]:
        """Conditionals of all levels at hubs, one point a row."""

    def forward(self, x: np.ndarray) -> np.ndarray:
        c, z = x[:, self.hubs], x[:, self.rest].T
        r = self._rest(self._moments(c), z)
        return self._joined(c, self.center + self.scale * r.T)

    def inverse(self, theta: Shared) -> Shared:
        return self._standardised(theta, self._moments(theta[:, self.hubs]))

    def inverse_and_log_det(self, theta: Shared) -> tuple[Shared, Shared]:
        moments = self._moments(theta[:, self.hubs])
        return self._standardised(theta, moments), self._log_det(moments)

    def pulled_back(self, theta: np.ndarray, grad: np.ndarray) -> PulledBack:
        moments = self._moments(theta[:, self.hubs])
        x = self._standardised(theta, moments)
        by_energy, by_volume = self._pulled(x, grad, moments)
        by_energy[:, self.hubs] -= by_volume
        return PulledBack(x, by_energy, self._log_det(moments))

    def pull_back(self, x: np.ndarray, grad: np.ndarray) -> np.ndarray:
        return self._pulled(x, grad, self._moments(x[:, self.hubs]))[0]

    def push_forward(self, x: np.ndarray, grad: np.ndarray) -> np.ndarray:
        c, z = x[:, self.hubs], x[:, self.rest].T
        by_rest = grad[:, self.rest].T.copy()
        all_moments = self._moments(c)
        levels = list(zip(self.levels, all_moments, strict=True))
        for level, moments in levels:
            by_rest[level.nodes] *= np.sqrt(moments.precision)
        own = by_rest.copy()
        for level, moments in levels:
            _add_to_parents(by_rest, level, moments, own[level.nodes])
        by_hub = grad[:, self.hubs] - self._along_hubs(c, z, by_rest, all_moments)[0]
        return self._joined(by_hub, by_rest.T / self.scale)

    def log_det(self, x: Shared) -> Shared:
        return self._log_det(self._moments(x[:, self.hubs]))

    def log_det_grad(self, x: np.ndarray) -> np.ndarray:
        c, z = x[:, self.hubs], x[:, self.rest].T
        grad = np.zeros_like(x)
        moments = self._moments(c)
        grad[:, self.hubs] = self._along_hubs(c, z, np.zeros_like(z), moments)[1]
        return grad

    @property
    def linear_part(self) -> np.ndarray:
        """The scales: what the parameters are to the latent coordinates, roughly."""
        sizes = np.ones(len(self.hubs) + len(self.rest))
        sizes[self.rest] = self.scale
        return np.diag(sizes)

    @property
    def hub_list(self) -> list[int]:
        return [int(hub) for hub in self.hubs]

    @property
    def cliques(self) -> tuple[np.ndarray, ...]:
        """Of each variable with its parents and the hubs, and of the hubs alone."""
        size, found = len(self.rest), [self.hubs]
        for level in self.levels:
            for node, parents in zip(level.nodes, level.parents, strict=True):
                near = self.rest[parents[parents < size]]
                found.append(np.concatenate([[self.rest[node]], near, self.hubs]))
        return tuple(found)

    def _standardised(self, theta: Shared, all_moments: list[Moments]) -> Shared:
        """Latent points, one a row."""
        xp = theta.__array_namespace__()
        r = ((theta[:, self.rest] - self.center) / self.scale).T
        padded = xp.concatenate([r, 0 * r[:1]])
        parts = [
            standardised(padded, level, moments)
            for level, moments in zip(self.levels, all_moments, strict=True)
        ]
        order = xp.concatenate([level.nodes for level in self.levels])
        z = xp.concatenate(parts)[xp.argsort(order)].T
        return self._joined(theta[:, self.hubs], z)

    def _pulled(
        self, x: np.ndarray, grad: np.ndarray, all_moments: list[Moments]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Gradients in latent coordinates, and of the log determinant along hubs."""
        c, z = x[:, self.hubs], x[:, self.rest].T
        by_rest = (grad[:, self.rest] * self.scale).T
        by_hub, by_volume = self._along_hubs(c, z, by_rest, all_moments)
        by_rest = by_rest.copy()
        for level, moments in zip(self.levels, all_moments, strict=True):
            pull_back_level(by_rest, level, moments)
        return self._joined(grad[:, self.hubs] + by_hub, by_rest.T), by_volume

    def _rest(self, all_moments: list[Moments], z: np.ndarray) -> np.ndarray:
        """The standardised rest, one point a column."""
        return self._padded_rest(all_moments, z)[:-1]

    def _padded_rest(self, all_moments: list[Moments], z: np.ndarray) -> np.ndarray:
        """The same with a row of zeros."""
        r = np.zeros((len(z) + 1, z.shape[1]))
        levels = list(zip(self.levels, all_moments, strict=True))
        for level, (precision, gain, mean) in reversed(levels):
            shift = np.sum(gain * r[level.parents], axis=1)
            r[level.nodes] = mean - shift + z[level.nodes] / np.sqrt(precision)
        return r

    def _log_det(self, all_moments: list[Moments]) -> Shared:
        xp = self.scale.__array_namespace__()
        total = xp.sum(xp.log(self.scale))
        for level in all_moments:
            total = total - 0.5 * xp.sum(xp.log(level.precision), axis=0)
        return total

    def _along_hubs(
        self,
        c: np.ndarray,
        z: np.ndarray,
        by_rest: np.ndarray,
        all_moments: list[Moments],
    ) -> tuple[np.ndarray, np.ndarray]:
        """Derivatives along the hubs, latent coordinates of the rest fixed.

        Of the rest, multiplied with its gradient, and of the log determinant; one
        point a row.
        """
        energy, volume = np.zeros((2, *c.shape))
        r = self._padded_rest(all_moments, z)
        for hub in range(c.shape[1]):
            slopes = self._slopes(c, hub, all_moments)
            slope = np.zeros_like(r)
            parts = list(zip(self.levels, all_moments, slopes, strict=True))
            for level, (precision, gain, _), (
                by_precision,
                by_gain,
                by_mean,
            ) in reversed(parts):
                parents = level.parents
                shift = np.sum(by_gain * r[parents] + gain * slope[parents], axis=1)
                widening = by_precision / precision
                width = z[level.nodes] / np.sqrt(precision)
                slope[level.nodes] = by_mean - shift - 0.5 * width * widening
                volume[:, hub] -= 0.5 * np.sum(widening, axis=0)
            energy[:, hub] = np.sum(slope[:-1] * by_rest, axis=0)
        return energy, volume

    def _slopes(
        self, c: np.ndarray, hub: int, all_moments: list[Moments]
    ) -> list[Moments]:
        """Derivatives of the conditionals along one hub, given these themselves."""
        shifted = c.astype(complex)
        shifted[:, hub] += 1j * STEP
        return [
            Moments(*(np.imag(part) / STEP for part in level))
            for level in self._moments(shifted)
        ]

    def _joined(self, hubs: Shared, rest: Shared) -> Shared:
        xp = hubs.__array_namespace__()
        order = xp.concatenate([self.hubs, self.rest])
        return xp.concatenate([hubs, rest], axis=1)[:, xp.argsort(order)]


def standardised(padded: Shared, level: Level, moments: Moments) -> Shared:
    """Latent coordinates of a level from the rest, padded with a row of zeros."""
    xp = padded.__array_namespace__()
    precision, gain, mean = moments
    shift = xp.sum(gain * padded[level.parents], axis=1)
    return xp.sqrt(precision) * (padded[level.nodes] + shift - mean)


def pull_back_level(by_rest: np.ndarray, level: Level, moments: Moments) -> None:
    """Gradients in the latent coordinates of a level, in place, one variable a row."""
    own = by_rest[level.nodes]
    _add_to_parents(by_rest, level, moments, -own)
    by_rest[level.nodes] = own / np.sqrt(moments.precision)


def _add_to_parents(
    rows: np.ndarray, level: Level, moments: Moments, own: np.ndarray
) -> None:
    """Add gains times rows of the nodes to the rows of their parents, in place."""
    if len(level.updated):
        update = moments.gain[level.child, level.slot] * own[level.child]
        rows[level.updated] += np.add.reduceat(update, level.starts, axis=0)

r"""The layer in whose coordinates a density that ends at walls has no ends.

Outside is $\theta$. The coordinates $y = M \theta$ have walls at constant values: rows
of $M$ are unit vectors, or the normals of walls that are oblique. Each $y_k$ by itself
is a function of the latent $z_k$. Between two walls $a$ and $b$, and above one,

$$y = a + (b - a) \Phi(z), \qquad y = a + s \, \Phi^{-1}\bigl((1 + \Phi(z)) / 2\bigr),$$

so that a standard normal $z$ is a uniform $y$, and a normal one that is cut in half.
Far above the wall the latter is the identity, but for units: a wall without mass
nearby changes nothing.
"""

from types import ModuleType
from typing import Any

import jax.scipy.special
import numpy as np
import scipy.special

from vhmc._types import Shared
from vhmc.transport.layer import AbstractLayer

FAR = 5.0
"""Widths from the wall beyond which distances are found by Newton's method."""
NUM_NEWTON = 4
"""Its steps."""


class Walls(AbstractLayer):
    r"""A layer whose outer side has walls, and whose latent side has none.

    matrix: $M$.
    low, high: where $y_k$ begins and ends, infinite where it does not.
    scale: $s$, as wide as the density next to a wall.
    """

    matrix: Shared
    low: Shared
    high: Shared
    scale: Shared

    def forward(self, x: np.ndarray) -> np.ndarray:
        r"""Rows $M^{-1} y(z)$."""
        return np.linalg.solve(self.matrix, self._outward(x).T).T

    def inverse(self, theta: Shared) -> Shared:
        r"""Rows $z(M \theta)$; not a number beyond a wall."""
        return self._inward(theta @ self.matrix.T)

    def pull_back(self, x: np.ndarray, grad: np.ndarray) -> np.ndarray:
        by_distance = np.linalg.solve(self.matrix.T, grad.T).T
        return by_distance * np.exp(self._log_slopes(x, self._outward(x)))

    def push_forward(self, x: np.ndarray, grad: np.ndarray) -> np.ndarray:
        slopes = np.exp(self._log_slopes(x, self._outward(x)))
        return (grad / slopes) @ self.matrix

    def log_det(self, x: Shared) -> Shared:
        r"""Sums of $\log (dy_k / dz_k)$, less $\log |\det M|$."""
        return self._log_dets(x, self._outward(x))

    def inverse_and_log_det(self, theta: Shared) -> tuple[Shared, Shared]:
        y = theta @ self.matrix.T
        x = self._inward(y)
        return x, self._log_dets(x, y)

    def log_det_grad(self, x: np.ndarray) -> np.ndarray:
        """Derivatives of the logarithms of the slopes, each of its own coordinate."""
        y = self._outward(x)
        one, other = self._one_sided
        length = np.where(one, y - self.low, self.high - y) / self.scale
        sign = np.where(one, 1.0, -1.0)
        slope = np.exp(self._log_slopes(x, y)) / self.scale
        bent = np.where(one | other, sign * length * slope - x, 0.0)
        return np.where(self._is_between, -x, bent)

    @property
    def linear_part(self) -> np.ndarray:
        r"""That of the map at $z = 0$."""
        x = np.zeros((1, len(self.matrix)))
        slopes = np.exp(self._log_slopes(x, self._outward(x)))[0]
        return np.linalg.inv(self.matrix) * slopes

    @property
    def is_reparameterisation(self) -> bool:
        return True

    @property
    def places(self) -> list[int]:
        """Coordinates that end at a wall."""
        has_end = np.isfinite(self.low) | np.isfinite(self.high)
        return [int(place) for place in np.flatnonzero(has_end)]

    @property
    def _is_between(self) -> Any:
        xp = self.low.__array_namespace__()
        return xp.isfinite(self.low) & xp.isfinite(self.high)

    @property
    def _one_sided(self) -> tuple[Any, Any]:
        """Where there is a wall below alone, and where there is one above alone."""
        xp = self.low.__array_namespace__()
        below, above = xp.isfinite(self.low), xp.isfinite(self.high)
        return below & ~above, above & ~below

    def _ends(self) -> tuple[Any, Any]:
        """Both ends, zero and one where there are none."""
        xp = self.low.__array_namespace__()
        is_between = self._is_between
        return xp.where(is_between, self.low, 0.0), xp.where(is_between, self.high, 1.0)

    def _outward(self, x: Shared) -> Shared:
        xp, special = _modules(x)
        (one, other), (low, high) = self._one_sided, self._ends()
        up = xp.where(one, self.low, 0.0) + self.scale * half_normal(x)
        down = xp.where(other, self.high, 0.0) - self.scale * half_normal(-x)
        lower, upper = special.ndtr(x), special.ndtr(-x)
        width = high - low
        between = xp.where(x < 0, low + width * lower, high - width * upper)
        free = xp.where(one, up, xp.where(other, down, x))
        return xp.where(self._is_between, between, free)

    def _inward(self, y: Shared) -> Shared:
        xp, special = _modules(y)
        (one, other), (low, high) = self._one_sided, self._ends()
        above = (y - xp.where(one, self.low, 0.0)) / self.scale
        below = (xp.where(other, self.high, 0.0) - y) / self.scale
        # Derivatives of what is not taken must be finite as well.
        inner = xp.where(self._is_between, y, 0.5)
        lower, upper = (inner - low) / (high - low), (high - inner) / (high - low)
        nearer = special.ndtri(xp.where(lower < upper, lower, upper))
        between = xp.where(lower < upper, nearer, -nearer)
        one_sided = whole_normal(xp.where(one, above, xp.where(other, below, 1.0)))
        free = xp.where(one, one_sided, xp.where(other, -one_sided, y))
        return xp.where(self._is_between, between, free)

    def _log_slopes(self, x: Shared, y: Shared) -> Shared:
        xp, _ = _modules(x)
        (one, other), (low, high) = self._one_sided, self._ends()
        above = (y - xp.where(one, self.low, 0.0)) / self.scale
        below = (xp.where(other, self.high, 0.0) - y) / self.scale
        length = xp.where(one, above, below)
        bent = xp.log(self.scale / 2) + (length - x) * (length + x) / 2
        between = xp.log(high - low) - x**2 / 2 - np.log(2 * np.pi) / 2
        return xp.where(self._is_between, between, xp.where(one | other, bent, 0.0))

    def _log_dets(self, x: Shared, y: Shared) -> Shared:
        xp, _ = _modules(x)
        log_volume = xp.linalg.slogdet(self.matrix)[1]
        return xp.sum(self._log_slopes(x, y), axis=1) - log_volume


def half_normal(z: Shared) -> Shared:
    r"""The distance $u$ with $2 \Phi(u) - 1 = \Phi(z)$."""
    xp, special = _modules(z)
    near = np.sqrt(2) * special.erfinv(special.ndtr(xp.minimum(z, 0.0)))
    middle = -special.ndtri(special.ndtr(-xp.clip(z, 0.0, FAR)) / 2)
    far = xp.maximum(z, FAR)
    goal = special.log_ndtr(-far) - np.log(2)
    u = _newton(far + np.log(2) / far, goal)
    return xp.where(z < 0, near, xp.where(z < FAR, middle, u))


def whole_normal(u: Shared) -> Shared:
    r"""The inverse of `half_normal`; not a number for distances that are negative."""
    xp, special = _modules(u)
    near = special.ndtri(special.erf(xp.minimum(u, 1.0) / np.sqrt(2)))
    middle = -special.ndtri(special.erfc(xp.clip(u, 1.0, FAR) / np.sqrt(2)))
    far = xp.maximum(u, FAR)
    goal = special.log_ndtr(-far) + np.log(2)
    z = _newton(far - np.log(2) / far, goal)
    return xp.where(u < 1, near, xp.where(u < FAR, middle, z))


def _newton(start: Shared, goal: Shared) -> Shared:
    r"""The $t$ with $\log \Phi(-t)$ equal to a goal, from close by."""
    xp, special = _modules(start)
    t = start
    for _ in range(NUM_NEWTON):
        tail = special.log_ndtr(-t)
        slope = -xp.exp(-(t**2) / 2 - tail) / np.sqrt(2 * np.pi)
        t = t - (tail - goal) / slope
    return t


def _modules(array: Shared) -> tuple[Any, ModuleType]:
    """The array's namespace, and the module of its special functions."""
    is_host = isinstance(array, np.ndarray)
    special = scipy.special if is_host else jax.scipy.special
    return array.__array_namespace__(), special

r"""Curved coordinates: one direction bends and scales all others.

With $c$ the coordinate along the first axis and $r$ those along the others, $x$ goes to

$$c, \quad r_j e^{a_j c} + b_j (c^2 - 1).$$

Scales that depend on $c$ undo a funnel, shifts that do undo a banana. Inverse and
volume are explicit. Far from the data $c^2$ goes on along its tangent, and the scales
stay as they are.
"""

from typing import NamedTuple

import numpy as np

from vhmc._types import Shared

MOST = 6.0
"""Bound of $a_j c$."""
FAR = 6.0
"""Where $c^2$ ends and its tangent begins."""


class Bend(NamedTuple):
    r"""A curved layer of a chart.

    axes: orthogonal matrix; its first column is the direction of $c$.
    rate: $a$, one fewer than dimensions.
    shift: $b$.
    """

    axes: Shared
    rate: Shared
    shift: Shared

    def to_x(self, theta: Shared) -> Shared:
        """Straightened points, one a row."""
        c, r = self._split(theta)
        xp = theta.__array_namespace__()
        straight = (r - self.shift * curve(c)) * xp.exp(-self._exponent(c))
        return xp.concatenate([c, straight], axis=1) @ self.axes.T

    def to_theta(self, x: np.ndarray) -> np.ndarray:
        """Bent points, one a row."""
        c, r = self._split(x)
        bent = r * np.exp(self._exponent(c)) + self.shift * curve(c)
        return np.concatenate([c, bent], axis=1) @ self.axes.T

    def grad_to_x(self, x: np.ndarray, grad: np.ndarray) -> np.ndarray:
        r"""Gradients in the straightened points: rows $J^\top \nabla U$."""
        scale, slope = self._jacobian(x)
        first, others = self._split(grad)
        first = first + np.sum(others * slope, axis=1, keepdims=True)
        return np.concatenate([first, others * scale], axis=1) @ self.axes.T

    def grad_to_theta(self, x: np.ndarray, grad: np.ndarray) -> np.ndarray:
        """Back again."""
        scale, slope = self._jacobian(x)
        first, others = self._split(grad)
        others = others / scale
        first = first - np.sum(others * slope, axis=1, keepdims=True)
        return np.concatenate([first, others], axis=1) @ self.axes.T

    def log_volumes(self, x: Shared) -> Shared:
        r"""Rows' $\log |\det J|$."""
        return self._exponent(self._split(x)[0]).sum(axis=1)

    def log_volume_grads(self, x: np.ndarray) -> np.ndarray:
        """Gradients of it, one a row."""
        total = np.sum(self._rates(self._split(x)[0]), axis=1, keepdims=True)
        return total * self.axes[:, 0]

    def _split(self, rows: Shared) -> tuple[Shared, Shared]:
        turned = rows @ self.axes
        return turned[:, :1], turned[:, 1:]

    def _exponent(self, c: Shared) -> Shared:
        return (c * self.rate).clip(-MOST, MOST)

    def _rates(self, c: np.ndarray) -> np.ndarray:
        return np.where(np.abs(c * self.rate) < MOST, self.rate, 0.0)

    def _jacobian(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Scales of all coordinates but the first, and their slopes along it."""
        c, r = self._split(x)
        scale = np.exp(self._exponent(c))
        return scale, self._rates(c) * scale * r + 2 * c.clip(-FAR, FAR) * self.shift


def curve(c: Shared) -> Shared:
    """The square less one, with tangents for tails."""
    near = c.clip(-FAR, FAR)
    return (2 * c - near) * near - 1

r"""The coupling layer: one direction shifts and scales all others.

With $c$ the coordinate along the first axis and $r$ those along the others, $x$ goes to

$$c, \quad r_j e^{a_j c} + b_j (c^2 - 1).$$

Scales that depend on $c$ straighten a funnel, shifts that do straighten a banana.
Inverse and determinant are explicit. Far from the data $c^2$ continues along its
tangent, and the scales stay constant.
"""

import numpy as np

from vhmc._types import Shared
from vhmc.transport.layer import AbstractLayer

MAX_EXPONENT = 6.0
"""Bound of $a_j c$."""
LINEAR_BEYOND = 6.0
"""Where $c^2$ ends and its tangent begins."""


class Coupling(AbstractLayer):
    r"""A layer in which one coordinate shifts and scales the others.

    axes: orthogonal matrix; its first column is the direction of $c$.
    rate: $a$, one fewer than dimensions.
    shift: $b$.
    """

    axes: Shared
    rate: Shared
    shift: Shared

    def forward(self, x: np.ndarray) -> np.ndarray:
        """Rows with the other coordinates scaled and shifted."""
        c, r = self._split(x)
        bent = r * np.exp(self._exponent(c)) + self.shift * parabola(c)
        return np.concatenate([c, bent], axis=1) @ self.axes.T

    def inverse(self, theta: Shared) -> Shared:
        """Rows with shifts and scales undone."""
        c, r = self._split(theta)
        xp = theta.__array_namespace__()
        straight = (r - self.shift * parabola(c)) * xp.exp(-self._exponent(c))
        return xp.concatenate([c, straight], axis=1) @ self.axes.T

    def pull_back(self, x: np.ndarray, grad: np.ndarray) -> np.ndarray:
        scale, slope = self._jacobian(x)
        first, others = self._split(grad)
        first = first + np.sum(others * slope, axis=1, keepdims=True)
        return np.concatenate([first, others * scale], axis=1) @ self.axes.T

    def push_forward(self, x: np.ndarray, grad: np.ndarray) -> np.ndarray:
        scale, slope = self._jacobian(x)
        first, others = self._split(grad)
        others = others / scale
        first = first - np.sum(others * slope, axis=1, keepdims=True)
        return np.concatenate([first, others], axis=1) @ self.axes.T

    def log_det(self, x: Shared) -> Shared:
        r"""Sums of the exponents $a_j c$."""
        return self._exponent(self._split(x)[0]).sum(axis=1)

    def log_det_grad(self, x: np.ndarray) -> np.ndarray:
        """Along the first axis alone."""
        total = np.sum(self._rates(self._split(x)[0]), axis=1, keepdims=True)
        return total * self.axes[:, 0]

    @property
    def linear_part(self) -> np.ndarray:
        """The identity."""
        return np.eye(len(self.axes))

    def _split(self, rows: Shared) -> tuple[Shared, Shared]:
        turned = rows @ self.axes
        return turned[:, :1], turned[:, 1:]

    def _exponent(self, c: Shared) -> Shared:
        return (c * self.rate).clip(-MAX_EXPONENT, MAX_EXPONENT)

    def _rates(self, c: np.ndarray) -> np.ndarray:
        return np.where(np.abs(c * self.rate) < MAX_EXPONENT, self.rate, 0.0)

    def _jacobian(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Scales of all coordinates but the first, and their slopes along it."""
        c, r = self._split(x)
        scale = np.exp(self._exponent(c))
        return scale, self._rates(c) * scale * r + parabola_slope(c) * self.shift


def parabola(c: Shared) -> Shared:
    """The square less one, with tangents for tails."""
    near = c.clip(-LINEAR_BEYOND, LINEAR_BEYOND)
    return (2 * c - near) * near - 1


def parabola_slope(c: Shared) -> Shared:
    """Derivative of `parabola`."""
    return 2 * c.clip(-LINEAR_BEYOND, LINEAR_BEYOND)

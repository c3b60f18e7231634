r"""The skewed layer: every coordinate by itself, with a skewness and a tail weight.

With $K_k = e^{\kappa_k}$ coordinate $z_k$ goes to

$$\theta_k = c_k + s_k \sinh\bigl(K_k (\operatorname{asinh} z_k + \epsilon_k)\bigr),$$

a sinh-arcsinh distribution (Jones and Pewsey 2009). An affine layer inside correlates
the coordinates. A coefficient that the data bound from one side only has such a
marginal, and no Gaussian.
"""

import numpy as np

from vhmc._types import Shared
from vhmc.transport.layer import AbstractLayer

FARTHEST = 40.0
r"""Bound of the argument of $\sinh$, beyond which numbers would overflow."""


class Skewed(AbstractLayer):
    r"""The layer of all coordinates.

    center, scale: $c$ and $s$.
    skewness: $\epsilon$.
    log_tail: $\kappa$.
    """

    center: Shared
    scale: Shared
    skewness: Shared
    log_tail: Shared

    def forward(self, x: np.ndarray) -> np.ndarray:
        return self.center + self.scale * np.sinh(self._argument(x))

    def inverse(self, theta: Shared) -> Shared:
        xp = theta.__array_namespace__()
        argument = xp.arcsinh((theta - self.center) / self.scale)
        return xp.sinh(argument * xp.exp(-self.log_tail) - self.skewness)

    def pull_back(self, x: np.ndarray, grad: np.ndarray) -> np.ndarray:
        return grad * np.exp(self._log_slope(x))

    def push_forward(self, x: np.ndarray, grad: np.ndarray) -> np.ndarray:
        return grad * np.exp(-self._log_slope(x))

    def log_det(self, x: Shared) -> Shared:
        return self._log_slope(x).sum(axis=1)

    def log_det_grad(self, x: np.ndarray) -> np.ndarray:
        tail = np.exp(self.log_tail)
        rising = tail * np.tanh(self._argument(x)) / np.sqrt(1 + x**2)
        return rising - x / (1 + x**2)

    @property
    def is_skewed(self) -> bool:
        return True

    @property
    def linear_part(self) -> np.ndarray:
        """Slopes where the latent coordinates are zero."""
        return np.diag(np.exp(self._log_slope(np.zeros((1, len(self.center)))))[0])

    def _argument(self, x: Shared) -> Shared:
        xp = x.__array_namespace__()
        argument = xp.exp(self.log_tail) * (xp.arcsinh(x) + self.skewness)
        return argument.clip(-FARTHEST, FARTHEST)

    def _log_slope(self, x: Shared) -> Shared:
        """Logarithms of the derivatives, coordinate by coordinate."""
        xp = x.__array_namespace__()
        argument = xp.abs(self._argument(x))
        # The logarithm of cosh, without its overflow.
        log_cosh = argument + xp.log1p(xp.exp(-2 * argument)) - np.log(2.0)
        level = xp.log(self.scale) + self.log_tail
        return level + log_cosh - 0.5 * xp.log1p(x**2)

r"""The trained network $z(x) = \sum_j v_j \sigma(u_j \cdot \sigma(W x + b) + c_j)$.

A family of residuals whose hidden layers are trained, with $\sigma$ the softplus. Its
growth is at most linear: $\sigma$ is, and linear growth of linear growth is linear.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from scipy.special import expit

from vhmc._types import Scalar, Shared, Vector
from vhmc.numerics.bases import softplus
from vhmc.surrogate.residual import AbstractResidual


class Layers(NamedTuple):
    """The two hidden layers.

    directions, offsets: $W$ and $b$; a column of zeros is an input that is not used.
    mixing, shifts: rows $u_j$ and $c$.
    """

    directions: Shared
    offsets: Shared
    mixing: Shared
    shifts: Shared

    def hidden(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Inputs of the first and of the second layer, one row a point."""
        first = x @ self.directions.T + self.offsets
        second = np.logaddexp(first, 0.0) @ self.mixing.T + self.shifts
        return first, second

    def jacobians(self, x: np.ndarray) -> np.ndarray:
        """Gradients of the second layer's outputs, shape (point, node, dim)."""
        first, second = self.hidden(x)
        inner = self.mixing @ (expit(first)[:, :, None] * self.directions)
        return inner * expit(second)[:, :, None]

    @property
    def is_used(self) -> np.ndarray:
        """Inputs with weights that are not zero."""
        return np.any(np.asarray(self.directions) != 0, axis=0)


class TrainedNetwork(AbstractResidual):
    """Trained layers with output weights; one shape for all fits of a run."""

    layers: Layers
    weights: Shared

    def __call__(self, x: Vector) -> Scalar:
        directions, offsets, mixing, shifts = self.layers
        return self.weights @ softplus(
            mixing @ softplus(directions @ x + offsets) + shifts
        )

    def energies(self, x: np.ndarray) -> np.ndarray:
        return np.logaddexp(self.layers.hidden(x)[1], 0.0) @ self.weights

    def grads(self, x: np.ndarray) -> np.ndarray:
        first, second = self.layers.hidden(x)
        back = (expit(second) * self.weights) @ self.layers.mixing
        return (expit(first) * back) @ self.layers.directions

    def on_device(self) -> "TrainedNetwork":
        layers = Layers(*(jnp.asarray(leaf) for leaf in self.layers))
        return TrainedNetwork(layers, jnp.asarray(self.weights))

    @property
    def slope(self) -> float:
        r"""A bound of $|\nabla z|$, hence of the growth."""
        directions = np.linalg.norm(self.layers.directions, axis=1)
        return float(np.abs(self.weights) @ np.abs(self.layers.mixing) @ directions)

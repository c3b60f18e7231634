r"""The random-feature network $z(x) = \sum_i v_i \log(1 + e^{w_i \cdot x + b_i})$.

One family of residuals, on the host and for JAX. Softplus nodes grow at most linearly.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import numpy as np
from scipy.special import expit

from vhmc._types import Scalar, Shared, Vector
from vhmc.numerics.bases import softplus
from vhmc.surrogate.residual import AbstractResidual


class Nodes(NamedTuple):
    """Softplus nodes: one direction a row, and offsets."""

    directions: Shared
    offsets: Shared

    def outputs(self, x: np.ndarray) -> np.ndarray:
        """Node outputs, one row a point."""
        return np.logaddexp(x @ self.directions.T + self.offsets, 0.0)

    def slopes(self, x: np.ndarray) -> np.ndarray:
        """Derivatives of the activations, one row a point."""
        return expit(x @ self.directions.T + self.offsets)

    def outputs_and_slopes(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Both, from one product and one exponential."""
        inputs = x @ self.directions.T + self.offsets
        small = np.exp(-np.abs(inputs))
        outputs = np.maximum(inputs, 0.0) + np.log1p(small)
        return outputs, np.where(inputs < 0, small, 1.0) / (1.0 + small)

    def normal_terms(
        self, x: np.ndarray, grad: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Normal equations of the gradients at points, one row a point."""
        return self.hadamard_terms(self.slopes(x), grad)

    def hadamard_terms(
        self, slopes: np.ndarray, grad: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        r"""Normal equations of the gradients in Hadamard form, $O(n s^2 + n d s)$.

        With $S_{ni} = \sigma'(w_i \cdot x_n + b_i)$ they are

        $$G = (S^\top S) \circ (W W^\top), \quad
          h_i = \sum_n S_{ni} \, (w_i \cdot g_n),$$

        a factor $d$ below the sum of outer products of the Jacobians.

        slopes, grad: $S$ and $g$, one row a point, both times the root of its weight.
        """
        matrix = slopes.T @ slopes
        matrix *= self.directions @ self.directions.T
        return matrix, np.sum(slopes * (grad @ self.directions.T), axis=0)

    def first(self, number: int) -> "Nodes":
        """The first `number` nodes."""
        return Nodes(self.directions[:number], self.offsets[:number])

    def scaled(self, factor: float) -> "Nodes":
        """Narrower or wider hinges, in the same places."""
        return Nodes(factor * self.directions, factor * self.offsets)


class Network(AbstractResidual):
    """Nodes with output weights.

    nodes: those that are used.
    weights: one a node.
    capacity: number of nodes of the compiled programs; the rest has weight zero.
    """

    nodes: Nodes
    weights: Shared
    capacity: int = eqx.field(static=True)

    def __call__(self, x: Vector) -> Scalar:
        directions, offsets = self.nodes
        return self.weights @ softplus(directions @ x + offsets)

    def energies(self, x: np.ndarray) -> np.ndarray:
        return self.nodes.outputs(x) @ self.weights

    def grads(self, x: np.ndarray) -> np.ndarray:
        return (self.nodes.slopes(x) * self.weights) @ self.nodes.directions

    def on_device(self) -> "Network":
        """All nodes as JAX's arrays: one shape, so programs are compiled once."""
        missing = self.capacity - len(self.weights)
        directions, offsets, weights = (
            jax.device_put(np.pad(rows, [(0, missing)] + [(0, 0)] * (rows.ndim - 1)))
            for rows in (*self.nodes, self.weights)
        )
        return Network(Nodes(directions, offsets), weights, self.capacity)

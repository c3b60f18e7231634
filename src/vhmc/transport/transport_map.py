"""The transport map: layers to coordinates where the posterior is about normal."""

import functools

import equinox as eqx
import numpy as np

from vhmc._types import Shared
from vhmc.transport.layer import AbstractLayer, PulledBack


class TransportMap(eqx.Module):
    r"""Layers between the unconstrained space $\theta$ and latent coordinates $x$.

    layers: outermost first; the output of each is the input of the one before it.
    """

    layers: tuple[AbstractLayer, ...]

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return self.layers[0].dim

    def forward(self, x: np.ndarray) -> np.ndarray:
        """Points of the unconstrained space, one a row."""
        for layer in reversed(self.layers):
            x = layer.forward(x)
        return x

    def inverse(self, theta: Shared) -> Shared:
        """Latent points, one a row."""
        for layer in self.layers:
            theta = layer.inverse(theta)
        return theta

    def inverse_and_log_det(self, theta: Shared) -> tuple[Shared, Shared]:
        """Latent points, and the log determinants of the map there."""
        log_det: Shared = 0.0
        for layer in self.layers:
            theta, added = layer.inverse_and_log_det(theta)
            log_det = log_det + added
        return theta, log_det

    def pull_back(
        self, theta: np.ndarray, grad: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Latent points, and gradients of the energy of the density that they have.

        grad: gradients of the energy at `theta`. The energy in latent coordinates is
            less by the log determinant.
        """
        return self.pulled_back(theta, grad)[:2]

    def pulled_back(self, theta: np.ndarray, grad: np.ndarray) -> PulledBack:
        """The same, and the log determinants of the map there."""
        x, log_det = theta, np.zeros(len(theta))
        for layer in self.layers:
            x, grad, added = layer.pulled_back(x, grad)
            log_det = log_det + added
        return PulledBack(x, grad, log_det)

    def push_forward(self, x: np.ndarray, grad: np.ndarray) -> np.ndarray:
        """Differences of latent gradients as differences in the unconstrained space."""
        for layer in reversed(self.layers):
            grad = layer.push_forward(x, grad)
            x = layer.forward(x)
        return grad

    def then(self, layer: AbstractLayer) -> "TransportMap":
        """The map with one layer more on the latent side."""
        return TransportMap((*self.layers[:-1], *self.layers[-1].then(layer)))

    @property
    def is_skewed(self) -> bool:
        """Whether the map has a layer of skewed marginals."""
        return any(layer.is_skewed for layer in self.layers)

    @property
    def hubs(self) -> list[int]:
        """Coordinates on which the conditionals of all others depend."""
        return self._fitted[0].hub_list if self._fitted else []

    @property
    def cliques(self) -> tuple[np.ndarray, ...] | None:
        """Sets of latent coordinates that interact; None if all of them may."""
        parts = [layer.cliques for layer in self._fitted]
        known = [part for part in parts if part is not None]
        return known[0] if known and len(known) == len(parts) else None

    @property
    def _fitted(self) -> list[AbstractLayer]:
        """The layers inside of a reparameterisation."""
        return [layer for layer in self.layers if not layer.is_reparameterisation]

    @property
    def directions(self) -> np.ndarray:
        """Latent unit vectors along which single parameters grow, one a row.

        From the layers' linear parts: they say where to look and need not be exact.
        """
        factor = functools.reduce(
            np.matmul, [layer.linear_part for layer in self.layers]
        )
        return factor / np.linalg.norm(factor, axis=1, keepdims=True)

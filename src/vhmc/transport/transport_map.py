"""Coordinates in which the posterior is about standard normal: frames and bends."""

import functools
from typing import NamedTuple

import numpy as np

from vhmc._types import Shared
from vhmc.transport.affine import Frame
from vhmc.transport.coupling import Bend


class Chart(NamedTuple):
    """Layers between the unconstrained space and coordinates `x`.

    layers: outermost first; each takes the coordinates that the one before it gives.
    """

    layers: tuple[Frame | Bend, ...]

    def to_x(self, theta: Shared) -> Shared:
        """Points in the chart's coordinates, one a row."""
        for layer in self.layers:
            theta = layer.to_x(theta)
        return theta

    def to_theta(self, x: np.ndarray) -> np.ndarray:
        """Points in the user's unconstrained space, one a row."""
        for layer in reversed(self.layers):
            x = layer.to_theta(x)
        return x

    def scores(
        self, theta: np.ndarray, grad: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Points in the chart's coordinates, and gradients of the energy there.

        That energy has the volume in it, so that it is again of a density.
        """
        x = theta
        for layer in self.layers:
            x = layer.to_x(x)
            grad = layer.grad_to_x(x, grad) - layer.log_volume_grads(x)
        return x, grad

    def grad_to_theta(self, x: np.ndarray, grad: np.ndarray) -> np.ndarray:
        """Differences of gradients, brought back to the unconstrained space."""
        for layer in reversed(self.layers):
            grad = layer.grad_to_theta(x, grad)
            x = layer.to_theta(x)
        return grad

    def locate(self, theta: Shared) -> tuple[Shared, Shared]:
        """Points in the chart's coordinates, and log volumes there."""
        log_volumes: Shared = 0.0
        for layer in self.layers:
            theta = layer.to_x(theta)
            log_volumes = log_volumes + layer.log_volumes(theta)
        return theta, log_volumes

    def then(self, layer: Frame | Bend) -> "Chart":
        """The chart with one layer more inside."""
        last = self.layers[-1]
        if isinstance(last, Frame) and isinstance(layer, Frame):
            return Chart((*self.layers[:-1], last.then(layer)))
        return Chart((*self.layers, layer))

    @property
    def first(self) -> Frame:
        """The outermost layer, which is always a frame."""
        layer = self.layers[0]
        assert isinstance(layer, Frame)
        return layer

    @property
    def directions(self) -> np.ndarray:
        """Unit vectors along which single parameters grow, one a row.

        Bends are left out: this is to know where to look, and need not be exact.
        """
        frames = [layer for layer in self.layers if isinstance(layer, Frame)]
        factor = functools.reduce(np.matmul, [frame.factor for frame in frames])
        return factor / np.linalg.norm(factor, axis=1, keepdims=True)

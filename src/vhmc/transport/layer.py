"""The abstract layer of a transport map: a bijection with a known Jacobian."""

import abc
from typing import Any, NamedTuple

import equinox as eqx
import numpy as np

from vhmc._types import Shared


class PulledBack(NamedTuple):
    """Points and gradients in latent coordinates, one point a row.

    x: latent points.
    grad: gradients there of the energy of the density that the points have.
    log_det: log determinants of the map there, by which the energies differ.
    """

    x: np.ndarray
    grad: np.ndarray
    log_det: np.ndarray


class AbstractLayer(eqx.Module):
    r"""A bijection $\theta = T(x)$ from latent to outer coordinates, one point a row.

    `inverse` and `log_det` serve the host and compiled programs: they take their
    functions from the array they are given. Everything else runs on the host. A new
    layer needs a fit in `map_fit.FAMILIES`.
    """

    @abc.abstractmethod
    def forward(self, x: np.ndarray) -> np.ndarray:
        r"""Outer points $T(x)$."""

    @abc.abstractmethod
    def inverse(self, theta: Shared) -> Shared:
        r"""Latent points $T^{-1}(\theta)$."""

    @abc.abstractmethod
    def pull_back(self, x: np.ndarray, grad: np.ndarray) -> np.ndarray:
        r"""Gradients in $x$ from those in $\theta$: rows $J^\top g$."""

    @abc.abstractmethod
    def push_forward(self, x: np.ndarray, grad: np.ndarray) -> np.ndarray:
        r"""Gradients in $\theta$ from those in $x$: rows $J^{-\top} g$."""

    @abc.abstractmethod
    def log_det(self, x: Shared) -> Shared:
        r"""Log determinants $\log |\det J|$, one a row."""

    @abc.abstractmethod
    def log_det_grad(self, x: np.ndarray) -> np.ndarray:
        r"""Gradients of $\log |\det J|$ in $x$."""

    def inverse_and_log_det(self, theta: Shared) -> tuple[Shared, Shared]:
        """Both at once, for layers that compute the same things for them."""
        x = self.inverse(theta)
        return x, self.log_det(x)

    def pulled_back(self, theta: np.ndarray, grad: np.ndarray) -> PulledBack:
        """All that a fit needs of points, at once for the same reason.

        grad: gradients of the energy at `theta`.
        """
        x = self.inverse(theta)
        inner = self.pull_back(x, grad) - self.log_det_grad(x)
        return PulledBack(x, inner, self.log_det(x))

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return len(self.linear_part)

    @property
    @abc.abstractmethod
    def linear_part(self) -> np.ndarray:
        """Square matrix that stands for the layer where its curvature is left out."""

    @property
    def hub_list(self) -> list[int]:
        """Coordinates on which the conditionals of the others depend."""
        return []

    @property
    def cliques(self) -> "tuple[np.ndarray, ...] | None":
        """Latent coordinates that interact beyond this layer; None if all may."""
        return None

    @property
    def is_skewed(self) -> bool:
        """Whether it gives every parameter a skewness of its own."""
        return False

    @property
    def is_reparameterisation(self) -> bool:
        """Whether graph, hubs and cliques are those of the coordinates inside."""
        return False

    def then(self, inner: "AbstractLayer") -> tuple["AbstractLayer", ...]:
        """Layers of the map that applies `inner` first and this one to the result."""
        return (self, inner)

    def within_affine(self, outer: Any) -> tuple["AbstractLayer", ...]:
        """Layers of the map that applies this one first, then an `Affine` layer."""
        return (outer, self)

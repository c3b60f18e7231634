r"""The residual: the energy a surrogate adds to a standard normal.

In latent coordinates the surrogate's energy is
$V(x) = \frac12 |x|^2 + z(x) + \text{guard}(x)$, with $z$ the residual. A residual that
grows at most linearly leaves $\exp(-V)$ normalisable, whatever it was fitted to.
A new family is a subclass, with a fit as in `residual_fit`.
"""

import abc

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from vhmc._types import Scalar, Shared, Vector


class AbstractResidual(eqx.Module):
    """An energy $z(x)$ in latent coordinates, on the host and in compiled programs."""

    @property
    def is_zero(self) -> bool:
        """Whether the surrogate is its transport map alone."""
        return False

    @property
    def holds_everywhere(self) -> bool:
        """Whether its form is the model's own, down to the neck of any funnel."""
        return False

    @abc.abstractmethod
    def __call__(self, x: Vector) -> Scalar:
        """Energy at one point, for JAX to trace."""

    @abc.abstractmethod
    def energies(self, x: np.ndarray) -> np.ndarray:
        """Energies on the host, one point a row."""

    @abc.abstractmethod
    def grads(self, x: np.ndarray) -> np.ndarray:
        """Gradients on the host, one point a row."""

    @abc.abstractmethod
    def on_device(self) -> "AbstractResidual":
        """The same with JAX's arrays, of shapes that stay the same from fit to fit."""


class ZeroResidual(AbstractResidual):
    """No residual: the transport map is the surrogate."""

    @property
    def is_zero(self) -> bool:
        return True

    def __call__(self, x: Vector) -> Scalar:
        return jnp.zeros(())

    def energies(self, x: np.ndarray) -> np.ndarray:
        return np.zeros(len(x))

    def grads(self, x: np.ndarray) -> np.ndarray:
        return np.zeros_like(x)

    def on_device(self) -> "ZeroResidual":
        return self


class Guard(eqx.Module):
    r"""Energy $\frac{g}{2} (|x| - R)_+^2$ outside of the ball that the fit knows.

    radius: $R$.
    curvature: $g$.
    """

    radius: Shared
    curvature: Shared

    def energy(self, length: Shared) -> Shared:
        """Energies at points of these lengths."""
        xp = length.__array_namespace__()
        return 0.5 * self.curvature * xp.maximum(length - self.radius, 0.0) ** 2

    def grads(self, x: np.ndarray) -> np.ndarray:
        """Gradients on the host, one point a row."""
        length = np.linalg.norm(x, axis=1, keepdims=True)
        beyond = np.maximum(length - self.radius, 0.0) / np.maximum(length, 1e-9)
        return self.curvature * beyond * x


class LatentPotential(eqx.Module):
    """The surrogate's energy in latent coordinates, for JAX.

    residual, guard: with JAX's arrays.
    """

    residual: AbstractResidual
    guard: Guard

    def __call__(self, x: Vector) -> Scalar:
        """Energy at `x`."""
        square = jnp.sum(x**2)
        # The root has no gradient at zero, where the guard is off anyway.
        length = jnp.sqrt(jnp.maximum(square, 1e-12))
        return 0.5 * square + self.residual(x) + self.guard.energy(length)

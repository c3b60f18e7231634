r"""The surrogate: a transport map and a residual, frozen once they are fitted."""

import functools
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from vhmc._types import Potential, Scalar, Vector
from vhmc.surrogate.moves import Pace, Segment, draw_segment, walk
from vhmc.surrogate.residual import AbstractResidual, Guard, LatentPotential
from vhmc.transport.centring import Centring
from vhmc.transport.layer import AbstractLayer
from vhmc.transport.transport_map import TransportMap
from vhmc.transport.walls import Walls


@dataclass(frozen=True)
class Surrogate:
    r"""A density $e^{-V}$ near the posterior, on the host; a fit makes a new one.

    transport: from latent coordinates to the unconstrained space.
    residual: what is added to the standard normal there.
    guard: what is added where the residual was not fitted.
    """

    transport: TransportMap
    residual: AbstractResidual
    guard: Guard

    @property
    def dim(self) -> int:
        """Number of parameters."""
        return self.transport.dim

    @property
    def is_centred(self) -> bool:
        """Whether the map is one of the model's centred form."""
        return isinstance(self.transport.layers[0], Centring)

    @property
    def has_walls(self) -> bool:
        """Whether its density ends at walls, which another posterior may not have."""
        return isinstance(self.transport.layers[0], Walls)

    @property
    def heaviest(self) -> "Surrogate":
        """Itself: a mixture of surrogates has one that is the heaviest."""
        return self

    @property
    def hubs(self) -> list[int]:
        """Coordinates on which the conditionals of all others depend."""
        return self.transport.hubs

    def inside(self) -> "Surrogate":
        """The same density of the centred form, less the layer that leads to it."""
        transport = TransportMap(self.transport.layers[1:])
        return Surrogate(transport, self.residual, self.guard)

    def outside(self, layer: AbstractLayer | None) -> "Surrogate":
        """The same density, with one layer more on the side of the parameters."""
        if layer is None:
            return self
        layers = layer, *self.transport.layers
        return Surrogate(TransportMap(layers), self.residual, self.guard)

    def energies(self, thetas: np.ndarray) -> np.ndarray:
        """Energies of unconstrained points, one a row, up to a constant."""
        x, log_det = self.transport.inverse_and_log_det(thetas)
        return self.latent_energies(x) + log_det

    def latent_energies(self, x: np.ndarray) -> np.ndarray:
        """Energies of latent points, one a row, up to the same constant."""
        length = np.linalg.norm(x, axis=1)
        residual = self.residual.energies(x)
        return 0.5 * length**2 + residual + self.guard.energy(length)

    def score_errors(self, thetas: np.ndarray, grads: np.ndarray) -> np.ndarray:
        """Gradients of the surrogate less the true ones, in latent coordinates.

        grads: of the true energy at unconstrained points, one a row.
        """
        x, grad = self.transport.pull_back(thetas, grads)
        return x + self.residual.grads(x) + self.guard.grads(x) - grad

    def by_parameter(
        self, thetas: np.ndarray, errors: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Coordinates with one for each parameter, and the score errors in them.

        The latent ones of a map along a graph are that, and have the same width
        everywhere; in a funnel's own coordinates errors at the neck would drown all
        others.

        errors: latent.
        """
        x = self.transport.inverse(thetas)
        if self.transport.cliques is not None:
            return x, errors
        return thetas, self.transport.push_forward(x, errors)

    def walk(
        self, rng: np.random.Generator, thetas: np.ndarray, pace: Pace
    ) -> np.ndarray:
        """Unconstrained ends of transitions that keep the surrogate's law."""
        x = self.latent_walk(rng, self.transport.inverse(thetas), pace)
        return self.transport.forward(x)

    def latent_walk(
        self, rng: np.random.Generator, x: np.ndarray, pace: Pace
    ) -> np.ndarray:
        """The same in latent coordinates; where one diverges, the chain stays."""
        ends = np.asarray(walk(rng, self.latent, x, pace).x)
        is_lost = ~np.isfinite(ends).all(axis=1)
        return np.where(is_lost[:, None], x, ends)

    def draw(
        self, rng: np.random.Generator, starts: np.ndarray, pace: Pace, **options: int
    ) -> Segment:
        """Latent draws of chains on the surrogate; they cost no evaluation.

        starts: latent, one a chain.
        options: of `draw_segment`.
        """
        return draw_segment(rng, self.latent, starts, pace, **options)

    @functools.cached_property
    def latent(self) -> LatentPotential:
        """The energy in latent coordinates, for JAX."""
        return LatentPotential(self.residual.on_device(), jax.device_put(self.guard))

    @property
    def log_density(self) -> "LogDensity":
        """The log density on the unconstrained space, for JAX and other samplers."""
        # `jnp.asarray` would compile a program for every shape.
        transport = jax.device_put(self.transport)
        return LogDensity(SurrogatePotential(transport, self.latent))


class SurrogatePotential(eqx.Module):
    """The surrogate's energy on the unconstrained space, for JAX."""

    transport: TransportMap
    latent: LatentPotential

    def __call__(self, theta: Vector) -> Scalar:
        """Energy at `theta`, up to a constant."""
        x, log_det = self.transport.inverse_and_log_det(theta[None])
        return self.latent(x[0]) + log_det[0]

    def on_host(self) -> Surrogate:
        """The surrogate that it was made of."""
        transport, latent = jax.tree.map(np.asarray, (self.transport, self.latent))
        return Surrogate(transport, latent.residual, latent.guard)


class LogDensity(eqx.Module):
    """The surrogate's log density on the unconstrained space, up to a constant.

    It is a pytree that JAX traces: a log density for BlackJAX as it is; NumPyro takes
    its `potential`, and samplers outside of JAX its `value_and_grad`.

    potential: minus the log density.
    """

    potential: Potential

    def __call__(self, theta: Vector) -> Scalar:
        """Log density at a point."""
        return -self.potential(theta)

    def value_and_grad(self, theta: Any) -> tuple[float, np.ndarray]:
        """Log density and gradient at a point, as NumPy's arrays."""
        value, grad = _value_and_grad(self, jnp.asarray(theta, dtype=float))
        return float(value), np.asarray(grad)


@eqx.filter_jit
def _value_and_grad(density: LogDensity, theta: Vector) -> tuple[Scalar, Vector]:
    return jax.value_and_grad(density)(theta)

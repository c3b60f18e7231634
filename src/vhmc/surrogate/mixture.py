r"""A mixture of surrogates, one for each separate mode of the posterior.

$q = \sum_k m_k e^{-V_k} / Z_k$, with masses $m_k$ that add up to one. It is a density
whether or not its parts overlap.
"""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import logsumexp, softmax

from vhmc._types import Potential, Scalar, Vector
from vhmc.surrogate.moves import Pace
from vhmc.surrogate.surrogate import LogDensity, Surrogate, SurrogatePotential
from vhmc.transport.layer import AbstractLayer


@dataclass(frozen=True)
class Mixture:
    """Surrogates of several modes, as one density.

    parts: one for each mode.
    log_masses: logarithms of the parts' masses, which add up to one.
    log_normalisers: logarithms of the integrals of the parts' densities.
    errors: standard errors of these.
    """

    parts: tuple[Surrogate, ...]
    log_masses: np.ndarray
    log_normalisers: np.ndarray
    errors: np.ndarray

    @property
    def dim(self) -> int:
        """Number of parameters."""
        return self.parts[0].dim

    @property
    def hubs(self) -> list[int]:
        """Coordinates on which those of the heaviest part depend."""
        return self.heaviest.hubs

    @property
    def heaviest(self) -> Surrogate:
        """The part that has the most mass."""
        return self.parts[int(np.argmax(self.log_masses))]

    def weighed(self, log_masses: np.ndarray) -> "Mixture":
        """The same parts with other masses."""
        return Mixture(self.parts, log_masses, self.log_normalisers, self.errors)

    def outside(self, layer: AbstractLayer | None) -> "Mixture":
        """The same density, with one layer more on the side of the parameters."""
        parts = tuple(part.outside(layer) for part in self.parts)
        return Mixture(parts, self.log_masses, self.log_normalisers, self.errors)

    def energies(self, thetas: np.ndarray) -> np.ndarray:
        """Energies of unconstrained points, one a row; of a normalised density."""
        return -logsumexp(self.log_parts(thetas), axis=1)

    def responsibilities(self, thetas: np.ndarray) -> np.ndarray:
        """Probabilities with which points come from each part, one point a row."""
        return softmax(self.log_parts(thetas), axis=1)

    def labels(self, thetas: np.ndarray) -> np.ndarray:
        """The likeliest part of every point."""
        return np.argmax(self.log_parts(thetas), axis=1)

    def score_errors(self, thetas: np.ndarray, grads: np.ndarray) -> np.ndarray:
        """Gradients of the mixture less the true ones.

        In latent coordinates of the part that each point most likely comes from.

        grads: of the true energy at unconstrained points, one a row.
        """
        share = self.responsibilities(thetas)
        errors = np.zeros_like(thetas)
        for part, weight in zip(self.parts, share.T, strict=True):
            is_near = weight > 0
            x = part.transport.inverse(thetas[is_near])
            latent = part.score_errors(thetas[is_near], grads[is_near])
            outer = part.transport.push_forward(x, latent)
            errors[is_near] += weight[is_near, None] * outer
        latent = np.zeros_like(thetas)
        for part, is_mine in self._by_label(thetas):
            transport, mine = part.transport, thetas[is_mine]
            volume = transport.pull_back(mine, np.zeros_like(mine))[1]
            latent[is_mine] = transport.pull_back(mine, errors[is_mine])[1] - volume
        return latent

    def by_parameter(
        self, thetas: np.ndarray, errors: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Coordinates with one for each parameter, and the score errors in them.

        In units of the sd of the part: the distance between modes has nothing to do
        with how well each of them is known.
        """
        at, by_parameter = np.zeros_like(thetas), np.zeros_like(thetas)
        for part, is_mine in self._by_label(thetas):
            place, error = part.by_parameter(thetas[is_mine], errors[is_mine])
            scale = np.maximum(np.std(place, axis=0), 1e-300)
            at[is_mine] = (place - np.mean(place, axis=0)) / scale
            by_parameter[is_mine] = error * scale
        return at, by_parameter

    def walk(
        self, rng: np.random.Generator, thetas: np.ndarray, pace: Pace
    ) -> np.ndarray:
        r"""Unconstrained ends of transitions that keep the mixture's law, reversibly.

        With a label $k$ drawn given $\theta$ the pair has the density
        $m_k e^{-V_k} / Z_k$. A jump keeps the latent point and changes the label: the
        latent densities are all close to a normal, so it is nearly always accepted.
        Jumps before and after the transitions within a part keep all reversible.
        """
        labels = _drawn(rng, self.responsibilities(thetas))
        x = np.zeros_like(thetas)
        for k, part in enumerate(self.parts):
            x[labels == k] = part.transport.inverse(thetas[labels == k])
        labels = self._jump(rng, labels, x)
        # All chains in every part, so that shapes do not change.
        for k, part in enumerate(self.parts):
            is_mine = labels == k
            if is_mine.any():
                moved = part.latent_walk(rng, np.where(is_mine[:, None], x, 0.0), pace)
                x[is_mine] = moved[is_mine]
        labels = self._jump(rng, labels, x)
        ends = np.zeros_like(thetas)
        for k, part in enumerate(self.parts):
            ends[labels == k] = part.transport.forward(x[labels == k])
        return ends

    @property
    def log_density(self) -> LogDensity:
        """The log density on the unconstrained space, for JAX and other samplers."""
        potentials = tuple(part.log_density.potential for part in self.parts)
        offsets = self.log_masses - self.log_normalisers
        return LogDensity(
            MixturePotential(
                potentials, jnp.asarray(offsets), int(np.argmax(self.log_masses))
            )
        )

    def _jump(
        self, rng: np.random.Generator, labels: np.ndarray, x: np.ndarray
    ) -> np.ndarray:
        """New labels of latent points."""
        energies = np.stack([part.latent_energies(x) for part in self.parts], axis=1)
        energies += self.log_normalisers
        proposed = rng.choice(len(self.parts), len(x), p=np.exp(self.log_masses))
        rows = np.arange(len(x))
        log_ratio = energies[rows, labels] - energies[rows, proposed]
        is_moved = np.log(rng.uniform(size=len(x))) < log_ratio
        return np.where(is_moved, proposed, labels)

    def log_parts(self, thetas: np.ndarray) -> np.ndarray:
        """Logarithms of what each part adds to the density, one point a row."""
        with np.errstate(over="ignore", invalid="ignore"):
            energies = np.stack([part.energies(thetas) for part in self.parts], axis=1)
        # Far from a part its map may overflow: it has no density there.
        energies = np.nan_to_num(energies, nan=np.inf)
        return self.log_masses - self.log_normalisers - energies

    def _by_label(self, thetas: np.ndarray) -> list[tuple[Surrogate, np.ndarray]]:
        """Parts that have points, and which these are."""
        labels = self.labels(thetas)
        pairs = [(part, labels == k) for k, part in enumerate(self.parts)]
        return [(part, is_mine) for part, is_mine in pairs if is_mine.any()]


class MixturePotential(eqx.Module):
    """The mixture's energy on the unconstrained space, for JAX.

    potentials: energies of the parts.
    offsets: logarithms of masses less those of the parts' normalising constants.
    heaviest: place of the part with the most mass.
    """

    potentials: tuple[Potential, ...]
    offsets: Vector
    heaviest: int = eqx.field(static=True)

    def __call__(self, theta: Vector) -> Scalar:
        """Energy at `theta`."""
        energies = jnp.stack([potential(theta) for potential in self.potentials])
        return -jax.scipy.special.logsumexp(self.offsets - energies)

    def on_host(self) -> Surrogate:
        """The part of the largest mass: a related run begins there, and looks on."""
        heaviest = self.potentials[self.heaviest]
        assert isinstance(heaviest, SurrogatePotential)
        return heaviest.on_host()


def _drawn(rng: np.random.Generator, probabilities: np.ndarray) -> np.ndarray:
    """One label a row."""
    cumulated = np.cumsum(probabilities, axis=1)
    uniform = rng.uniform(size=(len(probabilities), 1)) * cumulated[:, -1:]
    return np.sum(uniform > cumulated, axis=1)

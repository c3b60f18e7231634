"""A posterior of several modes, with the mass of each and its moments."""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jaxtyping import Array

from vhmc.evaluation.target import Target
from vhmc.lab.bench.problem import Draws, Model


class Peaks(NamedTuple):
    """A posterior, and how its mass is divided.

    model: the log density, its parameters, and what is reported of them.
    label: from named draws, shape (n, ...), to the number of the mode of each.
    masses: of the modes.
    mean, sd: exact moments of what is reported.
    """

    model: Model
    label: Callable[[Draws], np.ndarray]
    masses: np.ndarray
    mean: np.ndarray
    sd: np.ndarray

    def make(self) -> Target:
        """A fresh target, so that its count of evaluations starts at zero."""
        return self.model.make()

    def shares(self, draws: Draws) -> np.ndarray:
        """Share of the draws in each mode."""
        counts = np.bincount(self.label(draws), minlength=len(self.masses))
        return counts / counts.sum()

    def errors(self, draws: Draws) -> tuple[float, float]:
        """Worst error of a mean, in sd, and worst relative error of an sd."""
        values = self.model.quantities(draws)
        mean = np.abs(values.mean(axis=0) - self.mean) / self.sd
        sd = np.abs(values.std(axis=0) / self.sd - 1)
        return float(mean.max()), float(sd.max())


class Normals(NamedTuple):
    """A mixture of normals, with a row of means and standard deviations for each.

    weights: that add up to one.
    """

    means: np.ndarray
    sds: np.ndarray
    weights: np.ndarray

    def log_parts(self, theta: Array) -> Array:
        """Log densities of the parts, each with its weight."""
        z = (theta[..., None, :] - self.means) / self.sds
        dim = self.means.shape[1]
        log_norm = 0.5 * dim * jnp.log(2 * jnp.pi) + jnp.sum(jnp.log(self.sds), axis=1)
        return jnp.log(self.weights) - 0.5 * jnp.sum(z**2, axis=-1) - log_norm

    def peaks(self) -> Peaks:
        """The posterior that this mixture is, searched from around the first mode."""
        mean = self.weights @ self.means
        square = self.weights @ (self.sds**2 + self.means**2)

        def label(draws: Draws) -> np.ndarray:
            parts = self.log_parts(jnp.asarray(draws["theta"]))
            return np.argmax(np.asarray(parts), axis=-1)

        def log_density(theta: Array) -> Array:
            return logsumexp(self.log_parts(theta))

        start = np.asarray(self.means[0]) + 0.5
        model = Model(log_density, start)
        return Peaks(model, label, self.weights, mean, np.sqrt(square - mean**2))

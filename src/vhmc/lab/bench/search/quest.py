"""A posterior to be found, on an unconstrained vector."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.linalg
from jaxtyping import Array

from vhmc.evaluation.target import Target
from vhmc.models.from_jax import from_jax


class Quest(NamedTuple):
    """A log density, where its search begins, and where its mass is, roughly.

    start: around which every seed has its own first point.
    near: a point in or close to the mass, from which the reference is made.
    spread: half the side of the cube around `start` of the first points.
    """

    log_density: Callable[[Array], Array]
    start: np.ndarray
    near: np.ndarray
    spread: float = 2.0

    def make(self, seed: int) -> Target:
        """A fresh target with the first point of a seed."""
        rng = np.random.default_rng([seed, 17])
        shift = rng.uniform(-self.spread, self.spread, len(self.start))
        return from_jax(self.log_density, self.start + shift)


class Moments(NamedTuple):
    """Mean and covariance of a posterior.

    factor: lower triangular factor of the covariance.
    """

    mean: np.ndarray
    factor: np.ndarray

    def distance(self, thetas: np.ndarray) -> np.ndarray:
        """Mahalanobis's distance from the mean over the root of the dimension.

        It is about one for a draw of the posterior, in whatever units and rotated in
        whatever way.
        """
        shifted = np.atleast_2d(thetas) - self.mean
        white = scipy.linalg.solve_triangular(self.factor, shifted.T, lower=True)
        return np.sqrt(np.mean(white**2, axis=0))

r"""The affine layer $\theta = \mu + A x$: a Gaussian as coordinates."""

import numpy as np
import scipy.linalg

from vhmc._types import Shared
from vhmc.transport.layer import AbstractLayer


class Affine(AbstractLayer):
    r"""The layer that takes a standard normal to mean $\mu$, covariance $A A^\top$.

    mean: $\mu$.
    factor: $A$, lower triangular.
    """

    mean: Shared
    factor: Shared

    def forward(self, x: np.ndarray) -> np.ndarray:
        r"""Rows $\mu + A x$."""
        return self.mean + x @ self.factor.T

    def inverse(self, theta: Shared) -> Shared:
        r"""Rows $A^{-1} (\theta - \mu)$."""
        xp = theta.__array_namespace__()
        return xp.linalg.solve(self.factor, (theta - self.mean).T).T

    def pull_back(self, x: np.ndarray, grad: np.ndarray) -> np.ndarray:
        r"""Rows $A^\top g$."""
        return grad @ self.factor

    def push_forward(self, x: np.ndarray, grad: np.ndarray) -> np.ndarray:
        r"""Rows $A^{-\top} g$."""
        return np.linalg.solve(self.factor.T, grad.T).T

    def log_det(self, x: Shared) -> Shared:
        r"""The constant $\log |\det A|$ for every row."""
        return x.__array_namespace__().full(len(x), self.log_det_factor)

    def log_det_grad(self, x: np.ndarray) -> np.ndarray:
        """Zero: the determinant is a constant."""
        return np.zeros_like(x)

    @property
    def linear_part(self) -> np.ndarray:
        r"""The factor $A$."""
        return self.factor

    @property
    def log_det_factor(self) -> Shared:
        r"""$\log |\det A|$."""
        xp = self.factor.__array_namespace__()
        return xp.sum(xp.log(xp.diagonal(self.factor)))

    def compose(self, inner: "Affine") -> "Affine":
        """One layer that applies `inner` first and this one to the result."""
        mean = self.forward(inner.mean[None])[0]
        return Affine(mean, self.factor @ inner.factor)

    def then(self, inner: AbstractLayer) -> tuple[AbstractLayer, ...]:
        """One layer if the inner one is affine as well."""
        return inner.within_affine(self)

    def within_affine(self, outer: "Affine") -> tuple[AbstractLayer, ...]:
        """Their composition, which is one affine layer."""
        return (outer.compose(self),)


def affine_from_precision(mean: np.ndarray, precision: np.ndarray) -> Affine:
    """The layer of the Gaussian with this (positive definite) precision."""
    lower = np.linalg.cholesky(precision)
    covariance = scipy.linalg.cho_solve((lower, True), np.eye(len(mean)))
    return Affine(mean, np.linalg.cholesky((covariance + covariance.T) / 2))


def divergence(layer: Affine) -> float:
    """Kullback-Leibler divergence of the layer's Gaussian from the standard normal."""
    square = np.sum(layer.factor**2) + layer.mean @ layer.mean
    return float(0.5 * (square - len(layer.mean)) - layer.log_det_factor)


def evidence_bound(layer: Affine, energy: np.ndarray) -> float:
    """Evidence lower bound of a Gaussian, up to a constant, from energies of its draws.

    By the median: one draw of a huge energy would rule the mean.
    """
    return float(layer.log_det_factor - np.median(energy))

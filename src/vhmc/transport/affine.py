r"""Whitened coordinates $\theta = \mu + A x$: in them the posterior is about round."""

from typing import NamedTuple

import numpy as np
import scipy.linalg

from vhmc._types import Shared


class Frame(NamedTuple):
    r"""A Gaussian with mean $\mu$ and covariance $A A^\top$, as coordinates.

    mean: $\mu$.
    factor: $A$, lower triangular.
    """

    mean: Shared
    factor: Shared

    def to_x(self, theta: Shared) -> Shared:
        """Points in this frame, one a row."""
        xp = theta.__array_namespace__()
        return xp.linalg.solve(self.factor, (theta - self.mean).T).T

    def to_theta(self, x: np.ndarray) -> np.ndarray:
        """Points outside of it, one a row."""
        return self.mean + x @ self.factor.T

    def grad_to_x(self, x: np.ndarray, grad: np.ndarray) -> np.ndarray:
        r"""Gradients with respect to $x$: rows $A^\top \nabla U$."""
        return grad @ self.factor

    def grad_to_theta(self, x: np.ndarray, grad: np.ndarray) -> np.ndarray:
        """Back again."""
        return np.linalg.solve(self.factor.T, grad.T).T

    def log_volumes(self, x: Shared) -> Shared:
        """The logarithm of the volume, at every row of `x`."""
        return x.__array_namespace__().full(len(x), self.log_volume)

    def log_volume_grads(self, x: np.ndarray) -> np.ndarray:
        """No gradient: the volume is the same everywhere."""
        return np.zeros_like(x)

    def then(self, inner: "Frame") -> "Frame":
        """The frame whose coordinates are those of `inner` within this one."""
        mean = self.to_theta(inner.mean[None])[0]
        return Frame(mean, self.factor @ inner.factor)

    @property
    def log_volume(self) -> Shared:
        r"""Logarithm of $|\det A|$."""
        xp = self.factor.__array_namespace__()
        return xp.sum(xp.log(xp.diagonal(self.factor)))


def frame_from_precision(mean: np.ndarray, precision: np.ndarray) -> Frame:
    """Frame of the Gaussian with this (positive definite) precision."""
    lower = np.linalg.cholesky(precision)
    covariance = scipy.linalg.cho_solve((lower, True), np.eye(len(mean)))
    return Frame(mean, np.linalg.cholesky((covariance + covariance.T) / 2))


def divergence(frame: Frame) -> float:
    """Kullback-Leibler divergence of the frame's Gaussian from the standard normal."""
    square = np.sum(frame.factor**2) + frame.mean @ frame.mean
    return float(0.5 * (square - len(frame.mean)) - frame.log_volume)

r"""Whitened coordinates $\theta = \mu + A x$: in them the posterior is about round."""

from typing import NamedTuple

import numpy as np
import scipy.linalg


class Frame(NamedTuple):
    r"""A Gaussian with mean $\mu$ and covariance $A A^\top$, as coordinates.

    mean: $\mu$.
    factor: $A$, lower triangular.
    """

    mean: np.ndarray
    factor: np.ndarray

    def to_x(self, theta: np.ndarray) -> np.ndarray:
        """Points in this frame, one a row."""
        moved = (theta - self.mean).T
        return scipy.linalg.solve_triangular(self.factor, moved, lower=True).T

    def to_theta(self, x: np.ndarray) -> np.ndarray:
        """Points in the user's unconstrained space, one a row."""
        return self.mean + x @ self.factor.T

    def grad_to_x(self, grad: np.ndarray) -> np.ndarray:
        r"""Gradients with respect to $x$: rows $A^\top \nabla U$."""
        return grad @ self.factor

    @property
    def log_volume(self) -> float:
        r"""Logarithm of $|\det A|$."""
        return float(np.sum(np.log(np.diag(self.factor))))


def frame_from_precision(mean: np.ndarray, precision: np.ndarray) -> Frame:
    """Frame of the Gaussian with this (positive definite) precision."""
    lower = np.linalg.cholesky(precision)
    covariance = scipy.linalg.cho_solve((lower, True), np.eye(len(mean)))
    return Frame(mean, np.linalg.cholesky((covariance + covariance.T) / 2))

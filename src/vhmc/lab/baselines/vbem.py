r"""Variational Bayesian EM for probit regression (Ormerod and Wand, 2010).

Auxiliary variables $z_n \sim \mathcal N(\theta^\top x_n, 1)$ with $y_n = [z_n > 0]$
make both conditionals tractable; the approximation $q(\theta) q(z)$ then ignores that
$\theta$ and $z$ depend on each other, which makes it too narrow and slow to converge.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import log_ndtr


class VBEM(NamedTuple):
    """The Gaussian of the parameters after every iteration.

    means: one row an iteration, the start first.
    covariance: the same throughout.
    """

    means: np.ndarray
    covariance: np.ndarray


def probit_vbem(
    x: np.ndarray, y: np.ndarray, prior_variance: float, num_iterations: int
) -> VBEM:
    """Iterate from the prior's mean; every iteration is one pass over the data."""
    dim = x.shape[1]
    covariance = np.linalg.inv(x.T @ x + np.eye(dim) / prior_variance)
    sign = 2 * y - 1
    mean = np.zeros(dim)
    means = [mean]
    for _ in range(num_iterations):
        predicted = x @ mean
        log_density = -0.5 * predicted**2 - 0.5 * np.log(2 * np.pi)
        hazard = np.exp(log_density - log_ndtr(sign * predicted))
        mean = covariance @ (x.T @ (predicted + sign * hazard))
        means.append(mean)
    return VBEM(np.array(means), covariance)

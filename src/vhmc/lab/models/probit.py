r"""Probit regression, $P(y = 1) = \Phi(\theta^\top x)$, prior variance 100."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm
from scipy import stats

from vhmc._types import Scalar, Vector
from vhmc.lab.models.rows import RowModel, Rows, normal_prior


class Simulated(NamedTuple):
    """Data of the model itself, and the parameter that made them."""

    x: np.ndarray
    y: np.ndarray
    truth: np.ndarray


def simulate(rng: np.random.Generator, num_rows: int, dim: int) -> Simulated:
    """Standard normal inputs and a standard normal parameter."""
    truth = rng.standard_normal(dim)
    x = rng.standard_normal((num_rows, dim))
    y = rng.uniform(size=num_rows) < stats.norm.cdf(x @ truth)
    return Simulated(x, y.astype(float), truth)


def probit(x: np.ndarray, y: np.ndarray) -> RowModel:
    """The posterior of labels 0 and 1, starting at the origin."""
    return RowModel(normal_prior, log_likelihood, (x, y), np.zeros(x.shape[1]))


def log_likelihood(theta: Vector, rows: Rows) -> Scalar:
    """Sum over rows."""
    x, y = rows
    return jnp.sum(norm.logcdf((2 * y - 1) * (x @ theta)))

"""Posteriors with known moments, errors of draws, and densities for models."""

from collections.abc import Callable
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln, xlogy
from jax.scipy.stats import norm
from jaxtyping import Array

from vhmc.evaluation.target import Target

Draws = dict[str, np.ndarray]


@dataclass(frozen=True)
class Problem:
    """A model, what is reported of it, and the reference moments of that.

    make: a fresh target, so that its count of evaluations starts at zero.
    quantities: maps named draws of any leading shape to the reported quantities, along
        a last axis.
    names: of the quantities.
    mean: reference means of the quantities.
    sd: reference standard deviations of the quantities.
    is_gaussian: whether the posterior is close to a Gaussian when unconstrained.
    """

    name: str
    make: Callable[[], Target]
    quantities: Callable[[Draws], np.ndarray]
    names: tuple[str, ...]
    mean: np.ndarray
    sd: np.ndarray
    is_gaussian: bool

    def __post_init__(self):
        shape = (len(self.names),)
        if self.mean.shape != shape or self.sd.shape != shape:
            raise ValueError(
                f"{self.name} names {len(self.names)} quantities, but its moments have "
                f"shapes {self.mean.shape} and {self.sd.shape}"
            )


def errors(problem: Problem, draws: Draws) -> tuple[float, float]:
    """Worst error of a mean in reference sd, and worst relative error of an sd.

    Both are infinite if a draw is not finite: a failure must not vanish from a table.
    """
    values = problem.quantities(draws).reshape(-1, len(problem.names))
    if not np.isfinite(values).all():
        return np.inf, np.inf
    mean_errors = np.abs(values.mean(axis=0) - problem.mean) / problem.sd
    sd_errors = np.abs(values.std(axis=0, ddof=1) / problem.sd - 1)
    return float(mean_errors.max()), float(sd_errors.max())


def negative_binomial(count, log_mean, size) -> Array:
    """Log probability of counts of variance mean + mean^2 / size, up to a constant."""
    log_total = jnp.logaddexp(log_mean, jnp.log(size))
    ways = gammaln(count + size) - gammaln(size)
    return ways + count * log_mean + xlogy(size, size) - (count + size) * log_total


def log_normal(value, location, scale) -> Array:
    """Log-normal log density; location and scale are those of the logarithm."""
    return norm.logpdf(jnp.log(value), location, scale) - jnp.log(value)


def half_normal(value, scale) -> Array:
    """Half-normal log density, up to a constant."""
    return -0.5 * (value / scale) ** 2


def half_cauchy(value, scale) -> Array:
    """Half-Cauchy log density, up to a constant."""
    return -jnp.log1p((value / scale) ** 2)

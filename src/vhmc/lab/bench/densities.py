"""Log densities up to a constant, for priors and likelihoods."""

import jax.numpy as jnp
from jax.scipy.special import gammaln, xlogy
from jax.scipy.stats import norm
from jaxtyping import Array


def negative_binomial(count, log_mean, size) -> Array:
    """Log probability of counts of variance mean + mean^2 / size."""
    log_total = jnp.logaddexp(log_mean, jnp.log(size))
    ways = gammaln(count + size) - gammaln(size)
    return ways + count * log_mean + xlogy(size, size) - (count + size) * log_total


def log_normal(value, location, scale) -> Array:
    """Log-normal, of the logarithm's mean and standard deviation."""
    return norm.logpdf(jnp.log(value), location, scale) - jnp.log(value)


def half_normal(value, scale) -> Array:
    """Normal on the positive line."""
    return -0.5 * (value / scale) ** 2


def half_cauchy(value, scale) -> Array:
    """Cauchy on the positive line."""
    return -jnp.log1p((value / scale) ** 2)

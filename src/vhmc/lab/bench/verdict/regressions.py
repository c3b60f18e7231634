"""Regressions without a closed form, flat and hierarchical; their moments are on file.

Made by benchmarks/verdict_reference.py.
"""

import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import gamma, norm, t

from vhmc.lab.bench.problem import half_normal, log_normal, negative_binomial
from vhmc.lab.bench.verdict.case import Case, traced
from vhmc.numerics.constraints import positive


def _design(
    rng: np.random.Generator, most: int, rows: int
) -> tuple[np.ndarray, np.ndarray]:
    """An intercept and up to so many columns, with true coefficients."""
    size = int(rng.integers(1, most))
    x = rng.standard_normal((rows, size)) + rng.uniform(0, 1.5) * rng.standard_normal(
        (rows, 1)
    )
    slopes = 0.6 * rng.standard_normal(size + 1) / np.sqrt(size)
    return np.column_stack([np.ones(rows), x]), slopes


def logistic(rng: np.random.Generator) -> Case:
    """Yes-or-no answers of 20 to 200 people."""
    x, slopes = _design(rng, 11, int(rng.integers(20, 201)))
    y = (rng.uniform(size=len(x)) < 1 / (1 + np.exp(-x @ slopes))).astype(float)

    def log_density(p):
        eta = x @ p["slopes"]
        likelihood = jnp.sum(y * eta - jnp.logaddexp(0.0, eta))
        return likelihood + jnp.sum(norm.logpdf(p["slopes"], 0, 2.5))

    return traced(log_density, {"slopes": np.zeros(len(slopes))})


def poisson(rng: np.random.Generator) -> Case:
    """Counts of which many are zero."""
    x, slopes = _design(rng, 11, int(rng.integers(15, 101)))
    y = rng.poisson(np.exp(np.clip(x @ slopes, -5, 4))).astype(float)

    def log_density(p):
        eta = x @ p["slopes"]
        return jnp.sum(y * eta - jnp.exp(eta)) + jnp.sum(norm.logpdf(p["slopes"], 0, 2))

    return traced(log_density, {"slopes": np.zeros(len(slopes))})


def negative_binomials(rng: np.random.Generator) -> Case:
    """Counts with more variance than a Poisson variable has."""
    x, slopes = _design(rng, 7, int(rng.integers(30, 121)))
    rate = np.exp(1 + np.clip(x @ slopes, -4, 4)) * rng.gamma(2, 1 / 2, len(x))
    y = rng.poisson(rate).astype(float)

    def log_density(p):
        likelihood = jnp.sum(negative_binomial(y, x @ p["slopes"], p["size"]))
        prior = jnp.sum(norm.logpdf(p["slopes"], 0, 3))
        return likelihood + prior + log_normal(p["size"], 1, 1)

    init = {"slopes": np.zeros(len(slopes)), "size": 1.0}
    return traced(log_density, init, constraints={"size": positive})


def robust(rng: np.random.Generator) -> Case:
    """Student-t errors of unknown scale and degrees of freedom."""
    x, slopes = _design(rng, 7, int(rng.integers(20, 81)))
    y = x @ slopes + 0.5 * rng.standard_t(rng.uniform(1.5, 6), len(x))

    def log_density(p):
        residual = (y - x @ p["slopes"]) / p["scale"]
        likelihood = jnp.sum(t.logpdf(residual, p["freedom"]) - jnp.log(p["scale"]))
        prior = jnp.sum(norm.logpdf(p["slopes"], 0, 5)) + half_normal(p["scale"], 2)
        return likelihood + prior + gamma.logpdf(p["freedom"], 2, scale=10)

    init = {"slopes": np.zeros(len(slopes)), "scale": 1.0, "freedom": 5.0}
    supports = {"scale": positive, "freedom": positive}
    return traced(log_density, init, constraints=supports)


def logit_centred(rng: np.random.Generator) -> Case:
    """Success rates of 4 to 10 groups, their logits as parameters."""
    return _logits(rng, is_centred=True)


def logit_noncentred(rng: np.random.Generator) -> Case:
    """The same in units of their scale."""
    return _logits(rng, is_centred=False)


def _logits(rng: np.random.Generator, is_centred: bool) -> Case:
    number = int(rng.integers(4, 11))
    trials = rng.integers(3, 40, number)
    eta = -0.5 + rng.uniform(0.2, 1.2) * rng.standard_normal(number)
    y = rng.binomial(trials, 1 / (1 + np.exp(-eta)))

    def likelihood(eta):
        return jnp.sum(y * eta - trials * jnp.logaddexp(0.0, eta))

    return _hierarchy(number, likelihood, is_centred)


def counts_centred(rng: np.random.Generator) -> Case:
    """Counts of 4 to 10 groups, the logs of their rates as parameters."""
    return _counts(rng, is_centred=True)


def counts_noncentred(rng: np.random.Generator) -> Case:
    """The same in units of their scale."""
    return _counts(rng, is_centred=False)


def _counts(rng: np.random.Generator, is_centred: bool) -> Case:
    number = int(rng.integers(4, 11))
    log_rate = rng.uniform(0, 2) + rng.uniform(0.2, 1) * rng.standard_normal(number)
    y = rng.poisson(np.exp(log_rate))

    def likelihood(eta):
        return jnp.sum(y * eta - jnp.exp(eta))

    return _hierarchy(number, likelihood, is_centred)


def _hierarchy(number: int, likelihood, is_centred: bool) -> Case:
    """Normal effects of unknown mean and scale, which is log-normal."""

    def log_density(p):
        mean, scale, z = p["mean"], p["scale"], p["group"]
        spread = norm.logpdf(z, mean, scale) if is_centred else norm.logpdf(z)
        effects = z if is_centred else mean + scale * z
        prior = norm.logpdf(mean, 0, 3) + log_normal(scale, -0.5, 0.8)
        return likelihood(effects) + jnp.sum(spread) + prior

    init = {"mean": 0.0, "scale": 1.0, "group": np.zeros(number)}
    return traced(log_density, init, constraints={"scale": positive})

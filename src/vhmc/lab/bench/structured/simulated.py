"""Larger models on simulated data: a mixed model, a local level, and volatility."""

import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import beta, norm

from vhmc.lab.bench.calibration.processes import volatility_returns
from vhmc.lab.bench.problem import Model, half_normal
from vhmc.numerics.constraints import interval, positive

GROUPS = 496
STEPS = 1000


def mixed_500() -> Model:
    """A mixed model of 500 parameters: 496 groups of one to ten rows, centred."""
    rng = np.random.default_rng(31)
    group = np.repeat(np.arange(GROUPS), rng.integers(1, 11, size=GROUPS))
    x = rng.standard_normal(len(group))
    truth = 1.0 + 0.7 * rng.standard_normal(GROUPS)
    y = truth[group] + 0.5 * x + 1.2 * rng.standard_normal(len(group))

    def log_density(p):
        mean = p["alpha"][group] + p["slope"] * x
        likelihood = jnp.sum(norm.logpdf(y, mean, p["sigma_y"]))
        population = jnp.sum(norm.logpdf(p["alpha"], p["mu"], p["sigma_a"]))
        prior = norm.logpdf(p["mu"], 0, 5) + norm.logpdf(p["slope"], 0, 5)
        prior += half_normal(p["sigma_y"], 2) + half_normal(p["sigma_a"], 2)
        return likelihood + population + prior

    init = {
        "alpha": np.zeros(GROUPS),
        "slope": 0.0,
        "mu": 0.0,
        "sigma_y": 1.0,
        "sigma_a": 1.0,
    }
    return Model(log_density, init, {"sigma_y": positive, "sigma_a": positive})


def local_level_1000() -> Model:
    """A random walk of 1,000 steps seen with noise; the states are parameters."""
    rng = np.random.default_rng(32)
    y = np.cumsum(0.3 * rng.standard_normal(STEPS)) + rng.standard_normal(STEPS)

    def log_density(p):
        x = p["x"]
        likelihood = jnp.sum(norm.logpdf(y, x, p["sigma_y"]))
        walk = jnp.sum(norm.logpdf(x[1:], x[:-1], p["sigma_x"]))
        scales = half_normal(p["sigma_x"], 1) + half_normal(p["sigma_y"], 1)
        return likelihood + walk + norm.logpdf(x[0], 0, 5) + scales

    init = {"x": np.zeros(STEPS), "sigma_x": 1.0, "sigma_y": 1.0}
    return Model(log_density, init, {"sigma_x": positive, "sigma_y": positive})


def stochastic_volatility_centred() -> Model:
    """Forty returns; their log variances are parameters, an autoregression."""
    y = volatility_returns()

    def log_density(p):
        h, mu, phi, sigma = (p[name] for name in ("h", "mu", "phi", "sigma"))
        likelihood = -0.5 * jnp.sum(h + y**2 * jnp.exp(-h))
        steps = norm.logpdf(h[1:], mu + phi * (h[:-1] - mu), sigma)
        path = jnp.sum(steps) + norm.logpdf(h[0], mu, sigma / jnp.sqrt(1 - phi**2))
        prior = norm.logpdf(mu, 0, 2) + beta.logpdf((1 + phi) / 2, 20, 1.5)
        return likelihood + path + prior + half_normal(sigma, 0.5)

    init = {"mu": 0.0, "phi": 0.5, "sigma": 0.3, "h": np.zeros(len(y))}
    return Model(log_density, init, {"phi": interval(-1.0, 1.0), "sigma": positive})

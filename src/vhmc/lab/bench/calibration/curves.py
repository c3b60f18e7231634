"""Curves through few points: likelihoods with ridges, plateaus and twins."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm

from vhmc.lab.bench.calibration.model import Model, logs
from vhmc.lab.bench.densities import (
    half_normal,
    log_normal,
)
from vhmc.numerics.constraints import (
    ordered,
    positive,
)


def michaelis_menten() -> Model:
    """Eight velocities of a reaction that saturates beyond the data: a curved ridge."""
    rng = np.random.default_rng(6)
    x = np.array([0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.5])
    y = 2 * x / (1.5 + x) + 0.06 * rng.standard_normal(8)

    def log_density(p):
        velocity = p["limit"] * x / (p["half"] + x)
        likelihood = jnp.sum(norm.logpdf(y, velocity, p["noise"]))
        prior = log_normal(p["limit"], 0, 1.5) + log_normal(p["half"], 0, 1.5)
        return likelihood + prior + half_normal(p["noise"], 0.5)

    init = {"limit": 1.0, "half": 1.0, "noise": 0.5}
    return Model(log_density, init, dict.fromkeys(init, positive), logs(*init))


def plateau() -> Model:
    """A sigmoid response; the start is where only the prior has a slope."""
    rng = np.random.default_rng(21)
    x = np.linspace(-2, 2, 15)
    y = 1 / (1 + np.exp(-2 * (x - 0.3))) + 0.1 * rng.standard_normal(15)

    def log_density(p):
        response = p["top"] * jax.nn.sigmoid(p["slope"] * (x - p["centre"]))
        likelihood = jnp.sum(norm.logpdf(y, response, 0.1))
        prior = norm.logpdf(p["centre"], 0, 10) + log_normal(p["slope"], 0, 1)
        return likelihood + prior + log_normal(p["top"], 0, 0.5)

    init = {"centre": 20.0, "slope": 1.0, "top": 1.0}
    constraints = {"slope": positive, "top": positive}
    return Model(log_density, init, constraints, logs("slope", "top"))


def two_exponentials() -> Model:
    """Sum of two decays of unknown rates and amplitudes, hardly told apart."""
    rng = np.random.default_rng(22)
    time = np.linspace(0, 5, 20)
    y = 0.6 * np.exp(-0.4 * time) + np.exp(-1.6 * time) + rng.normal(0, 0.04, 20)

    def log_density(p):
        decays = jnp.exp(-jnp.exp(p["log_rates"]) * time[:, None])
        likelihood = jnp.sum(norm.logpdf(y, decays @ p["amplitudes"], p["noise"]))
        prior = jnp.sum(norm.logpdf(p["log_rates"], 0, 1))
        prior += jnp.sum(log_normal(p["amplitudes"], 0, 0.5))
        return likelihood + prior + half_normal(p["noise"], 0.5)

    init = {"log_rates": np.array([-1.0, 1.0]), "amplitudes": np.ones(2), "noise": 0.5}
    constraints = {"log_rates": ordered, "amplitudes": positive, "noise": positive}
    return Model(log_density, init, constraints, logs("amplitudes", "noise"))


def gaussian_process() -> Model:
    """Amplitude, length and noise of a Gaussian process seen at 20 points."""
    rng = np.random.default_rng(25)
    x = np.sort(rng.uniform(0, 5, 20))
    y = np.sin(1.5 * x) + 0.3 * rng.standard_normal(20)
    squares = (x[:, None] - x) ** 2

    def log_density(p):
        kernel = p["amplitude"] ** 2 * jnp.exp(-squares / (2 * p["length"] ** 2))
        factor = jnp.linalg.cholesky(kernel + p["noise"] ** 2 * jnp.eye(20))
        white = jax.scipy.linalg.solve_triangular(factor, y, lower=True)
        likelihood = -0.5 * jnp.sum(white**2) - jnp.sum(jnp.log(jnp.diag(factor)))
        prior = half_normal(p["amplitude"], 2) + log_normal(p["length"], 0, 1)
        return likelihood + prior + half_normal(p["noise"], 1)

    init = {"amplitude": 1.0, "length": 1.0, "noise": 1.0}
    return Model(log_density, init, dict.fromkeys(init, positive), logs(*init))

r"""Varying intercepts and slopes with normal errors: radon, rats and eight schools.

Given the scales, the other parameters are jointly Gaussian.
"""

import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm
from jaxtyping import Array

from vhmc.lab.bench import posteriordb
from vhmc.lab.bench.problem import Draws, Model, half_cauchy, half_normal
from vhmc.lab.bench.structured.data import read
from vhmc.numerics.constraints import positive

COUNTIES = 85


def radon_centred() -> Model:
    r"""Radon in 919 houses of 85 counties, an intercept $\alpha_j$ each."""
    county, floor, y = _houses()

    def log_density(p):
        mean = p["alpha"][county] + p["beta"] * floor
        likelihood = jnp.sum(norm.logpdf(y, mean, p["sigma_y"]))
        population = norm.logpdf(p["alpha"], p["mu_alpha"], p["sigma_alpha"])
        return likelihood + jnp.sum(population) + _radon_prior(p)

    init = {"alpha": np.zeros(COUNTIES)} | RADON_START
    return Model(log_density, init, RADON_SUPPORTS)


def radon_noncentred() -> Model:
    r"""The same on $z_j = (\alpha_j - \mu_\alpha) / \sigma_\alpha$."""
    county, floor, y = _houses()

    def log_density(p):
        alpha = p["mu_alpha"] + p["sigma_alpha"] * p["z"]
        mean = alpha[county] + p["beta"] * floor
        likelihood = jnp.sum(norm.logpdf(y, mean, p["sigma_y"]))
        return likelihood + jnp.sum(norm.logpdf(p["z"])) + _radon_prior(p)

    def report(d: Draws) -> Draws:
        alpha = d["mu_alpha"][..., None] + d["sigma_alpha"][..., None] * d["z"]
        return {"alpha": alpha} | {name: d[name] for name in RADON_START}

    init = {"z": np.zeros(COUNTIES)} | RADON_START
    return Model(log_density, init, RADON_SUPPORTS, report)


def radon_slopes() -> Model:
    r"""An intercept $\alpha_j$ and a slope $\beta_j$ of the floor for each county."""
    county, floor, y = _houses()

    def log_density(p):
        mean = p["alpha"][county] + p["beta"][county] * floor
        likelihood = jnp.sum(norm.logpdf(y, mean, p["sigma_y"]))
        scales = jnp.stack([p["sigma_alpha"], p["sigma_beta"], p["sigma_y"]])
        centres = jnp.stack([p["mu_alpha"], p["mu_beta"]])
        prior = jnp.sum(half_normal(scales, 1)) + jnp.sum(norm.logpdf(centres, 0, 10))
        return likelihood + _population(p) + prior

    init = _lines(COUNTIES)
    return Model(log_density, init, _scales(init))


def rats() -> Model:
    r"""Weights of thirty rats on five days, a line each; flat priors on the scales."""
    weights = read("rats")
    rat, y = weights["rat"] - 1, weights["y"]
    day = weights["x"] - float(weights["xbar"])

    def log_density(p):
        mean = p["alpha"][rat] + p["beta"][rat] * day
        likelihood = jnp.sum(norm.logpdf(y, mean, p["sigma_y"]))
        centres = jnp.stack([p["mu_alpha"], p["mu_beta"]])
        prior = jnp.sum(norm.logpdf(centres, 0, 100))
        return likelihood + _population(p) + prior

    init = _lines(int(weights["N"]))
    return Model(log_density, init, _scales(init))


def eight_schools_centred() -> Model:
    r"""Coaching effects $\theta_j$ in eight schools, with $\theta_j$ as parameters."""
    schools = posteriordb.data("eight_schools")
    y, sigma = schools["y"], schools["sigma"]

    def log_density(p):
        likelihood = jnp.sum(norm.logpdf(y, p["theta"], sigma))
        population = jnp.sum(norm.logpdf(p["theta"], p["mu"], p["tau"]))
        prior = norm.logpdf(p["mu"], 0, 5) + half_cauchy(p["tau"], 5.0)
        return likelihood + population + prior

    init = {"theta": np.zeros(len(y)), "mu": 0.0, "tau": 1.0}
    return Model(log_density, init, {"tau": positive})


RADON_START = {"beta": 0.0, "mu_alpha": 0.0, "sigma_alpha": 1.0, "sigma_y": 1.0}
RADON_SUPPORTS = {"sigma_alpha": positive, "sigma_y": positive}


def _houses() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """County from zero, whether measured above the basement, and log radon."""
    houses = read("radon_mn")
    return houses["county_idx"] - 1, houses["floor_measure"], houses["log_radon"]


def _radon_prior(p: dict[str, Array]) -> Array:
    scales = half_normal(p["sigma_alpha"], 1) + half_normal(p["sigma_y"], 1)
    return scales + norm.logpdf(p["mu_alpha"], 0, 10) + norm.logpdf(p["beta"], 0, 10)


def _population(p: dict[str, Array]) -> Array:
    """Intercepts and slopes around their means."""
    intercepts = norm.logpdf(p["alpha"], p["mu_alpha"], p["sigma_alpha"])
    slopes = norm.logpdf(p["beta"], p["mu_beta"], p["sigma_beta"])
    return jnp.sum(intercepts) + jnp.sum(slopes)


def _lines(number: int) -> Draws:
    """Start of a model with an intercept and a slope per group."""
    groups = {"alpha": np.zeros(number), "beta": np.zeros(number)}
    centres = {"mu_alpha": np.zeros(()), "mu_beta": np.zeros(())}
    names = ("sigma_alpha", "sigma_beta", "sigma_y")
    return groups | centres | {name: np.ones(()) for name in names}


def _scales(init: Draws) -> dict:
    return {name: positive for name in init if name.startswith("sigma")}

"""Linear and nonlinear regressions, flat and hierarchical, on few or many rows."""

from functools import cache
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import gamma, norm, t

from vhmc.lab.bench.problem import (
    Model,
    half_cauchy,
    half_normal,
    log_normal,
    logs,
    negative_binomial,
)
from vhmc.lab.data.dataset import find_folder
from vhmc.numerics.constraints import ordered, positive


def logistic_a9a() -> Model:
    """Logistic regression of income on 10 yes-or-no columns, 2,000 people."""
    with np.load(data_folder() / "a9a.npz") as file:
        columns = [0, 18, 39, 50, 51, 62, 63, 73, 77, 81]
        x = file["X_train"][:2000, columns].astype(float)
        y = (file["y_train"][:2000] > 0).astype(float)

    def log_density(p):
        eta = p["intercept"] + x @ p["slopes"]
        likelihood = jnp.sum(y * eta - jnp.logaddexp(0.0, eta))
        prior = jnp.sum(norm.logpdf(p["slopes"], 0, 2.5))
        return likelihood + prior + norm.logpdf(p["intercept"], 0, 5)

    init = {"intercept": 0.0, "slopes": np.zeros(10)}
    return Model(log_density, init)


def negative_binomial_flights() -> Model:
    """Negative-binomial regression of minutes of delay, 1,000 flights.

    Three counts in five are zero, and temperature, dew point and humidity are
    nearly collinear.
    """
    x, y = _flights()

    def log_density(p):
        eta = p["intercept"] + x @ p["slopes"]
        likelihood = jnp.sum(negative_binomial(y, eta, p["size"]))
        prior = norm.logpdf(p["intercept"], 0, 5) + half_normal(p["size"], 2)
        return likelihood + prior + jnp.sum(norm.logpdf(p["slopes"]))

    init = {"intercept": 0.0, "slopes": np.zeros(x.shape[1]), "size": 1.0}
    return Model(log_density, init, {"size": positive})


def robust_regression() -> Model:
    """Linear regression with Student-t errors of unknown degrees of freedom."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal((40, 3))
    y = 1 + x @ np.array([0.5, -1.0, 0.0]) + 0.5 * rng.standard_t(2, size=40)

    def log_density(p):
        residual = (y - p["intercept"] - x @ p["slopes"]) / p["scale"]
        likelihood = jnp.sum(t.logpdf(residual, p["freedom"]) - jnp.log(p["scale"]))
        location = jnp.append(p["slopes"], p["intercept"])
        prior = jnp.sum(norm.logpdf(location, 0, 5)) + half_normal(p["scale"], 2)
        return likelihood + prior + gamma.logpdf(p["freedom"], 2, scale=10)

    init = {"intercept": 0.0, "slopes": np.zeros(3), "scale": 1.0, "freedom": 5.0}
    constraints = {"scale": positive, "freedom": positive}
    return Model(log_density, init, constraints)


def horseshoe_data() -> tuple[np.ndarray, np.ndarray]:
    """Ten columns, two of which matter, and the response."""
    rng = np.random.default_rng(9)
    x = rng.standard_normal((50, 10))
    return x, x[:, 0] * 2 - x[:, 1] + rng.standard_normal(50)


def horseshoe() -> Model:
    """Sparse regression on ten columns, two of which matter, non-centred."""
    x, y = horseshoe_data()

    def slopes(p):
        return p["z"] * p["local"] * p["overall"][..., None]

    def log_density(p):
        likelihood = jnp.sum(norm.logpdf(y, x @ slopes(p), p["noise"]))
        prior = jnp.sum(norm.logpdf(p["z"]) + half_cauchy(p["local"], 1))
        prior += half_cauchy(p["overall"], 0.5) + half_normal(p["noise"], 2)
        return likelihood + prior

    def report(d):
        values = logs("overall", "local")(d)
        chosen = ("noise", "log_overall", "log_local")
        return {"slopes": slopes(d)} | {name: values[name] for name in chosen}

    init = {"z": np.zeros(10), "local": np.ones(10), "overall": 1.0, "noise": 1.0}
    constraints = {name: positive for name in ("local", "overall", "noise")}
    return Model(log_density, init, constraints, report)


def hierarchical_normal() -> Model:
    """Nine groups of fifteen measurements, centred: the data are informative."""
    rng = np.random.default_rng(19)
    groups = 3 + 1.5 * rng.standard_normal(9)
    y = groups[:, None] + rng.standard_normal((9, 15))

    def log_density(p):
        likelihood = jnp.sum(norm.logpdf(y, p["group"][:, None], p["noise"]))
        population = jnp.sum(norm.logpdf(p["group"], p["mean"], p["spread"]))
        prior = norm.logpdf(p["mean"], 0, 10) + half_normal(p["spread"], 5)
        return likelihood + population + prior + half_normal(p["noise"], 5)

    init = {"mean": 0.0, "spread": 1.0, "noise": 1.0, "group": np.zeros(9)}
    return Model(log_density, init, {"spread": positive, "noise": positive})


def item_response() -> Model:
    """One-parameter logistic test: 20 people of unknown ability answer 10 items."""
    rng = np.random.default_rng(20)
    ability, difficulty = rng.standard_normal(20), 1.5 * rng.standard_normal(10)
    logits = ability[:, None] - difficulty
    y = (rng.uniform(size=(20, 10)) < 1 / (1 + np.exp(-logits))).astype(float)

    def log_density(p):
        eta = p["ability"][:, None] - p["difficulty"]
        likelihood = jnp.sum(y * eta - jnp.logaddexp(0.0, eta))
        prior = jnp.sum(norm.logpdf(p["ability"]))
        return likelihood + prior + jnp.sum(norm.logpdf(p["difficulty"], 0, 2))

    init = {"ability": np.zeros(20), "difficulty": np.zeros(10)}
    return Model(log_density, init)


def weibull_survival() -> Model:
    """Sixty survival times on two covariates, those beyond 3 censored."""
    rng = np.random.default_rng(24)
    x = rng.standard_normal((60, 2))
    times = np.exp(0.5 + x @ np.array([0.5, -0.3])) * rng.weibull(1.5, size=60)
    y, is_seen = np.minimum(times, 3.0), times < 3.0

    def log_density(p):
        log_time = jnp.log(y) - p["intercept"] - x @ p["slopes"]
        log_hazard = jnp.log(p["shape"]) + p["shape"] * log_time - jnp.log(y)
        survival = -jnp.exp(p["shape"] * log_time)
        likelihood = jnp.sum(is_seen * log_hazard + survival)
        location = jnp.append(p["slopes"], p["intercept"])
        prior = jnp.sum(norm.logpdf(location, 0, 2))
        return likelihood + prior + log_normal(p["shape"], 0, 1)

    init = {"intercept": 0.0, "slopes": np.zeros(2), "shape": 1.0}
    return Model(log_density, init, {"shape": positive})


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
    """Sum of two decays of unknown rates and amplitudes, hardly identifiable."""
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


def data_folder() -> Path:
    """Where the real data are: the folder that VHMC_DATA names."""
    return find_folder("VHMC_DATA", "a9a.npz")


@cache
def _flights() -> tuple[np.ndarray, np.ndarray]:
    """Eight standardised columns and minutes of delay, early arrivals being 0."""
    with np.load(data_folder() / "nycflights13_delay.npz") as file:
        delay, table = file["arr_delay_minutes"], file["X"]
    rows = np.random.default_rng(2).choice(len(delay), size=1000, replace=False)
    x = table[rows, :8].astype(float)
    return (x - x.mean(axis=0)) / x.std(axis=0), np.maximum(delay[rows], 0.0)

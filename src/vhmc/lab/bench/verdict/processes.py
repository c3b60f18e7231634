"""Processes in time and space; their moments are on file.

Made by benchmarks/verdict_reference.py.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm

from vhmc.lab.bench.calibration.processes import solve
from vhmc.lab.bench.problem import half_normal, log_normal
from vhmc.lab.bench.verdict.case import Case, traced
from vhmc.numerics.constraints import positive


def decay(rng: np.random.Generator) -> Case:
    """An exponential decay to a floor, seen 8 to 30 times with noise."""
    time = np.sort(rng.uniform(0, 4, int(rng.integers(8, 31))))
    height, pace, floor = rng.uniform(1, 3), rng.uniform(0.3, 2), rng.uniform(0.2, 1)
    y = height * np.exp(-pace * time) + floor
    y += rng.uniform(0.05, 0.3) * rng.standard_normal(len(time))

    def log_density(p):
        curve = p["height"] * jnp.exp(-p["pace"] * time) + p["floor"]
        prior = log_normal(p["height"], 0.5, 0.5) + log_normal(p["pace"], 0, 0.7)
        prior += norm.logpdf(p["floor"], 0, 1) + log_normal(p["noise"], -2, 1)
        return jnp.sum(norm.logpdf(y, curve, p["noise"])) + prior

    init = {"height": 1.0, "pace": 1.0, "floor": 0.0, "noise": 0.5}
    supports = dict.fromkeys(("height", "pace", "noise"), positive)
    return traced(log_density, init, constraints=supports)


def epidemic(rng: np.random.Generator) -> Case:
    """Daily counts of an epidemic among a thousand, by a differential equation."""
    days = int(rng.integers(8, 21))

    def infected(contact, recovery, first):
        def field(state):
            healthy, ill = state
            new = contact * healthy * ill / 1000
            return jnp.stack([-new, new - recovery * ill])

        start = jnp.stack([1000 - first, first])
        return solve(field, start, num_times=days, time=1.0, substeps=4)[1:, 1]

    truth = rng.uniform(0.8, 1.6), rng.uniform(0.2, 0.5), rng.uniform(1, 10)
    y = rng.poisson(0.1 * np.asarray(infected(*map(jnp.asarray, truth))))

    def log_density(p):
        rate = 0.1 * infected(p["contact"], p["recovery"], p["first"]) + 1e-6
        prior = log_normal(p["contact"], 0, 0.5) + log_normal(p["recovery"], -1, 0.5)
        likelihood = jnp.sum(y * jnp.log(rate) - rate)
        return likelihood + prior + log_normal(p["first"], 1.5, 0.7)

    init = {"contact": 1.0, "recovery": 0.4, "first": 4.0}
    return traced(log_density, init, constraints=dict.fromkeys(init, positive))


def predators(rng: np.random.Generator) -> Case:
    """Predators and prey over 6 to 12 years, by their logarithms."""
    years = int(rng.integers(6, 13))
    start = jnp.log(jnp.array([30.0, 8.0]))

    def logs(rates):
        def field(state):
            prey, hunters = jnp.exp(state)
            return jnp.stack(
                [rates[0] - rates[1] * hunters, rates[3] * prey - rates[2]]
            )

        return solve(field, start, num_times=years, time=1.0, substeps=8)

    medians = np.array([0.6, 0.04, 0.8, 0.03])
    truth = medians * np.exp(0.2 * rng.standard_normal(4))
    y = np.asarray(logs(jnp.asarray(truth)))
    y = y + rng.uniform(0.1, 0.4) * rng.standard_normal(y.shape)

    def log_density(p):
        likelihood = jnp.sum(norm.logpdf(y, logs(p["rates"]), p["noise"]))
        prior = jnp.sum(log_normal(p["rates"], np.log(medians), 0.3))
        return likelihood + prior + log_normal(p["noise"], -1, 0.7)

    init = {"rates": medians, "noise": 0.5}
    return traced(log_density, init, constraints=dict.fromkeys(init, positive))


def gaussian_process(rng: np.random.Generator) -> Case:
    """Amplitude, length and noise of a Gaussian process seen at 10 to 25 points."""
    x = np.sort(rng.uniform(0, 5, int(rng.integers(10, 26))))
    y = rng.uniform(0.5, 2) * np.sin(rng.uniform(0.7, 2.5) * x)
    y += rng.uniform(0.1, 0.5) * rng.standard_normal(len(x))
    squares, eye = (x[:, None] - x) ** 2, np.eye(len(x))

    def log_density(p):
        kernel = p["amplitude"] ** 2 * jnp.exp(-squares / (2 * p["length"] ** 2))
        factor = jnp.linalg.cholesky(kernel + (p["noise"] ** 2 + 1e-8) * eye)
        white = jax.scipy.linalg.solve_triangular(factor, y, lower=True)
        likelihood = -0.5 * jnp.sum(white**2) - jnp.sum(jnp.log(jnp.diag(factor)))
        prior = log_normal(p["amplitude"], 0, 0.7) + log_normal(p["length"], 0, 0.5)
        return likelihood + prior + log_normal(p["noise"], -1, 0.7)

    init = {"amplitude": 1.0, "length": 1.0, "noise": 1.0}
    return traced(log_density, init, constraints=dict.fromkeys(init, positive))


def latent_process(rng: np.random.Generator) -> Case:
    """Counts at 6 to 10 places, whose log rates are a Gaussian process of known law."""
    number = int(rng.integers(6, 11))
    x = np.sort(rng.uniform(0, 4, number))
    kernel = np.exp(-((x[:, None] - x) ** 2) / (2 * rng.uniform(0.5, 1.5) ** 2))
    factor = rng.uniform(0.5, 1.2) * np.linalg.cholesky(kernel + 1e-6 * np.eye(number))
    y = rng.poisson(np.exp(0.5 + factor @ rng.standard_normal(number)))

    def log_density(p):
        eta = p["level"] + factor @ p["white"]
        likelihood = jnp.sum(y * eta - jnp.exp(eta))
        return (
            likelihood
            + jnp.sum(norm.logpdf(p["white"]))
            + norm.logpdf(p["level"], 0, 2)
        )

    return traced(log_density, {"level": 0.0, "white": np.zeros(number)})


def volatility(rng: np.random.Generator) -> Case:
    """Eight to twelve returns whose log variance is an autoregression, non-centred."""
    number, keep = int(rng.integers(8, 13)), rng.uniform(0.5, 0.95)
    h, path = 0.0, np.empty(number)
    for time in range(number):
        h = keep * h + 0.5 * rng.standard_normal()
        path[time] = h
    y = np.exp((path - 1) / 2) * rng.standard_normal(number)

    def log_density(p):
        def step(h, shock):
            h = keep * h + p["scale"] * shock
            return h, h

        _, path = jax.lax.scan(step, jnp.zeros(()), p["shock"])
        h = p["level"] + path
        likelihood = -0.5 * jnp.sum(h + y**2 * jnp.exp(-h))
        prior = norm.logpdf(p["level"], 0, 2) + half_normal(p["scale"], 0.5)
        return likelihood + prior + jnp.sum(norm.logpdf(p["shock"]))

    init = {"level": 0.0, "scale": 0.3, "shock": np.zeros(number)}
    return traced(log_density, init, constraints={"scale": positive})

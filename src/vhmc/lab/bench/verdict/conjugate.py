"""Models that are Gaussian given one or two scales, which are drawn from a grid."""

import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm

from vhmc.lab.bench.problem import half_normal
from vhmc.lab.bench.verdict.case import Case, traced
from vhmc.numerics.constraints import positive

GRID = 400
"""Points of a grid over one log scale; over two, each has 60."""


def linear(rng: np.random.Generator) -> Case:
    """Linear regression on 1 to 15 correlated columns, noise unknown."""
    size = int(rng.integers(1, 16))
    x = rng.standard_normal((size + int(rng.integers(5, 100)), size))
    x = np.column_stack([np.ones(len(x)), x + rng.uniform(0, 2) * x[:, :1]])
    slopes = rng.standard_normal(size + 1)
    return _normal(x, x @ slopes + rng.uniform(0.3, 2) * rng.standard_normal(len(x)))


def autoregression(rng: np.random.Generator) -> Case:
    """One to five lags of a series of 40 to 200 times, given its beginning."""
    lags, number = int(rng.integers(1, 6)), int(rng.integers(40, 201))
    share = rng.dirichlet(np.ones(lags)) * rng.uniform(0.3, 0.97)
    y = np.zeros(number + lags)
    for time in range(lags, len(y)):
        y[time] = 1 + share @ y[time - lags : time][::-1] + rng.standard_normal()
    columns = [y[lags - k : len(y) - k] for k in range(1, lags + 1)]
    return _normal(np.column_stack([np.ones(number), *columns]), y[lags:])


def _normal(x: np.ndarray, y: np.ndarray) -> Case:
    """Slopes of sd 10 times the noise, whose variance is inverse gamma (2, 1)."""
    precision = x.T @ x + np.eye(x.shape[1]) / 100
    factor = np.linalg.inv(np.linalg.cholesky(precision))
    mean = factor.T @ factor @ (x.T @ y)
    shape = 2 + len(y) / 2
    rate = 1 + 0.5 * (y @ y - mean @ precision @ mean)

    def log_density(p):
        variance = p["noise"] ** 2
        likelihood = jnp.sum(norm.logpdf(y, x @ p["slopes"], p["noise"]))
        prior = jnp.sum(norm.logpdf(p["slopes"], 0, 10 * p["noise"]))
        inverse_gamma = -3 * jnp.log(variance) - 1 / variance
        return likelihood + prior + inverse_gamma + jnp.log(p["noise"])

    def draw(rng, size):
        noise = np.sqrt(rate / rng.gamma(shape, size=(size, 1)))
        white = rng.standard_normal((size, len(mean)))
        return np.concatenate([mean + noise * (white @ factor), noise], axis=1)

    init = {"slopes": np.zeros(len(mean)), "noise": 1.0}
    return traced(log_density, init, draw, {"noise": positive})


def groups_centred(rng: np.random.Generator) -> Case:
    """Normal groups of known errors, the groups' means as parameters."""
    return _groups(rng, is_centred=True)


def groups_noncentred(rng: np.random.Generator) -> Case:
    """The same in units of their scale."""
    return _groups(rng, is_centred=False)


def _groups(rng: np.random.Generator, is_centred: bool) -> Case:
    """Mean of sd 5, half-normal scale of 3; the scale is drawn from its marginal."""
    number = int(rng.integers(4, 21))
    error = rng.uniform(0.3, 3.0) * np.exp(0.3 * rng.standard_normal(number))
    y = 1 + rng.uniform(0.1, 2) * rng.standard_normal(number)
    y += error * rng.standard_normal(number)
    logs = np.linspace(-9, 3, GRID)
    var = np.exp(2 * logs)[:, None] + error**2
    precision = np.sum(1 / var, axis=1) + 1 / 25
    centre = np.sum(y / var, axis=1) / precision
    fit = np.sum(np.log(var) + y**2 / var, axis=1) - centre**2 * precision
    marginal = -0.5 * (fit + np.log(precision)) + logs - 0.5 * (np.exp(logs) / 3) ** 2

    def log_density(p):
        mean, scale, z = p["mean"], p["scale"], p["group"]
        group = z if is_centred else mean + scale * z
        spread = norm.logpdf(z, mean, scale) if is_centred else norm.logpdf(z)
        prior = norm.logpdf(mean, 0, 5) + half_normal(scale, 3)
        return jnp.sum(norm.logpdf(y, group, error)) + jnp.sum(spread) + prior

    def draw(rng, size):
        scale = np.exp(from_grid(rng, logs, marginal, size))[:, None]
        var = scale**2 + error**2
        precision = np.sum(1 / var, axis=1, keepdims=True) + 1 / 25
        mean = np.sum(y / var, axis=1, keepdims=True) / precision
        mean = mean + rng.standard_normal((size, 1)) / np.sqrt(precision)
        known = 1 / (1 / scale**2 + 1 / error**2)
        group = known * (mean / scale**2 + y / error**2)
        group = group + np.sqrt(known) * rng.standard_normal((size, number))
        shown = group if is_centred else (group - mean) / scale
        return np.concatenate([mean, scale, shown], axis=1)

    init = {"mean": 0.0, "scale": 1.0, "group": np.zeros(number)}
    return traced(log_density, init, draw, {"scale": positive})


def local_level(rng: np.random.Generator) -> Case:
    """A random walk of 8 to 30 times seen with noise; its states are parameters."""
    number = int(rng.integers(8, 31))
    y = np.cumsum(rng.uniform(0.1, 1.0) * rng.standard_normal(number))
    y += rng.uniform(0.3, 1.0) * rng.standard_normal(number)
    steps = np.eye(number) - np.eye(number, k=-1)
    logs = np.linspace(-4.5, 1.5, 60)
    log_step, log_noise = (axis.ravel() for axis in np.meshgrid(logs, logs))
    # States are L' x with this tridiagonal precision; a first state of sd one step.
    walk, eye = steps.T @ steps, np.eye(number)

    def factors(log_step, log_noise):
        inner = np.exp(-2 * log_step)[:, None, None] * walk
        inner = inner + np.exp(-2 * log_noise)[:, None, None] * eye
        factor = np.linalg.cholesky(inner)
        mean = np.linalg.solve(
            inner, np.exp(-2 * log_noise)[:, None, None] * y[:, None]
        )
        return factor, mean[..., 0]

    factor, mean = factors(log_step, log_noise)
    log_det = np.log(np.diagonal(factor, axis1=1, axis2=2)).sum(axis=1)
    fit = y @ y - mean @ y
    marginal = -number * (log_step + log_noise) - log_det
    marginal += -0.5 * fit * np.exp(-2 * log_noise) + log_step + log_noise
    marginal += -0.5 * (np.exp(2 * log_step) + np.exp(2 * log_noise))

    def log_density(p):
        before = jnp.concatenate([jnp.zeros(1), p["state"][:-1]])
        walk = jnp.sum(norm.logpdf(p["state"], before, p["step"]))
        seen = jnp.sum(norm.logpdf(y, p["state"], p["noise"]))
        return walk + seen + half_normal(p["step"], 1) + half_normal(p["noise"], 1)

    def draw(rng, size):
        chance = np.exp(marginal - marginal.max())
        cell = rng.choice(len(marginal), size, p=chance / chance.sum())
        width = logs[1] - logs[0]
        white = rng.standard_normal((size, number, 1))
        state = np.empty((size, number))
        for place in np.unique(cell):  # all draws of one grid point at once
            mine = np.flatnonzero(cell == place)
            noise = np.linalg.solve(factor[place].T, white[mine, :, 0].T).T
            state[mine] = mean[place] + noise
        scales = np.stack([log_step[cell], log_noise[cell]], axis=1)
        # Uniform in the cell: the grid is fine next to the sds of the log scales.
        scales = np.exp(scales + width * (rng.uniform(size=scales.shape) - 0.5))
        return np.concatenate([scales, state], axis=1)

    init = {"step": 0.5, "noise": 0.5, "state": np.zeros(number)}
    return traced(log_density, init, draw, dict.fromkeys(("step", "noise"), positive))


def from_grid(
    rng: np.random.Generator, grid: np.ndarray, log_density: np.ndarray, size: int
) -> np.ndarray:
    """Draws of a density on a grid, linear between its points."""
    density = np.exp(log_density - log_density.max())
    mass = np.cumsum((density[1:] + density[:-1]) / 2)
    return np.interp(rng.uniform(size=size), np.append(0, mass) / mass[-1], grid)

"""Recursions and differential equations that overflow at many starts."""

import jax
import jax.numpy as jnp
import numpy as np

from vhmc.lab.bench.search.quest import Quest


def arma() -> Quest:
    """ARMA(1, 1): errors are a recursion that explodes at every other start."""
    rng = np.random.default_rng(20)
    shocks = 0.4 * rng.standard_normal(201)
    y = np.zeros(200)
    for time in range(1, 200):
        y[time] = 1 + 0.7 * y[time - 1] + shocks[time] + 0.5 * shocks[time - 1]

    def log_density(theta):
        level, phi, moving, log_noise = theta

        def step(error, pair):
            now, before = pair
            error = now - level - phi * before - moving * error
            return error, error

        _, errors = jax.lax.scan(step, 0.0, (jnp.asarray(y[1:]), jnp.asarray(y[:-1])))
        likelihood = -0.5 * jnp.sum((errors * jnp.exp(-log_noise)) ** 2)
        prior = -0.5 * jnp.sum((theta / np.array([10.0, 2.0, 2.0, 5.0])) ** 2)
        return likelihood - len(errors) * log_noise + prior

    return Quest(log_density, np.zeros(4), np.array([1.0, 0.7, 0.5, -0.9]))


def garch() -> Quest:
    """GARCH(1, 1) on log scales: variances overflow where they feed themselves."""
    rng = np.random.default_rng(21)
    y, variance = np.zeros(400), 1.0
    for time in range(400):
        y[time] = 0.05 + np.sqrt(variance) * rng.standard_normal()
        variance = 0.1 + 0.2 * (y[time] - 0.05) ** 2 + 0.7 * variance

    def log_density(theta):
        mean = theta[0]
        base, react, keep = jnp.exp(theta[1:])

        def step(variance, now):
            term = jnp.log(variance) + (now - mean) ** 2 / variance
            return base + react * (now - mean) ** 2 + keep * variance, term

        _, terms = jax.lax.scan(step, jnp.asarray(float(np.var(y))), jnp.asarray(y))
        prior = jnp.sum(((theta - np.array([0.0, -2.0, -2.0, -1.0])) / 1.5) ** 2)
        return -0.5 * jnp.sum(terms) - 0.5 * prior

    near = np.array([0.05, np.log(0.1), np.log(0.2), np.log(0.7)])
    return Quest(log_density, np.zeros(4), near)


def autoregression() -> Quest:
    """Eight lags of a series whose level is a thousand, and the noise."""
    rng = np.random.default_rng(22)
    lags = np.array([0.6, 0.2, -0.1, 0.1, 0.0, 0.0, 0.05, 0.0])
    y = np.full(300, 1000.0)
    for time in range(8, 300):
        before = y[time - 8 : time][::-1]
        y[time] = 150 + lags @ before + 5 * rng.standard_normal()
    x = np.stack([np.ones(292), *(y[8 - k : 300 - k] for k in range(1, 9))], axis=1)

    def log_density(theta):
        residual = (y[8:] - x @ theta[:9]) * jnp.exp(-theta[9])
        likelihood = -0.5 * jnp.sum(residual**2) - 292 * theta[9]
        widths = np.array([1000.0, *([2.0] * 8), 5.0])
        return likelihood - 0.5 * jnp.sum((theta / widths) ** 2)

    return Quest(log_density, np.zeros(10), np.array([150.0, *lags, 1.6]))


def lotka_volterra_raw() -> Quest:
    """Predators and prey by Runge-Kutta in raw numbers: overflows at half the starts.

    Logarithms of four rates and of the noise.
    """
    truth = np.log(np.array([0.6, 0.025, 0.8, 0.025, 0.2]))

    def path(theta):
        grow, eaten, starve, feed = jnp.exp(theta[:4])

        def field(state):
            prey, hunters = state
            return jnp.stack(
                [prey * (grow - eaten * hunters), hunters * (feed * prey - starve)]
            )

        return _solve(field, jnp.array([30.0, 10.0]), 15, 10)

    rng = np.random.default_rng(23)
    clean = np.asarray(path(truth))
    y = np.log(clean) + 0.2 * rng.standard_normal(clean.shape)

    def log_density(theta):
        residual = (y - jnp.log(path(theta))) * jnp.exp(-theta[4])
        likelihood = -0.5 * jnp.sum(residual**2) - y.size * theta[4]
        centre = np.log(np.array([1.0, 0.05, 1.0, 0.05, 0.3]))
        return likelihood - 0.5 * jnp.sum(((theta - centre) / 0.7) ** 2)

    start = np.log(np.array([1.0, 0.05, 1.0, 0.05, 0.3]))
    return Quest(log_density, start, truth, spread=1.0)


def sir_raw() -> Quest:
    """An epidemic in a city of a million, by Runge-Kutta; cases with Poisson noise."""

    def cases(theta):
        contact, recovery, first = jnp.exp(theta)

        def field(state):
            healthy, ill, _ = state
            new = contact * healthy * ill / 1e6
            return jnp.stack([-new, new - recovery * ill, new])

        start = jnp.stack([1e6 - first, first, jnp.zeros(())])
        return jnp.diff(_solve(field, start, 25, 4)[:, 2])

    truth = np.log(np.array([0.9, 0.4, 20.0]))
    y = np.random.default_rng(24).poisson(np.asarray(cases(truth)) / 100).astype(float)

    def log_density(theta):
        rate = cases(theta) / 100
        prior = jnp.sum(((theta - np.array([0.0, -1.0, 3.0])) / 1.0) ** 2)
        return jnp.sum(y * jnp.log(rate) - rate) - 0.5 * prior

    return Quest(log_density, np.array([0.0, -1.0, 3.0]), truth, spread=1.0)


def _solve(field, initial, num_times: int, substeps: int):
    """States at whole times by Runge-Kutta of order four, the first included."""
    width = 1.0 / substeps

    def step(state, _):
        k1 = field(state)
        k2 = field(state + width / 2 * k1)
        k3 = field(state + width / 2 * k2)
        k4 = field(state + width * k3)
        return state + width / 6 * (k1 + 2 * k2 + 2 * k3 + k4), state

    return jax.lax.scan(step, initial, length=num_times * substeps + 1)[1][::substeps]


def _walk() -> np.ndarray:
    rng = np.random.default_rng(25)
    level = 800 + np.cumsum(30 * rng.standard_normal(40))
    return level + 100 * rng.standard_normal(40)


def walk_filtered() -> Quest:
    """A random walk seen with noise, states integrated out: level and two log sds."""
    y = _walk()

    def log_density(theta):
        first, log_step, log_noise = theta
        step_var, noise_var = jnp.exp(2 * log_step), jnp.exp(2 * log_noise)

        def advance(state, now):
            mean, var = state
            total = var + noise_var
            term = -0.5 * (jnp.log(total) + (now - mean) ** 2 / total)
            gain = var / total
            mean, var = mean + gain * (now - mean), var * (1 - gain) + step_var
            return (mean, var), term

        _, terms = jax.lax.scan(advance, (first, step_var), jnp.asarray(y))
        logs = ((theta[1:] - 3.0) / 3) ** 2
        return jnp.sum(terms) - 0.5 * (first / 2000) ** 2 - 0.5 * jnp.sum(logs)

    return Quest(log_density, np.zeros(3), np.array([800.0, 3.4, 4.6]))


def walk_noncentred() -> Quest:
    """The same walk with its 40 steps as standard normal parameters."""
    y = _walk()

    def log_density(theta):
        first, log_step, log_noise = theta[:3]
        level = first + jnp.exp(log_step) * jnp.cumsum(theta[3:])
        residual = (y - level) * jnp.exp(-log_noise)
        likelihood = -0.5 * jnp.sum(residual**2) - len(y) * log_noise
        logs = ((theta[1:3] - 3.0) / 3) ** 2
        prior = (first / 2000) ** 2 + jnp.sum(logs) + jnp.sum(theta[3:] ** 2)
        return likelihood - 0.5 * prior

    near = np.concatenate([[800.0, 3.4, 4.6], np.zeros(40)])
    return Quest(log_density, np.zeros(43), near)

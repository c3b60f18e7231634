"""Models of time series and of processes in time."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jax.scipy.stats import beta, gamma, norm
from jaxtyping import Array

from vhmc.lab.bench.problem import Model, half_normal, log_normal, negative_binomial
from vhmc.numerics.constraints import (
    AbstractConstraint,
    interval,
    ordered,
    positive,
    unit_interval,
)


def lotka_volterra() -> Model:
    """Predators and prey over 20 years, seen with log-normal noise."""

    def log_populations(rates, initial):
        def field(logs):
            prey, predators = jnp.exp(logs)
            growth = rates[0] - rates[1] * predators
            return jnp.stack([growth, rates[3] * prey - rates[2]])

        return solve(field, jnp.log(initial), num_times=20, time=1.0, substeps=10)

    rng = np.random.default_rng(4)
    truth = log_populations(np.array([0.55, 0.028, 0.8, 0.024]), np.array([33.0, 6.0]))
    y = np.asarray(truth) + 0.25 * rng.standard_normal((21, 2))
    medians = np.array([1.0, 0.05, 1.0, 0.05])

    def log_density(p):
        logs = log_populations(p["rates"], p["initial"])
        likelihood = jnp.sum(norm.logpdf(y, logs, p["noise"]))
        prior = jnp.sum(log_normal(p["rates"], jnp.log(medians), 0.5))
        prior += jnp.sum(log_normal(p["initial"], jnp.log(10), 1))
        return likelihood + prior + jnp.sum(log_normal(p["noise"], -1, 1))

    init = {"rates": medians, "initial": np.full(2, 10.0), "noise": np.ones(2)}
    return Model(log_density, init, dict.fromkeys(init, positive))


def sir_epidemic() -> Model:
    """People in bed during 14 days of an epidemic among 763, overdispersed."""
    people = 763.0

    def infected(contact, recovery, first):
        def field(state):
            susceptible, ill = state
            new = contact * susceptible * ill / people
            return jnp.stack([-new, new - recovery * ill])

        start = jnp.stack([people - first, first])
        return solve(field, start, num_times=14, time=1.0, substeps=10)[1:, 1]

    rng = np.random.default_rng(5)
    rates = np.asarray(infected(1.7, 0.5, jnp.asarray(2.0)))
    y = rng.poisson(rates * rng.gamma(10, 1 / 10, size=14)).astype(float)

    def log_density(p):
        ill = infected(p["contact"], p["recovery"], p["first"])
        likelihood = jnp.sum(negative_binomial(y, jnp.log(ill), p["size"]))
        prior = half_normal(p["contact"], 3) + half_normal(p["recovery"], 1)
        prior += log_normal(p["first"], 1, 1)
        return likelihood + prior + log_normal(p["size"], 2, 1)

    init = {"contact": 1.0, "recovery": 0.3, "first": 1.0, "size": 5.0}
    constraints: dict[str, AbstractConstraint] = dict.fromkeys(init, positive)
    constraints["first"] = interval(0.0, people)
    return Model(log_density, init, constraints)


def volatility_returns() -> np.ndarray:
    """Forty simulated returns whose log variance is an autoregression."""
    rng = np.random.default_rng(7)
    shocks = rng.standard_normal(40)
    truth = _log_variances({"mu": -1.0, "phi": 0.9, "sigma": 0.5, "z": shocks})
    return np.exp(np.array(truth) / 2) * rng.standard_normal(40)


def _log_variances(p) -> list:
    """The autoregression of white shocks; also serves draws of any leading shape."""
    path = [p["mu"] + p["sigma"] * p["z"][..., 0] / (1 - p["phi"] ** 2) ** 0.5]
    for k in range(1, p["z"].shape[-1]):
        step = p["phi"] * (path[-1] - p["mu"]) + p["sigma"] * p["z"][..., k]
        path.append(p["mu"] + step)
    return path


def stochastic_volatility() -> Model:
    """Forty returns whose log variance is an autoregression, non-centred."""
    y = volatility_returns()

    def log_density(p):
        h = jnp.stack(_log_variances(p))
        likelihood = -0.5 * jnp.sum(h + y**2 * jnp.exp(-h))
        prior = norm.logpdf(p["mu"], 0, 2) + beta.logpdf((1 + p["phi"]) / 2, 20, 1.5)
        prior += half_normal(p["sigma"], 0.5)
        return likelihood + prior + jnp.sum(norm.logpdf(p["z"]))

    def report(d):
        scalars = {name: d[name] for name in ("mu", "phi", "sigma")}
        return scalars | {"h": np.stack(_log_variances(d), axis=-1)}

    init = {"mu": 0.0, "phi": 0.5, "sigma": 0.3, "z": np.zeros(len(y))}
    constraints = {"phi": interval(-1.0, 1.0), "sigma": positive}
    return Model(log_density, init, constraints, report)


def hidden_markov() -> Model:
    """Two hidden states with normal emissions, states summed out, 100 times."""
    rng = np.random.default_rng(8)
    state, y = 0, np.empty(100)
    for time in range(100):
        state = state if rng.uniform() < (0.9, 0.8)[state] else 1 - state
        y[time] = rng.normal((-1.0, 1.5)[state], (1.0, 0.7)[state])

    def log_density(p):
        stay, leave = jnp.log(p["stay"]), jnp.log1p(-p["stay"])
        transition = jnp.diag(stay) + jnp.diag(leave[:1], 1) + jnp.diag(leave[1:], -1)
        emission = norm.logpdf(y[:, None], p["mean"], p["sd"])

        def advance(alpha, observed):
            return logsumexp(alpha[:, None] + transition, axis=0) + observed, None

        last, _ = jax.lax.scan(advance, emission[0] - jnp.log(2.0), emission[1:])
        prior = jnp.sum(beta.logpdf(p["stay"], 4, 2) + half_normal(p["sd"], 2))
        return logsumexp(last) + prior + jnp.sum(norm.logpdf(p["mean"], 0, 3))

    init = {"stay": np.full(2, 0.5), "mean": np.array([-0.5, 0.5]), "sd": np.ones(2)}
    constraints = {"stay": unit_interval, "mean": ordered, "sd": positive}
    return Model(log_density, init, constraints)


def change_point_counts() -> np.ndarray:
    """Forty yearly counts whose rate falls after the fifteenth."""
    rng = np.random.default_rng(23)
    return rng.poisson(np.repeat([3.0, 1.8], [15, 25])).astype(float)


def change_point() -> Model:
    """Poisson rates before and after a year that is unknown and summed out."""
    y = change_point_counts()
    before = np.cumsum(y)[:-1]
    after = y.sum() - before
    years = np.arange(1, len(y))

    def log_density(p):
        first, second = p["first"], p["second"]
        log_rates = before * jnp.log(first) + after * jnp.log(second)
        by_year = log_rates - years * first - (len(y) - years) * second
        prior = gamma.logpdf(first, 2) + gamma.logpdf(second, 2)
        return logsumexp(by_year) + prior

    init = {"first": 1.0, "second": 1.0}
    return Model(log_density, init, dict.fromkeys(init, positive))


def solve(field, initial, num_times: int, time: float, substeps: int) -> Array:
    """Runge-Kutta of order four: states at 0 and at multiples of `time`."""
    width = time / substeps

    def step(state, _):
        k1 = field(state)
        k2 = field(state + width / 2 * k1)
        k3 = field(state + width / 2 * k2)
        k4 = field(state + width * k3)
        return state + width / 6 * (k1 + 2 * k2 + 2 * k3 + k4), state

    num_steps = num_times * substeps + 1  # one more, to save the state at the end
    return jax.lax.scan(step, initial, length=num_steps)[1][::substeps]

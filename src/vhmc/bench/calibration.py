"""Posteriors on which the verdict is calibrated: what a new user might bring.

None of them is in `vhmc.bench.problems`, on which the method was tuned. They run from
easy regressions to densities that no budget can explore. Data are simulated here, but
for two regressions on real data. Starts are plain, not tuned. Reference moments are
made by benchmarks/calibration_reference.py.
"""

import json
import os
from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln, logsumexp, xlogy
from jax.scipy.stats import beta, gamma, norm, t
from jaxtyping import Array

from vhmc.bench.problem import Draws, Problem
from vhmc.core.transforms import (
    AbstractConstraint,
    interval,
    ordered,
    positive,
    simplex,
    unit_interval,
)
from vhmc.targets.from_jax import from_jax

REFERENCE = "calibration_reference.json"
"""Moments by problem and quantity, made by benchmarks/calibration_reference.py."""


class Model(NamedTuple):
    """A log density with its parameters, and what is reported of them.

    report: from named draws to named quantities, both of any leading shape.
    is_gaussian: whether the posterior is close to a Gaussian in the free space.
    """

    log_density: Callable[[Any], Array]
    init: Any
    constraints: Mapping[str, AbstractConstraint] = {}
    report: Callable[[Draws], Draws] = dict
    is_gaussian: bool = False


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
    return Model(log_density, init, is_gaussian=True)


def negative_binomial_flights() -> Model:
    """Negative-binomial regression of minutes of delay, 1,000 flights.

    Three counts in five are zero, and temperature, dew point and humidity are
    nearly collinear.
    """
    x, y = _flights()

    def log_density(p):
        eta = p["intercept"] + x @ p["slopes"]
        likelihood = jnp.sum(_negative_binomial(y, eta, p["size"]))
        prior = norm.logpdf(p["intercept"], 0, 5) + _half_normal(p["size"], 2)
        return likelihood + prior + jnp.sum(norm.logpdf(p["slopes"]))

    init = {"intercept": 0.0, "slopes": np.zeros(x.shape[1]), "size": 1.0}
    return Model(log_density, init, {"size": positive}, is_gaussian=True)


def robust_regression() -> Model:
    """Linear regression with Student-t errors of unknown degrees of freedom."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal((40, 3))
    y = 1 + x @ np.array([0.5, -1.0, 0.0]) + 0.5 * rng.standard_t(2, size=40)

    def log_density(p):
        residual = (y - p["intercept"] - x @ p["slopes"]) / p["scale"]
        likelihood = jnp.sum(t.logpdf(residual, p["freedom"]) - jnp.log(p["scale"]))
        location = jnp.append(p["slopes"], p["intercept"])
        prior = jnp.sum(norm.logpdf(location, 0, 5)) + _half_normal(p["scale"], 2)
        return likelihood + prior + gamma.logpdf(p["freedom"], 2, scale=10)

    init = {"intercept": 0.0, "slopes": np.zeros(3), "scale": 1.0, "freedom": 5.0}
    constraints = {"scale": positive, "freedom": positive}
    return Model(log_density, init, constraints)


def lotka_volterra() -> Model:
    """Predators and prey over 20 years, seen with log-normal noise."""

    def log_populations(rates, initial):
        def field(logs):
            prey, predators = jnp.exp(logs)
            growth = rates[0] - rates[1] * predators
            return jnp.stack([growth, rates[3] * prey - rates[2]])

        return _solve(field, jnp.log(initial), num_times=20, time=1.0, substeps=10)

    rng = np.random.default_rng(4)
    truth = log_populations(np.array([0.55, 0.028, 0.8, 0.024]), np.array([33.0, 6.0]))
    y = np.asarray(truth) + 0.25 * rng.standard_normal((21, 2))
    medians = np.array([1.0, 0.05, 1.0, 0.05])

    def log_density(p):
        logs = log_populations(p["rates"], p["initial"])
        likelihood = jnp.sum(norm.logpdf(y, logs, p["noise"]))
        prior = jnp.sum(_log_normal(p["rates"], jnp.log(medians), 0.5))
        prior += jnp.sum(_log_normal(p["initial"], jnp.log(10), 1))
        return likelihood + prior + jnp.sum(_log_normal(p["noise"], -1, 1))

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
        return _solve(field, start, num_times=14, time=1.0, substeps=10)[1:, 1]

    rng = np.random.default_rng(5)
    rates = np.asarray(infected(1.7, 0.5, jnp.asarray(2.0)))
    y = rng.poisson(rates * rng.gamma(10, 1 / 10, size=14)).astype(float)

    def log_density(p):
        ill = infected(p["contact"], p["recovery"], p["first"])
        likelihood = jnp.sum(_negative_binomial(y, jnp.log(ill), p["size"]))
        prior = _half_normal(p["contact"], 3) + _half_normal(p["recovery"], 1)
        prior += _log_normal(p["first"], 1, 1)
        return likelihood + prior + _log_normal(p["size"], 2, 1)

    init = {"contact": 1.0, "recovery": 0.3, "first": 1.0, "size": 5.0}
    constraints: dict[str, AbstractConstraint] = dict.fromkeys(init, positive)
    constraints["first"] = interval(0.0, people)
    return Model(log_density, init, constraints)


def michaelis_menten() -> Model:
    """Eight velocities of a reaction that saturates beyond the data: a curved ridge."""
    rng = np.random.default_rng(6)
    x = np.array([0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.5])
    y = 2 * x / (1.5 + x) + 0.06 * rng.standard_normal(8)

    def log_density(p):
        velocity = p["limit"] * x / (p["half"] + x)
        likelihood = jnp.sum(norm.logpdf(y, velocity, p["noise"]))
        prior = _log_normal(p["limit"], 0, 1.5) + _log_normal(p["half"], 0, 1.5)
        return likelihood + prior + _half_normal(p["noise"], 0.5)

    init = {"limit": 1.0, "half": 1.0, "noise": 0.5}
    return Model(log_density, init, dict.fromkeys(init, positive), _logs(*init))


def stochastic_volatility() -> Model:
    """Forty returns whose log variance is an autoregression, non-centred."""
    rng = np.random.default_rng(7)
    times = 40

    def log_variances(p):
        """Also serves draws of any leading shape."""
        first = p["mu"] + p["sigma"] * p["z"][..., 0] / (1 - p["phi"] ** 2) ** 0.5
        path = [first]
        for k in range(1, times):
            step = p["phi"] * (path[-1] - p["mu"]) + p["sigma"] * p["z"][..., k]
            path.append(p["mu"] + step)
        return path

    shocks = rng.standard_normal(times)
    truth = log_variances({"mu": -1.0, "phi": 0.9, "sigma": 0.5, "z": shocks})
    y = np.exp(np.array(truth) / 2) * rng.standard_normal(times)

    def log_density(p):
        h = jnp.stack(log_variances(p))
        likelihood = -0.5 * jnp.sum(h + y**2 * jnp.exp(-h))
        prior = norm.logpdf(p["mu"], 0, 2) + beta.logpdf((1 + p["phi"]) / 2, 20, 1.5)
        prior += _half_normal(p["sigma"], 0.5)
        return likelihood + prior + jnp.sum(norm.logpdf(p["z"]))

    def report(d):
        scalars = {name: d[name] for name in ("mu", "phi", "sigma")}
        return scalars | {"h": np.stack(log_variances(d), axis=-1)}

    init = {"mu": 0.0, "phi": 0.5, "sigma": 0.3, "z": np.zeros(times)}
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
        prior = jnp.sum(beta.logpdf(p["stay"], 4, 2) + _half_normal(p["sd"], 2))
        return logsumexp(last) + prior + jnp.sum(norm.logpdf(p["mean"], 0, 3))

    init = {"stay": np.full(2, 0.5), "mean": np.array([-0.5, 0.5]), "sd": np.ones(2)}
    constraints = {"stay": unit_interval, "mean": ordered, "sd": positive}
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
        prior = jnp.sum(norm.logpdf(p["z"]) + _half_cauchy(p["local"], 1))
        prior += _half_cauchy(p["overall"], 0.5) + _half_normal(p["noise"], 2)
        return likelihood + prior

    def report(d):
        logs = _logs("overall", "local")(d)
        chosen = ("noise", "log_overall", "log_local")
        return {"slopes": slopes(d)} | {name: logs[name] for name in chosen}

    init = {"z": np.zeros(10), "local": np.ones(10), "overall": 1.0, "noise": 1.0}
    constraints = {name: positive for name in ("local", "overall", "noise")}
    return Model(log_density, init, constraints, report)


def funnel() -> Model:
    r"""Neal's funnel, $v \sim N(0, 3^2)$ and nine $x_i \sim N(0, e^v)$."""

    def log_density(theta):
        v, x = theta[0], theta[1:]
        return norm.logpdf(v, 0, 3) + jnp.sum(norm.logpdf(x, 0, jnp.exp(v / 2)))

    def report(d):
        return {"v": d["theta"][..., 0], "asinh_x": np.arcsinh(d["theta"][..., 1:])}

    return Model(log_density, np.ones(10), report=report)


class TwoNormals(NamedTuple):
    """Components with a row of means and standard deviations each."""

    means: np.ndarray
    sds: np.ndarray
    weights: np.ndarray


FAR_MODES = TwoNormals(
    np.array([[-4.0, 0.0], [4.0, 0.0]]), np.ones((2, 2)), np.array([0.7, 0.3])
)
NEAR_MODES = TwoNormals(
    np.array([[-0.9] * 5, [0.9] * 5]),
    np.array([[1.0, 1.0, 1.0, 0.5, 0.5], [0.7, 0.7, 1.0, 1.0, 1.0]]),
    np.array([0.6, 0.4]),
)


def two_modes(mixture: TwoNormals) -> Model:
    """Mixture of two normals, started from between them."""

    def log_density(theta):
        parts = jnp.sum(norm.logpdf(theta, mixture.means, mixture.sds), axis=1)
        return logsumexp(parts + jnp.log(mixture.weights))

    return Model(log_density, np.zeros(mixture.means.shape[1]))


def ring() -> Model:
    """A ring of radius 3 and width 0.3 in the plane."""

    def log_density(theta):
        return norm.logpdf(jnp.sqrt(jnp.sum(theta**2)), 3, 0.3)

    def report(d):
        x, y = d["theta"][..., 0], d["theta"][..., 1]
        return {"x": x, "y": y, "radius": np.hypot(x, y), "xy": x * y}

    return Model(log_density, np.array([2.0, 1.0]), report=report)


GAMMA_SHAPES = np.array([0.3, 1.0, 4.0])
INVERSE_SHAPES = np.array([1.5, 5.0])


def gamma_scales() -> Model:
    """Gamma and inverse-gamma variables, skewed on the log scale."""

    def log_density(p):
        direct = jnp.sum(gamma.logpdf(p["rate"], GAMMA_SHAPES))
        inverse = gamma.logpdf(1 / p["variance"], INVERSE_SHAPES)
        return direct + jnp.sum(inverse - 2 * jnp.log(p["variance"]))

    init = {"rate": np.ones(3), "variance": np.ones(2)}
    return Model(log_density, init, dict.fromkeys(init, positive), _logs("variance"))


HEAVY_SCALES = np.array([1.0, 0.5, 2.0, 1.0, 5.0])
HEAVY_CORRELATION = 0.7


def heavy_tails() -> Model:
    """Student t of two degrees of freedom: no variance, so asinh is reported."""
    scatter = equicorrelated(HEAVY_SCALES, HEAVY_CORRELATION)
    precision = np.linalg.inv(scatter)

    def log_density(theta):
        return -0.5 * (2 + 5) * jnp.log1p(theta @ precision @ theta / 2)

    return Model(
        log_density,
        np.ones(5),
        report=lambda d: {"asinh_theta": np.arcsinh(d["theta"] / HEAVY_SCALES)},
    )


SIMPLEX_COUNTS = np.array([0.0, 1.0, 3.0, 10.0, 30.0, 56.0])


def dirichlet() -> Model:
    """Shares of six kinds from 100 counts, one kind never seen; prior of 1/2 each."""

    def log_density(p):
        return jnp.sum((SIMPLEX_COUNTS - 0.5) * jnp.log(p["share"]))

    return Model(log_density, {"share": np.full(6, 1 / 6)}, {"share": simplex})


TRUNCATED_SCALES = np.array([1.0, 0.5, 2.0, 1.0])
TRUNCATED_CORRELATION = 0.5
TRUNCATED_NORMAL = np.array([1.0, 1.0, 0.5, -0.5])
TRUNCATED_EDGE = 0.5


def truncated_gaussian() -> Model:
    """Four-dimensional normal on one side of a plane, which its centre is not on."""
    cov = equicorrelated(TRUNCATED_SCALES, TRUNCATED_CORRELATION)
    precision = np.linalg.inv(cov)

    def log_density(theta):
        is_inside = theta @ TRUNCATED_NORMAL > TRUNCATED_EDGE
        return jnp.where(is_inside, -0.5 * theta @ precision @ theta, -jnp.inf)

    return Model(log_density, np.ones(4))


def rosenbrock() -> Model:
    """Rosenbrock's valley with coefficients 1 and 20."""

    def log_density(theta):
        x, y = theta
        return -((1 - x) ** 2) - 20 * (y - x**2) ** 2

    return Model(log_density, np.array([-1.0, 1.0]))


def hierarchical_normal() -> Model:
    """Nine groups of fifteen measurements, centred: the data are informative."""
    rng = np.random.default_rng(19)
    groups = 3 + 1.5 * rng.standard_normal(9)
    y = groups[:, None] + rng.standard_normal((9, 15))

    def log_density(p):
        likelihood = jnp.sum(norm.logpdf(y, p["group"][:, None], p["noise"]))
        population = jnp.sum(norm.logpdf(p["group"], p["mean"], p["spread"]))
        prior = norm.logpdf(p["mean"], 0, 10) + _half_normal(p["spread"], 5)
        return likelihood + population + prior + _half_normal(p["noise"], 5)

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
    return Model(log_density, init, is_gaussian=True)


def plateau() -> Model:
    """A sigmoid response; the start is where only the prior has a slope."""
    rng = np.random.default_rng(21)
    x = np.linspace(-2, 2, 15)
    y = 1 / (1 + np.exp(-2 * (x - 0.3))) + 0.1 * rng.standard_normal(15)

    def log_density(p):
        response = p["top"] * jax.nn.sigmoid(p["slope"] * (x - p["centre"]))
        likelihood = jnp.sum(norm.logpdf(y, response, 0.1))
        prior = norm.logpdf(p["centre"], 0, 10) + _log_normal(p["slope"], 0, 1)
        return likelihood + prior + _log_normal(p["top"], 0, 0.5)

    init = {"centre": 20.0, "slope": 1.0, "top": 1.0}
    constraints = {"slope": positive, "top": positive}
    return Model(log_density, init, constraints, _logs("slope", "top"))


def two_exponentials() -> Model:
    """Sum of two decays of unknown rates and amplitudes, hardly told apart."""
    rng = np.random.default_rng(22)
    time = np.linspace(0, 5, 20)
    y = 0.6 * np.exp(-0.4 * time) + np.exp(-1.6 * time) + rng.normal(0, 0.04, 20)

    def log_density(p):
        decays = jnp.exp(-jnp.exp(p["log_rates"]) * time[:, None])
        likelihood = jnp.sum(norm.logpdf(y, decays @ p["amplitudes"], p["noise"]))
        prior = jnp.sum(norm.logpdf(p["log_rates"], 0, 1))
        prior += jnp.sum(_log_normal(p["amplitudes"], 0, 0.5))
        return likelihood + prior + _half_normal(p["noise"], 0.5)

    init = {"log_rates": np.array([-1.0, 1.0]), "amplitudes": np.ones(2), "noise": 0.5}
    constraints = {"log_rates": ordered, "amplitudes": positive, "noise": positive}
    return Model(log_density, init, constraints, _logs("amplitudes", "noise"))


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
        return likelihood + prior + _log_normal(p["shape"], 0, 1)

    init = {"intercept": 0.0, "slopes": np.zeros(2), "shape": 1.0}
    return Model(log_density, init, {"shape": positive}, is_gaussian=True)


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
        prior = _half_normal(p["amplitude"], 2) + _log_normal(p["length"], 0, 1)
        return likelihood + prior + _half_normal(p["noise"], 1)

    init = {"amplitude": 1.0, "length": 1.0, "noise": 1.0}
    return Model(log_density, init, dict.fromkeys(init, positive), _logs(*init))


MODELS: dict[str, Callable[[], Model]] = {
    "logistic-a9a": logistic_a9a,
    "negative-binomial-flights": negative_binomial_flights,
    "robust-regression": robust_regression,
    "lotka-volterra": lotka_volterra,
    "sir-epidemic": sir_epidemic,
    "michaelis-menten": michaelis_menten,
    "stochastic-volatility": stochastic_volatility,
    "hidden-markov": hidden_markov,
    "horseshoe": horseshoe,
    "funnel": funnel,
    "two-modes-2d": partial(two_modes, FAR_MODES),
    "two-modes-5d": partial(two_modes, NEAR_MODES),
    "ring": ring,
    "gamma-scales": gamma_scales,
    "heavy-tails": heavy_tails,
    "dirichlet": dirichlet,
    "truncated-gaussian": truncated_gaussian,
    "rosenbrock": rosenbrock,
    "hierarchical-normal": hierarchical_normal,
    "item-response": item_response,
    "plateau": plateau,
    "two-exponentials": two_exponentials,
    "change-point": change_point,
    "weibull-survival": weibull_survival,
    "gaussian-process": gaussian_process,
}


def problem(name: str) -> Problem:
    """One of `MODELS` with its stored moments."""
    model = MODELS[name]()
    text = resources.files(__package__).joinpath(REFERENCE).read_text()
    moments = json.loads(text)[name]["quantities"]
    names = quantity_names(model)
    return Problem(
        name,
        lambda: from_jax(model.log_density, model.init, model.constraints),
        partial(quantities, model),
        names,
        np.array([moments[name]["mean"] for name in names]),
        np.array([moments[name]["sd"] for name in names]),
        model.is_gaussian,
    )


CALIBRATION: dict[str, Callable[[], Problem]] = {
    name: partial(problem, name) for name in MODELS
}


def quantities(model: Model, draws: Draws) -> np.ndarray:
    """What the model reports, along a last axis."""
    name, shape = next((k, v.shape) for k, v in _start(model).items())
    values = np.asarray(draws[name])
    leading = values.shape[: values.ndim - len(shape)]
    parts = model.report(draws).values()
    return np.concatenate([np.reshape(part, (*leading, -1)) for part in parts], axis=-1)


def quantity_names(model: Model) -> tuple[str, ...]:
    """Names in the order of `quantities`, entries of an array counted from one."""
    names: list[str] = []
    for name, value in model.report(_start(model)).items():
        entries = [f"{name}[{i + 1}]" for i in range(np.size(value))]
        names += entries if np.ndim(value) else [name]
    return tuple(names)


def data_folder() -> Path:
    """Find the data: VHMC_DATA, or ../shared/data of here or of the code."""
    if "VHMC_DATA" in os.environ:
        candidates = [Path(os.environ["VHMC_DATA"])]
    else:
        roots = [Path.cwd(), Path(__file__).resolve().parents[3]]
        candidates = [root.parent / "shared" / "data" for root in roots]
    for candidate in candidates:
        if (candidate / "a9a.npz").is_file():
            return candidate
    raise FileNotFoundError(
        f"no a9a.npz in {' or '.join(map(str, candidates))}: set VHMC_DATA to the "
        "folder of the data"
    )


@cache
def _flights() -> tuple[np.ndarray, np.ndarray]:
    """Eight standardised columns and minutes of delay, early arrivals being 0."""
    with np.load(data_folder() / "nycflights13_delay.npz") as file:
        delay, table = file["arr_delay_minutes"], file["X"]
    rows = np.random.default_rng(2).choice(len(delay), size=1000, replace=False)
    x = table[rows, :8].astype(float)
    return (x - x.mean(axis=0)) / x.std(axis=0), np.maximum(delay[rows], 0.0)


def _start(model: Model) -> Draws:
    init = model.init if isinstance(model.init, dict) else {"theta": model.init}
    return {name: np.asarray(value, dtype=float) for name, value in init.items()}


def _logs(*names: str) -> Callable[[Draws], Draws]:
    """Report these parameters on a log scale, since their tails are long."""

    def report(draws):
        return {
            f"log_{name}" if name in names else name: (
                np.log(value) if name in names else value
            )
            for name, value in draws.items()
        }

    return report


def _solve(field, initial, num_times: int, time: float, substeps: int) -> Array:
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


def equicorrelated(scales: np.ndarray, correlation: float) -> np.ndarray:
    """Covariance matrix with one correlation throughout."""
    eye = np.eye(len(scales))
    return np.outer(scales, scales) * (correlation + (1 - correlation) * eye)


def _negative_binomial(count, log_mean, size) -> Array:
    """Log probability of counts of variance mean + mean^2 / size."""
    log_total = jnp.logaddexp(log_mean, jnp.log(size))
    ways = gammaln(count + size) - gammaln(size)
    return ways + count * log_mean + xlogy(size, size) - (count + size) * log_total


def _log_normal(value, location, scale) -> Array:
    return norm.logpdf(jnp.log(value), location, scale) - jnp.log(value)


def _half_normal(value, scale) -> Array:
    return -0.5 * (value / scale) ** 2


def _half_cauchy(value, scale) -> Array:
    return -jnp.log1p((value / scale) ** 2)

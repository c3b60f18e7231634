"""Six posteriors of posteriordb, read from the folder that VHMC_POSTERIORS names.

The models are those of the folder's README; initial values are not tuned.
"""

import json
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm

from vhmc.lab.bench.problem import Model, Problem, half_cauchy, with_moments
from vhmc.lab.data.dataset import find_folder
from vhmc.numerics.constraints import ordered, positive, unit_interval

JITTER = 1e-10
"""On the diagonal of the Gaussian process's covariance, as in the Stan model."""


def folder() -> Path:
    """Where data and reference moments are."""
    return find_folder("VHMC_POSTERIORS", "reference.json")


def ark() -> Problem:
    """Autoregression of order five."""
    series = data("arK")
    y, order = series["y"], int(series["K"])
    lags = np.stack([y[order - k : len(y) - k] for k in range(1, order + 1)], axis=1)

    def log_density(p):
        mean = p["alpha"] + lags @ p["beta"]
        likelihood = jnp.sum(norm.logpdf(y[order:], mean, p["sigma"]))
        prior = norm.logpdf(p["alpha"], 0, 10) + jnp.sum(norm.logpdf(p["beta"], 0, 10))
        return likelihood + prior + half_cauchy(p["sigma"], 2.5)

    init = {"alpha": 0.0, "beta": np.zeros(order), "sigma": 1.0}
    return _problem("arK", Model(log_density, init, {"sigma": positive}))


def eight_schools() -> Problem:
    """Coaching effects in eight schools, non-centred."""
    return _problem("eight_schools", eight_schools_model())


def eight_schools_model() -> Model:
    r"""Model on $t_j = (\theta_j - \mu) / \tau$ that reports the $\theta_j$."""
    schools = data("eight_schools")
    y, sigma = schools["y"], schools["sigma"]

    def log_density(p):
        likelihood = jnp.sum(norm.logpdf(y, p["mu"] + p["tau"] * p["t"], sigma))
        prior = norm.logpdf(p["mu"], 0, 5) + jnp.sum(norm.logpdf(p["t"]))
        return likelihood + prior + half_cauchy(p["tau"], 5.0)

    def report(d):
        theta = d["mu"][..., None] + d["tau"][..., None] * d["t"]
        return {"theta": theta, "mu": d["mu"], "tau": d["tau"]}

    init = {"mu": 0.0, "tau": 1.0, "t": np.zeros(len(y))}
    return Model(log_density, init, {"tau": positive}, report)


def garch() -> Problem:
    r"""GARCH(1, 1), with $\beta_1$ written as a fraction of $1 - \alpha_1$."""
    series = data("garch")
    y, first = series["y"], float(series["sigma1"]) ** 2

    def log_density(p):
        beta1 = (1 - p["alpha1"]) * p["share"]

        def advance(variance, previous):
            shock = p["alpha1"] * (previous - p["mu"]) ** 2
            variance = p["alpha0"] + shock + beta1 * variance
            return variance, variance

        _, later = jax.lax.scan(advance, jnp.asarray(first), y[:-1])
        scale = jnp.sqrt(jnp.concatenate([jnp.array([first]), later]))
        # The prior is flat in beta1, not in the fraction.
        return jnp.sum(norm.logpdf(y, p["mu"], scale)) + jnp.log1p(-p["alpha1"])

    def report(d):
        kept = {name: d[name] for name in ("mu", "alpha0", "alpha1")}
        return kept | {"beta1": (1 - d["alpha1"]) * d["share"]}

    init = {"mu": 0.0, "alpha0": 1.0, "alpha1": 0.5, "share": 0.5}
    supports = {"alpha0": positive, "alpha1": unit_interval, "share": unit_interval}
    return _problem("garch", Model(log_density, init, supports, report))


def gp_pois_regr() -> Problem:
    """Poisson regression on a Gaussian process."""
    return _problem("gp_pois_regr", gp_pois_regr_model())


def gp_pois_regr_model() -> Model:
    """Model on white noise; the Cholesky factor that colours it may be NaN."""
    points = data("gp_pois_regr")
    x, counts = points["x"], points["k"]
    squares = (x[:, None] - x[None, :]) ** 2

    def latent(rho, alpha, white):
        cov = alpha**2 * jnp.exp(-squares / (2 * rho**2)) + JITTER * jnp.eye(len(x))
        return jnp.linalg.cholesky(cov) @ white

    def log_density(p):
        f = latent(p["rho"], p["alpha"], p["white"])
        likelihood = jnp.sum(counts * f - jnp.exp(f))
        gamma = 24 * jnp.log(p["rho"]) - 4 * p["rho"]
        prior = gamma + norm.logpdf(p["alpha"], 0, 2)
        return likelihood + prior + jnp.sum(norm.logpdf(p["white"]))

    def report(d):
        rho, alpha = d["rho"].ravel(), d["alpha"].ravel()
        white = d["white"].reshape(-1, len(x))
        f = np.asarray(jax.vmap(latent)(rho, alpha, white)).reshape(d["white"].shape)
        return {"rho": d["rho"], "alpha": d["alpha"], "f": f}

    init = {"rho": 1.0, "alpha": 1.0, "white": np.zeros(len(x))}
    supports = {"rho": positive, "alpha": positive}
    return Model(log_density, init, supports, report)


def kidiq() -> Problem:
    """Linear regression of children's scores, with an interaction."""
    tests = data("kidiq")
    score, school, iq = tests["kid_score"], tests["mom_hs"], tests["mom_iq"]
    design = np.stack([np.ones_like(iq), school, iq, school * iq], axis=1)

    def log_density(p):
        likelihood = jnp.sum(norm.logpdf(score, design @ p["beta"], p["sigma"]))
        return likelihood + half_cauchy(p["sigma"], 2.5)

    init = {"beta": np.zeros(4), "sigma": 1.0}
    return _problem("kidiq", Model(log_density, init, {"sigma": positive}))


def low_dim_gauss_mix() -> Problem:
    """Mixture of two Gaussians, ordered by their means."""
    y = data("low_dim_gauss_mix")["y"][:, None]

    def log_density(p):
        log_theta = jnp.stack([jnp.log(p["theta"]), jnp.log1p(-p["theta"])])
        parts = log_theta + norm.logpdf(y, p["mu"], p["sigma"])
        likelihood = jnp.sum(jnp.logaddexp(parts[:, 0], parts[:, 1]))
        scales = jnp.concatenate([p["mu"], p["sigma"]])
        return likelihood + jnp.sum(norm.logpdf(scales, 0, 2)) + 4 * jnp.sum(log_theta)

    init = {"mu": np.array([-1.0, 1.0]), "sigma": np.ones(2), "theta": 0.5}
    supports = {"mu": ordered, "sigma": positive, "theta": unit_interval}
    return _problem("low_dim_gauss_mix", Model(log_density, init, supports))


POSTERIORDB: dict[str, Callable[[], Problem]] = {
    "arK": ark,
    "eight_schools": eight_schools,
    "garch": garch,
    "gp_pois_regr": gp_pois_regr,
    "kidiq": kidiq,
    "low_dim_gauss_mix": low_dim_gauss_mix,
}


def _problem(name: str, model: Model) -> Problem:
    posteriors = json.loads((folder() / "reference.json").read_text())["posteriors"]
    # The folder's names are data-model; the data's name alone is unique.
    key = next(key for key in posteriors if key.split("-")[0] == name)
    return with_moments(name, model, posteriors[key]["parameters"])


def data(name: str) -> dict[str, np.ndarray]:
    """Observations of one of the posteriors."""
    with np.load(folder() / "data" / f"{name}.npz") as arrays:
        return dict(arrays)

r"""Hierarchical logistic model of cancer deaths in twenty cities, in two forms.

$y_j \sim \mathrm{Binomial}(n_j, \mathrm{logit}^{-1} \eta_j)$, $\eta_j \sim N(\mu,
\tau^2)$, $\mu \sim N(-7, 2^2)$, $\tau \sim N^+(0, 1)$. With few deaths a city the
centred form is a funnel; the non-centred one is close to its prior.
"""

import json
from importlib import resources

import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm
from jaxtyping import Array

from vhmc.lab.bench.problem import Model, Problem, with_moments
from vhmc.lab.models.beta_binomial import cancer_mortality
from vhmc.numerics.constraints import positive

REFERENCE = "hierarchical_reference.json"
"""Moments of a long NUTS run, made by benchmarks/hierarchical_reference.py."""


def noncentred() -> Problem:
    r"""Problem on $\mu$, $\tau$ and $z_j = (\eta_j - \mu) / \tau$."""
    return _problem("hierarchical-noncentred", noncentred_model())


def centred() -> Problem:
    r"""Problem on $\mu$, $\tau$ and $\eta_j$."""
    return _problem("hierarchical-centred", centred_model())


def centred_model() -> Model:
    """Model that starts where the prior is centred."""

    def log_density(p):
        population = jnp.sum(norm.logpdf(p["eta"], p["mu"], p["tau"]))
        return _log_likelihood(p["eta"]) + _log_prior(p) + population

    init = {"mu": -7.0, "tau": 1.0, "eta": np.full(20, -7.0)}
    return Model(log_density, init, {"tau": positive})


def noncentred_model() -> Model:
    """Model that starts where the prior is centred, and reports the centred form."""

    def log_density(p):
        eta = p["mu"] + p["tau"] * p["z"]
        return _log_likelihood(eta) + _log_prior(p) + jnp.sum(norm.logpdf(p["z"]))

    def report(d):
        eta = d["mu"][..., None] + d["tau"][..., None] * d["z"]
        return {"mu": d["mu"], "tau": d["tau"], "eta": eta}

    init = {"mu": -7.0, "tau": 1.0, "z": np.zeros(20)}
    return Model(log_density, init, {"tau": positive}, report)


def _problem(name: str, model: Model) -> Problem:
    text = resources.files(__package__).joinpath(REFERENCE).read_text()
    return with_moments(name, model, json.loads(text)["quantities"])


def _log_likelihood(eta: Array) -> Array:
    data = cancer_mortality()
    return jnp.sum(data.deaths * eta - data.at_risk * jnp.logaddexp(0.0, eta))


def _log_prior(p: dict[str, Array]) -> Array:
    return norm.logpdf(p["mu"], -7, 2) + norm.logpdf(p["tau"])

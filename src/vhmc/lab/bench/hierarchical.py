r"""Hierarchical logistic model of cancer deaths in twenty cities, in two forms.

$y_j \sim \mathrm{Binomial}(n_j, \mathrm{logit}^{-1} \eta_j)$, $\eta_j \sim N(\mu,
\tau^2)$, $\mu \sim N(-7, 2^2)$, $\tau \sim N^+(0, 1)$. With few deaths a city the
centred form is a funnel; the non-centred one is close to its prior.
"""

import json
from collections.abc import Callable
from importlib import resources

import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm
from jaxtyping import Array

from vhmc.evaluation.target import Target
from vhmc.lab.bench.problem import Draws, Problem
from vhmc.lab.models.beta_binomial import cancer_mortality
from vhmc.models.from_jax import from_jax
from vhmc.numerics.constraints import positive

REFERENCE = "hierarchical_reference.json"
"""Moments of a long NUTS run, made by benchmarks/hierarchical_reference.py."""

NAMES = ("mu", "tau", *(f"eta[{j + 1}]" for j in range(20)))


def noncentred() -> Problem:
    r"""Problem on $\mu$, $\tau$ and $z_j = (\eta_j - \mu) / \tau$."""
    return _problem("hierarchical-noncentred", noncentred_target, is_centred=False)


def centred() -> Problem:
    r"""Problem on $\mu$, $\tau$ and $\eta_j$."""
    return _problem("hierarchical-centred", centred_target, is_centred=True)


def noncentred_target() -> Target:
    """Target that starts where the prior is centred."""

    def log_density(p):
        eta = p["mu"] + p["tau"] * p["z"]
        return _log_likelihood(eta) + _log_prior(p) + jnp.sum(norm.logpdf(p["z"]))

    init = {"mu": -7.0, "tau": 1.0, "z": np.zeros(20)}
    return from_jax(log_density, init, {"tau": positive})


def centred_target() -> Target:
    """Target that starts where the prior is centred."""

    def log_density(p):
        population = jnp.sum(norm.logpdf(p["eta"], p["mu"], p["tau"]))
        return _log_likelihood(p["eta"]) + _log_prior(p) + population

    init = {"mu": -7.0, "tau": 1.0, "eta": np.full(20, -7.0)}
    return from_jax(log_density, init, {"tau": positive})


def quantities(draws: Draws, is_centred: bool) -> np.ndarray:
    """Columns in the order of `NAMES`."""
    mu, tau = draws["mu"][..., None], draws["tau"][..., None]
    eta = draws["eta"] if is_centred else mu + tau * draws["z"]
    return np.concatenate([mu, tau, eta], axis=-1)


def _problem(name: str, make: Callable[[], Target], is_centred: bool) -> Problem:
    text = resources.files(__package__).joinpath(REFERENCE).read_text()
    moments = json.loads(text)["quantities"]
    return Problem(
        name,
        make,
        lambda draws: quantities(draws, is_centred),
        NAMES,
        np.array([moments[name]["mean"] for name in NAMES]),
        np.array([moments[name]["sd"] for name in NAMES]),
        is_gaussian=False,
    )


def _log_likelihood(eta: Array) -> Array:
    data = cancer_mortality()
    return jnp.sum(data.deaths * eta - data.at_risk * jnp.logaddexp(0.0, eta))


def _log_prior(p: dict[str, Array]) -> Array:
    return norm.logpdf(p["mu"], -7, 2) + norm.logpdf(p["tau"])

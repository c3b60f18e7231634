r"""Counts and answers with an effect per unit: seeds, surgical, 2PL and Poisson GLMM.

All are centred: the effects themselves are parameters.
"""

import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm
from jaxtyping import Array

from vhmc.lab.bench.problem import Draws, Model, half_cauchy, log_normal
from vhmc.lab.bench.structured.data import read
from vhmc.numerics.constraints import interval, positive

VAGUE = 0.001
"""Shape and rate of the gamma priors that BUGS models put on a precision."""


def seeds() -> Model:
    r"""Seeds that germinate on 21 plates, with an interaction and an effect a plate.

    The prior of the precision $\tau$ is nearly flat in $\log \tau$ up to 1,000: the
    posterior has a long neck where all effects vanish.
    """
    plates = read("seeds")
    x1, x2 = plates["x1"], plates["x2"]
    design = np.stack([np.ones(len(x1)), x1, x2, x1 * x2], axis=1)
    names = ("a0", "a1", "a2", "a12")

    def log_density(p):
        a = jnp.stack([p[name] for name in names])
        likelihood = _binomial(plates["n"], plates["N"], design @ a + p["b"])
        effects = jnp.sum(norm.logpdf(p["b"], 0, p["tau"] ** -0.5))
        prior = jnp.sum(norm.logpdf(a, 0, 1000))
        precision = (VAGUE - 1) * jnp.log(p["tau"]) - VAGUE * p["tau"]
        return likelihood + effects + prior + precision

    def report(d: Draws) -> Draws:
        kept = {name: d[name] for name in (*names, "b")}
        return kept | {"sigma": d["tau"] ** -0.5}

    init = dict.fromkeys(names, 0.0) | {"b": np.zeros(len(x1)), "tau": 1.0}
    return Model(log_density, init, {"tau": positive}, report)


def surgical() -> Model:
    r"""Deaths after operations in twelve hospitals; $b_i$ are the logits of rates."""
    hospitals = read("surgical")

    def log_density(p):
        likelihood = _binomial(hospitals["r"], hospitals["n"], p["b"])
        population = jnp.sum(norm.logpdf(p["b"], p["mu"], p["variance"] ** 0.5))
        inverse_gamma = -(VAGUE + 1) * jnp.log(p["variance"]) - VAGUE / p["variance"]
        return likelihood + population + inverse_gamma + norm.logpdf(p["mu"], 0, 1000)

    def report(d: Draws) -> Draws:
        return {"b": d["b"], "mu": d["mu"], "sigma": d["variance"] ** 0.5}

    init = {"b": np.zeros(int(hospitals["N"])), "mu": 0.0, "variance": 1.0}
    return Model(log_density, init, {"variance": positive}, report)


def irt_2pl() -> Model:
    r"""Answers of 100 people of ability $\theta_j$ to 20 items, slope $a_i$ each."""
    test = read("irt_2pl")
    y, num_items, num_people = test["y"], int(test["I"]), int(test["J"])
    scales = ("sigma_theta", "sigma_a", "sigma_b")

    def log_density(p):
        eta = p["a"][:, None] * (p["theta"] - p["b"][:, None])
        people = jnp.sum(norm.logpdf(p["theta"], 0, p["sigma_theta"]))
        slopes = jnp.sum(log_normal(p["a"], 0, p["sigma_a"]))
        places = jnp.sum(norm.logpdf(p["b"], p["mu_b"], p["sigma_b"]))
        hyper = half_cauchy(jnp.stack([p[name] for name in scales]), 2)
        prior = jnp.sum(hyper) + norm.logpdf(p["mu_b"], 0, 5)
        return _binomial(y, 1, eta) + people + slopes + places + prior

    init = {
        "theta": np.zeros(num_people),
        "a": np.ones(num_items),
        "b": np.zeros(num_items),
        "mu_b": 0.0,
    } | dict.fromkeys(scales, 1.0)
    return Model(log_density, init, dict.fromkeys(("a", *scales), positive))


def glmm_poisson() -> Model:
    """Counts of forty years around a cubic curve, with an effect a year."""
    years = read("GLMM_Poisson")
    year, count = years["year"], years["C"]
    powers = np.stack([year, year**2, year**3], axis=1)

    def log_density(p):
        log_rate = p["alpha"] + powers @ p["beta"] + p["eps"]
        likelihood = jnp.sum(count * log_rate - jnp.exp(log_rate))
        return likelihood + jnp.sum(norm.logpdf(p["eps"], 0, p["sigma"]))

    init = {"alpha": 0.0, "beta": np.zeros(3), "eps": np.zeros(len(year)), "sigma": 1.0}
    supports = {
        "alpha": interval(-20.0, 20.0),
        "beta": interval(-10.0, 10.0),
        "sigma": interval(0.0, 5.0),
    }
    return Model(log_density, init, supports)


def _binomial(successes, trials, logit: Array) -> Array:
    """Log likelihood, up to a constant."""
    return jnp.sum(successes * logit - trials * jnp.logaddexp(0.0, logit))

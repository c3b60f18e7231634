"""The evidence of an exact energy, by nested sampling and by bridge sampling."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.stats
from jax.scipy.special import logsumexp
from jax.scipy.stats import multivariate_normal

from vhmc._imports import load_extra
from vhmc._types import Potential
from vhmc.numerics.bridge import bridge
from vhmc.sampler.evidence import Evidence

WIDER = 3.0
"""Standard deviations of nested sampling's reference over those of the posterior."""
REPLACED = 10
"""One in so many of the live points is replaced in a step."""
STEPS_A_DIMENSION = 4
"""Slices by which a new point leaves its old one."""
LEFT = -7.0
"""Log of the share of the live points in the evidence at which it ends."""
SHRINKAGES = 200
"""Simulated sequences of volumes, from which the error is taken."""


def nested_evidence(
    energy: Potential, draws: np.ndarray, seed: int, num_live: int = 4000
) -> Evidence:
    r"""$\log \int e^{-U}$ by nested slice sampling (Yallup, Kroupa and Handley 2026).

    A normal three times as wide as the posterior takes the place of the prior, and the
    rest of the density that of the likelihood: the integral is the same whatever the
    reference. The error is the standard deviation over simulated volumes.

    draws: of the posterior, for the reference's mean and covariance.
    """
    blackjax = load_extra("blackjax", "nested sampling", "bench")
    utils = load_extra("blackjax.ns.utils", "nested sampling", "bench")
    flat = draws.reshape(-1, draws.shape[-1])
    mean, cov = flat.mean(axis=0), WIDER**2 * np.atleast_2d(np.cov(flat.T))

    def log_prior(theta):
        return multivariate_normal.logpdf(theta, mean, cov)

    def log_likelihood(theta):
        value = -energy(theta) - log_prior(theta)
        return jnp.where(jnp.isfinite(value), value, -1e300)

    steps, replaced = STEPS_A_DIMENSION * len(mean), num_live // REPLACED
    sampler = blackjax.nss(log_prior, log_likelihood, steps, num_delete=replaced)
    step = jax.jit(sampler.step)
    key, first, last = jax.random.split(jax.random.key(seed), 3)
    live = sampler.init(jax.random.multivariate_normal(first, mean, cov, (num_live,)))
    dead: list[Any] = []
    while live.integrator.logZ_live - live.integrator.logZ > LEFT:
        live, info = step(jax.random.fold_in(key, len(dead)), live)
        dead.append(info)
    everything = utils.finalise(live, dead, update_info=False)
    values = logsumexp(utils.log_weights(last, everything, SHRINKAGES), axis=0)
    return Evidence(float(values.mean()), float(values.std()))


def bridged_evidence(energy: Potential, draws: np.ndarray, seed: int) -> Evidence:
    r"""$\log \int e^{-U}$ by a bridge from one half of all chains to a normal.

    The normal is fitted to the other half, and independent draws of it are as many.

    draws: of the posterior, shape (chain, draw, dim).
    """
    half, rest = np.array_split(draws, 2, axis=1)
    flat = half.reshape(-1, draws.shape[-1])
    normal = scipy.stats.multivariate_normal(flat.mean(axis=0), np.cov(flat.T))
    white = normal.rvs(rest.shape[0] * rest.shape[1], random_state=seed)
    white = white.reshape(-1, draws.shape[-1])
    energies = jax.jit(jax.vmap(energy))

    def log_ratio(theta: np.ndarray) -> np.ndarray:
        return -np.asarray(energies(theta)) - normal.logpdf(theta)

    own = log_ratio(rest.reshape(-1, rest.shape[-1])).reshape(rest.shape[:2])
    found = bridge(own, np.nan_to_num(log_ratio(white), nan=-np.inf))
    return Evidence(found.log_ratio, found.error)

"""Models whose written form links all shocks, and whose centred form does not."""

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.stats import norm

import vhmc

STEPS = 12
Y = 0.4 * np.sin(np.arange(STEPS))
START = {"scale": 0.5, "level": 0.0}
CONSTRAINTS = {"scale": vhmc.positive}


def prior(p):
    return norm.logpdf(jnp.log(p["scale"])) + norm.logpdf(p["level"])


def walk(loop):
    """A random walk of shocks z, seen with errors of sd 0.5."""

    def log_density(p):
        path = p["level"] + loop(p["scale"], p["z"])
        likelihood = jnp.sum(norm.logpdf(Y, path, 0.5))
        return likelihood + jnp.sum(norm.logpdf(p["z"])) + prior(p)

    return vhmc.from_jax(log_density, START | {"z": np.zeros(STEPS)}, CONSTRAINTS)


def by_cumsum(scale, z):
    return scale * jnp.cumsum(z)


def by_scan(scale, z):
    def step(state, shock):
        state = state + scale * shock
        return state, state

    return lax.scan(step, jnp.zeros(()), z)[1]


def by_list(scale, z):
    path = [scale * z[0]]
    for shock in z[1:]:
        path.append(path[-1] + scale * shock)
    return jnp.stack(path)


def centred_walk():
    """The same posterior with the path, less its level, as parameter."""

    def log_density(p):
        path, scale = p["z"], p["scale"]
        first = norm.logpdf(path[0], 0.0, scale)
        steps = jnp.sum(norm.logpdf(path[1:], path[:-1], scale))
        likelihood = jnp.sum(norm.logpdf(Y, p["level"] + path, 0.5))
        return likelihood + first + steps + prior(p)

    return vhmc.from_jax(log_density, START | {"z": np.zeros(STEPS)}, CONSTRAINTS)

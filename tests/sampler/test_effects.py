"""Normal effects of a scale: found by gradients, and their non-centred coordinates."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse

from tests.densities import Density
from vhmc.sampler.effects import NonCentred, find_effects
from vhmc.transport.graph import Graph
from vhmc.transport.hub_functions import Link

NUM = 6
"""Effects of each of two groups; then a location and the logs of their scales."""
DIM = 2 * NUM + 3
LOCATION, FIRST, SECOND = 2 * NUM, 2 * NUM + 1, 2 * NUM + 2
DATA = np.linspace(-1.0, 2.0, NUM)


def log_density(t, power=2.0):
    """Products of two groups of effects, one of them around a location."""
    one, other = t[:NUM], t[NUM : 2 * NUM]
    likelihood = -jnp.sum((DATA - one * other) ** 2)
    prior = -0.5 * 3.0 * jnp.sum(one**2) * jnp.exp(-power * t[FIRST])
    prior -= 0.5 * jnp.sum((other - t[LOCATION]) ** 2) * jnp.exp(-2 * t[SECOND])
    hyper = -0.5 * jnp.sum(t[LOCATION:] ** 2)
    return likelihood + prior - NUM * (power / 2 * t[FIRST] + t[SECOND]) + hyper


def graph():
    edges = np.eye(DIM, dtype=bool)
    for k in range(NUM):
        near = [k, NUM + k]
        edges[np.ix_(near, near)] = True
        edges[k, FIRST] = edges[FIRST, k] = True
        for one in (LOCATION, SECOND):
            edges[NUM + k, one] = edges[one, NUM + k] = True
    edges[LOCATION, SECOND] = edges[SECOND, LOCATION] = True
    links = {FIRST: Link("exp", 0.0, 1.0), SECOND: Link("exp", 0.0, 1.0)}
    scalars = (LOCATION, FIRST, SECOND)
    return Graph(scipy.sparse.csr_matrix(edges), links, None, scalars)


def groups(density):
    evaluate = Density(density)
    found = find_effects(np.random.default_rng(0), evaluate, np.zeros(DIM), graph())
    return {one.scale: one for one in found}, evaluate


@pytest.mark.parametrize("power", [2.0, 1.0, -1.0])
def test_groups_are_found_with_location_power_and_level(power):
    found, evaluate = groups(lambda t: log_density(t, power))
    one, other = found[FIRST], found[SECOND]
    np.testing.assert_array_equal(one.members, np.arange(NUM))
    np.testing.assert_array_equal(other.members, np.arange(NUM, 2 * NUM))
    assert one.location is None and other.location == LOCATION
    values = [one.power, one.level, one.center]
    np.testing.assert_allclose(values, [power, 3, 0], atol=1e-12)
    np.testing.assert_allclose([other.power, other.level], [2, 1])
    assert evaluate.counts == {"search": 5}


def test_effects_that_are_not_normal_are_not_found():
    def heavy(t):
        tails = jnp.sum(jnp.log1p(t[:NUM] ** 2 * jnp.exp(-2 * t[FIRST])))
        return log_density(t.at[FIRST].set(0.0)) - 3 * tails

    assert FIRST not in groups(heavy)[0]


def test_non_centred_coordinates_and_their_energy():
    found, evaluate = groups(log_density)
    outer = NonCentred(tuple(found.values()))
    u = np.random.default_rng(1).standard_normal((4, DIM))
    theta = outer.forward(u)
    np.testing.assert_allclose(outer.inverse(theta), u, atol=1e-12)
    jacobian = jax.vmap(jax.jacobian(lambda one: _forward(outer, one)))(u)
    log_det = np.linalg.slogdet(np.asarray(jacobian))[1]
    np.testing.assert_allclose(outer.log_det(u), log_det, atol=1e-12)

    def energy(one):
        matrix = jax.jacobian(lambda row: _forward(outer, row))(one)
        volume = jnp.linalg.slogdet(matrix)[1]
        return -log_density(_forward(outer, one)) - volume

    expected = jax.vmap(jax.grad(energy))(u)
    pulled = outer.pull_back(u, evaluate(theta, "search").grad)
    np.testing.assert_allclose(pulled, expected, atol=1e-9)


def _forward(outer, u):
    """The same map, for JAX and one point."""
    theta = u
    for one in outer.groups:
        width = jnp.exp(one.power * u[one.scale] / 2) / np.sqrt(one.level)
        place = one.center if one.location is None else u[one.location]
        theta = theta.at[one.members].set(place + width * u[one.members])
    return theta

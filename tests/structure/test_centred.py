"""The centred form of a model is found in its program, and has the graph it should."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.structure import centred_models
from tests.structure.centred_models import STEPS, by_cumsum, by_list, by_scan, walk
from vhmc.sampler.model_graph import model_graph
from vhmc.structure.centred import centred
from vhmc.structure.traced import traced_graph

Z = np.arange(2, 2 + STEPS)


def found(energy, dim, sizes):
    graph = traced_graph(energy, dim)
    return centred(energy, np.full(dim, 0.1), sizes, graph)


@pytest.mark.parametrize("loop", [by_cumsum, by_scan, by_list])
def test_a_walk_of_shocks_has_the_graph_of_its_path(loop):
    written = model_graph(walk(loop), centre=False)
    structure = model_graph(walk(loop))
    assert written.graph[Z][:, Z].nnz == STEPS**2, "all shocks are linked"
    assert structure.centred is not None and structure.centred.places == tuple(Z)
    inner = structure.graph[Z][:, Z].toarray()
    chain = sum(np.eye(STEPS, k=k) for k in (-1, 0, 1)) > 0
    np.testing.assert_array_equal(inner, chain)
    assert "with z in centred form" in structure.describe()


def test_a_path_that_is_a_parameter_stays_as_it_is():
    assert model_graph(centred_models.centred_walk()).centred is None


def test_no_link_of_the_centred_form_is_missed():
    """Second differences of the energy in the new coordinates show its true links."""
    target = walk(by_cumsum)
    form = model_graph(target).centred

    def inner_energy(x):
        slopes = jax.jacfwd(form.quantity)(x)[:, jnp.array(form.places)]
        offset = form.quantity(x.at[jnp.array(form.places)].set(0.0))
        z = jnp.linalg.solve(slopes, x[jnp.array(form.places)] - offset)
        theta = x.at[jnp.array(form.places)].set(z)
        return target.energy(theta) + jnp.linalg.slogdet(slopes)[1]

    rng = np.random.default_rng(0)
    points = 0.5 * rng.standard_normal((4, target.dim))
    curvature = jax.jit(jax.vmap(jax.hessian(inner_energy)))(points)
    is_link = (np.abs(curvature) > 1e-8 * np.abs(curvature).max()).any(axis=0)
    assert not (is_link & ~form.graph.toarray()).any()
    assert form.graph.nnz == is_link.sum(), "and none too many"


def quadratic(theta):
    """The path is not affine in the shocks: there is nothing to centre."""
    path = jnp.cumsum(theta[1:] + 0.1 * theta[1:] ** 2) * jnp.exp(theta[0])
    return jnp.sum(jnp.cos(path)) + jnp.sum(theta**2)


def singular(theta):
    """Differences of the shocks do not determine them."""
    shocks = theta[1:]
    path = jnp.exp(theta[0]) * (shocks - jnp.mean(shocks))
    return jnp.sum(path**4) + jnp.sum(theta**2)


@pytest.mark.parametrize("energy", [quadratic, singular])
def test_what_cannot_be_inverted_exactly_is_left_alone(energy):
    assert found(energy, 9, {"scale": 1, "z": 8}) is None


def test_slopes_that_stay_linked_are_left_alone():
    """In a sparse regression the slopes themselves are linked by the data."""
    design = np.random.default_rng(0).standard_normal((20, 8))

    def energy(theta):
        slopes = theta[:8] * jnp.exp(theta[8:])
        return jnp.sum((1 - design @ slopes) ** 2) + jnp.sum(theta**2)

    assert found(energy, 16, {"z": 8, "local": 8}) is None

"""The graph of a traced program misses no edge, and has few too many."""

import logging

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from jax import lax

import vhmc
from tests.structure.programs import DIM, LOOSE, PROGRAMS
from vhmc.lab.bench.calibration.run import MODELS
from vhmc.structure.traced import traced_graph

SPARSE = {
    "funnel": 28,
    "gamma-scales": 5,
    "hierarchical-normal": 68,
    "item-response": 430,
    "logistic-a9a": 115,
    "lotka-volterra": 62,
}
"""Edges of calibration models, in both directions."""

DENSE = "change-point", "gaussian-process", "hidden-markov", "horseshoe"

UNSEEN = {"dirichlet", "stochastic-volatility", "two-modes-2d"}
"""Where the interactions in the program cancel, or are too weak for the arithmetic."""


def shown_edges(energy, points):
    r"""Where $U(x + a + b) - U(x + a) - U(x + b) + U(x)$ is not zero.

    With steps a and b along two axes: so at points and steps at random the energy is
    not a sum of a function without the one and a function without the other.
    """
    dim = points.shape[1]
    steps = 0.3 * np.eye(dim)
    first, second = steps[:, None, None], steps[None, :, None]
    corners = [points, points + first, points + second, points + first + second]
    shape = dim, dim, len(points)
    stack = np.stack([np.broadcast_to(c, (*shape, dim)) for c in corners])
    values = np.asarray(jax.jit(jax.vmap(energy))(stack.reshape(-1, dim)))
    values = values.reshape(4, *shape)
    is_known = np.isfinite(values).all(axis=0)
    values = np.where(is_known, values, 0.0)
    mixed = values[3] - values[2] - values[1] + values[0]
    is_edge = (np.abs(mixed) > 1e-11 * np.abs(values).max()).any(axis=2)
    return is_edge | np.eye(dim, dtype=bool)


def found_edges(energy, dim):
    graph = traced_graph(energy, dim)
    assert graph is not None
    is_edge = graph.toarray()
    assert is_edge.dtype == bool
    assert is_edge.diagonal().all()
    np.testing.assert_array_equal(is_edge, is_edge.T)
    return is_edge


@pytest.mark.parametrize("name", PROGRAMS)
def test_parameters_without_an_edge_do_not_interact(name, seed):
    points = np.random.default_rng(seed).standard_normal((4, DIM))
    expected = shown_edges(PROGRAMS[name], points)
    found = found_edges(PROGRAMS[name], DIM)
    assert not (expected & ~found).any()
    if name not in LOOSE:
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", [*SPARSE, *DENSE])
def test_counts_of_edges_of_the_calibration_models(name):
    target = MODELS[name]().make()
    found = found_edges(target.energy, target.dim)
    assert found.sum() == SPARSE.get(name, target.dim**2)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_graphs_of_the_calibration_models_are_exact(name, seed):
    target = MODELS[name]().make()
    rng = np.random.default_rng(seed)
    points = target.start + 0.5 * rng.standard_normal((4, target.dim))
    expected = shown_edges(target.energy, points)
    if name in UNSEEN:
        expected |= True
    np.testing.assert_array_equal(found_edges(target.energy, target.dim), expected)


@pytest.mark.parametrize("name", ["centred", "segments"])
def test_no_entry_of_the_hessian_is_missed(name, seed):
    hessian = jax.jit(jax.vmap(jax.hessian(PROGRAMS[name])))
    points = np.random.default_rng(seed).standard_normal((3, DIM))
    expected = np.abs(hessian(points)).max(axis=0) > 1e-12
    assert not (expected & ~found_edges(PROGRAMS[name], DIM)).any()


def test_boundaries_couple_parameters():
    assert found_edges(PROGRAMS["open_loop_counts"], DIM)[0, 1]
    assert found_edges(PROGRAMS["guarded_region"], DIM)[:2].all()
    assert found_edges(PROGRAMS["guarded_rank"], DIM)[:3].all()
    assert not found_edges(PROGRAMS["guarded_region"], DIM)[2, 3]


GROUPS = np.array([0, 1, 2, 0, 1, 2, 2])
Y = np.linspace(-1, 1, 7)


def numpyro_model():
    mean = numpyro.sample("mean", dist.Normal(0, 5))
    scale = numpyro.sample("scale", dist.HalfCauchy(2))
    with numpyro.plate("group", 3):
        effect = numpyro.sample("effect", dist.Normal(mean, scale))
    share = numpyro.sample("share", dist.Dirichlet(jnp.ones(3)))
    numpyro.deterministic("unused", jnp.exp(jnp.outer(effect, share)))
    numpyro.sample("y", dist.StudentT(4.0, effect[GROUPS], 1.0), obs=Y)


def pymc_model():
    import pymc as pm  # takes seconds

    with pm.Model() as model:
        mean = pm.Normal("mean", 0, 5)
        scale = pm.HalfCauchy("scale", 2)
        effect = pm.Normal("effect", mean, scale, shape=3)
        pm.Dirichlet("share", np.ones(3))
        pm.Deterministic("unused", pm.math.exp(effect * mean))
        pm.StudentT("y", nu=4, mu=effect[GROUPS], sigma=1, observed=Y)
    return model


@pytest.mark.parametrize(
    "front_end", ["numpyro", pytest.param("pymc", marks=pytest.mark.slow)]
)
def test_models_of_front_ends(front_end, seed):
    if front_end == "numpyro":
        target = vhmc.from_numpyro(numpyro_model)
    else:
        target = vhmc.from_pymc(pymc_model())
    points = np.random.default_rng(seed).standard_normal((3, target.dim))
    found = found_edges(target.energy, target.dim)
    assert not (shown_edges(target.energy, points) & ~found).any()
    # Mean, scale and three effects make a star of two hubs; the shares are apart.
    assert not found[:5, 5:].any()
    assert found[:2, :5].all()
    np.testing.assert_array_equal(found[2:5, 2:5], np.eye(3))


def mixed_model(num_groups, num_rows):
    rng = np.random.default_rng(0)
    groups = rng.integers(0, num_groups, num_rows)
    x, y = rng.standard_normal((2, num_rows))

    def energy(theta):
        mean, log_scale, log_noise, slope = theta[:4]
        effect = theta[4:]
        residual = (y - slope * x - effect[groups]) * jnp.exp(-log_noise)
        spread = (effect - mean) * jnp.exp(-log_scale)
        return jnp.sum(residual**2) + jnp.sum(spread**2) + jnp.sum(theta[:4] ** 2)

    return energy, num_groups + 4


def scanned_walk(num_steps):
    y = np.random.default_rng(0).standard_normal(num_steps)

    def energy(theta):
        def step(before, now):
            gap = (now[0] - before) * jnp.exp(-theta[0])
            return now[0], gap**2 + jnp.exp(now[0]) * now[1]

        return jnp.sum(lax.scan(step, 0.0, (theta[1:], jnp.asarray(y)))[1])

    return energy, num_steps + 1


def tall_regression(num_rows, dim):
    x = np.random.default_rng(0).standard_normal((num_rows, dim))
    return lambda theta: jnp.sum(jnp.logaddexp(0.0, x @ theta)), dim


@pytest.mark.parametrize(
    ("program", "num_edges"),
    [
        # Four with all effects; mean with scale, and noise with slope.
        (mixed_model(996, 100_000), 996 * 9 + 4 + 2 * 2),
        (scanned_walk(500), 500 + 2 * 499 + 2 * 500 + 1),
        (tall_regression(50_000, 40), 40**2),
    ],
    ids=["mixed", "walk", "tall"],
)
def test_large_programs_have_sparse_graphs(program, num_edges):
    assert traced_graph(*program).nnz == num_edges


def test_a_program_that_is_too_large_has_no_graph(caplog):
    data = np.broadcast_to(1.0, (40_000_000,))
    with caplog.at_level(logging.INFO, "vhmc"):
        assert traced_graph(lambda x: jnp.sum(x[0] * jnp.asarray(data)), 2) is None
    assert "too large" in caplog.text


def test_what_cannot_be_traced_or_followed_has_no_graph(caplog):
    def with_reference(x):
        box = jax.new_ref(x)
        box[0] = x[1] * x[2]
        return jnp.sum(box[...])

    assert traced_graph(with_reference, 3) is None
    assert traced_graph(lambda x: float(x[0]), 3) is None
    assert caplog.text.count("no graph of the parameters") == 2


def test_an_opaque_part_links_its_inputs():
    def energy(x):
        shape = jax.ShapeDtypeStruct((), float)
        return jax.pure_callback(np.sum, shape, x[:2]) + jnp.sum(x**2)

    expected = np.eye(4, dtype=bool)
    expected[:2, :2] = True
    np.testing.assert_array_equal(found_edges(energy, 4), expected)


def test_long_scans_are_followed_as_a_whole():
    """Steps that are not told apart have too many edges, but not too few."""

    def energy(theta):
        def step(before, _):
            return before * 0.9 + theta[0], before**2

        return jnp.sum(lax.scan(step, theta[1], length=100_000)[1]) + theta[2] ** 2

    expected = np.eye(3, dtype=bool)
    expected[:2, :2] = True
    np.testing.assert_array_equal(found_edges(energy, 3), expected)

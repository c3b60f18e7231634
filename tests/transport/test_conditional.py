"""Maps along a graph: identities of the layers, and fits of hierarchical models."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse

from vhmc.structure.elimination import eliminate
from vhmc.structure.fill import fill
from vhmc.transport.by_level import ByLevel, NaturalParameters, floored
from vhmc.transport.conditional_fit import ConditionalFit, Scores
from vhmc.transport.explicit_energy import explicit_energy
from vhmc.transport.graph import Graph
from vhmc.transport.hub_fit import HubEnergy, marginal_data
from vhmc.transport.hub_functions import Atom, Link, evaluate
from vhmc.transport.hub_map import REACH, hub_map
from vhmc.transport.joint import Joint
from vhmc.transport.map_fit import EvaluatedPoints
from vhmc.transport.structured_fit import fit_structured, is_sane, with_hub_map
from vhmc.transport.transport_map import TransportMap

DIM, HUBS = 12, np.array([2, 7])


def random_layer(rng):
    size = DIM - len(HUBS)
    graph = np.eye(size, k=1) + np.eye(size, k=-1)
    graph[0] = graph[:, 0] = 1
    levels = eliminate(scipy.sparse.csr_matrix(graph))
    scale = (
        Atom(0, "exp", -2.0, 0.1, 1.0),
        Atom(1, "logit", 2.0, 0.0, 3.0, -1.0, 3.0),
    )
    terms = ((), scale[:1], scale)
    linear = (*terms, (Atom(1, "polynomial", 2, 0.3, 0.7),))
    parameters = []
    for level in levels:
        shape = level.parents.shape
        edges = 0.3 * rng.standard_normal((len(terms), *shape))
        parameters.append(
            NaturalParameters(
                terms,
                linear,
                rng.uniform(0.5, 2.0, (len(terms), shape[0])),
                edges * (level.parents < size),
                rng.standard_normal((len(linear), shape[0])),
            )
        )
    return ByLevel(
        HUBS,
        np.setdiff1d(np.arange(DIM), HUBS),
        rng.standard_normal(size),
        rng.uniform(0.5, 2.0, size),
        levels,
        tuple(parameters),
    )


def random_joint(rng):
    by_level = random_layer(rng)
    levels, size = by_level.levels, len(by_level.rest)
    filled = fill(levels, size)
    terms, linear, *_ = by_level.parameters[0]
    entries = 0.2 * rng.standard_normal((len(terms), filled.num_entries))
    entries[:, :size] = rng.uniform(2.0, 4.0, (len(terms), size))
    return Joint(
        *(by_level.hubs, by_level.rest, by_level.center, by_level.scale, levels),
        *(terms, linear, entries, rng.standard_normal((len(linear), size)), filled),
    )


LAYERS = {"by level": random_layer, "joint": random_joint}


def random_map(rng, family="by level"):
    knots = np.linspace(-REACH, REACH, 41)
    quantiles = np.stack([np.sinh(0.4 * knots), knots + 0.1 * np.sin(knots)])
    correlation = np.array([[1.0, 0.4], [0.4, 1.0]])
    return TransportMap(
        (LAYERS[family](rng), hub_map(HUBS, DIM, quantiles, correlation))
    )


@pytest.mark.parametrize("family", LAYERS)
def test_maps_invert(family):
    rng = np.random.default_rng(0)
    transport = random_map(rng, family)
    x = 1.5 * rng.standard_normal((50, DIM))
    np.testing.assert_allclose(transport.inverse(transport.forward(x)), x, atol=1e-7)


def test_hubs_invert_beyond_the_splines():
    rng = np.random.default_rng(1)
    layer = random_map(rng).layers[1]
    x = 4 * REACH * rng.uniform(-1, 1, (50, DIM))
    np.testing.assert_allclose(layer.inverse(layer.forward(x)), x, atol=1e-6)


@pytest.mark.parametrize("family", LAYERS)
def test_determinants_and_gradients_are_those_of_automatic_differentiation(family):
    rng = np.random.default_rng(2)
    transport = random_map(rng, family)
    theta = transport.forward(0.8 * rng.standard_normal((4, DIM)))
    traced = jax.tree.map(jnp.asarray, transport)

    def latent(point):
        return traced.inverse(point[None])[0]

    def energy(point):
        return jnp.sum(jnp.sin(point)) + point[0] * point[2]

    def energy_in_x(point):
        return energy(point) - traced.inverse_and_log_det(point[None])[1][0]

    grads = np.asarray(jax.vmap(jax.grad(energy))(theta))
    x, scores = transport.pull_back(theta, grads)
    differences = rng.standard_normal((4, DIM))
    pushed = transport.push_forward(x, differences)
    log_det = transport.inverse_and_log_det(theta)[1]
    for row in range(4):
        jacobian = np.asarray(jax.jacfwd(latent)(jnp.asarray(theta[row])))
        np.testing.assert_allclose(-np.linalg.slogdet(jacobian)[1], log_det[row])
        by_theta = np.asarray(jax.grad(energy_in_x)(jnp.asarray(theta[row])))
        np.testing.assert_allclose(
            jacobian.T @ scores[row], by_theta, rtol=1e-6, atol=1e-8
        )
        np.testing.assert_allclose(
            jacobian.T @ differences[row], pushed[row], rtol=1e-7, atol=1e-9
        )


def test_latent_coordinates_depend_on_their_clique_alone():
    rng = np.random.default_rng(3)
    layer = random_layer(rng)
    theta = layer.forward(rng.standard_normal((1, DIM)))
    traced = jax.tree.map(jnp.asarray, layer)
    jacobian = jax.jacfwd(lambda p: traced.inverse(p[None])[0])(jnp.asarray(theta[0]))
    allowed = np.zeros((DIM, DIM), dtype=bool)
    allowed[HUBS, HUBS] = True
    for clique in layer.cliques[1:]:
        allowed[clique[0], clique] = True
    assert np.abs(np.asarray(jacobian)[~allowed]).max() == 0


def test_elimination_gives_the_gaussian_of_its_matrix():
    rng = np.random.default_rng(9)
    layer = random_joint(rng)
    c = rng.standard_normal((1, len(HUBS)))
    size = len(layer.rest)
    values = (layer.entries.T @ evaluate(layer.terms, c))[:, 0]
    matrix = np.diag(values[:size])
    for level, entries in zip(layer.levels, layer.fill.levels, strict=True):
        for node, parents, edges in zip(
            level.nodes, level.parents, entries.edges, strict=True
        ):
            for parent, edge in zip(parents, edges, strict=True):
                if parent < size:
                    matrix[node, parent] = matrix[parent, node] = values[edge]
    linear = (layer.linear.T @ evaluate(layer.linear_terms, c))[:, 0]
    x = np.zeros((1, DIM))
    x[:, HUBS] = c
    mean = layer.forward(x)[0, layer.rest]
    expected = layer.center + layer.scale * np.linalg.solve(matrix, linear)
    np.testing.assert_allclose(mean, expected, rtol=1e-9)
    volume = np.sum(np.log(layer.scale)) - 0.5 * np.linalg.slogdet(matrix)[1]
    np.testing.assert_allclose(layer.log_det(x)[0], volume, rtol=1e-9)


def test_precisions_stay_positive_and_change_nothing_above_the_floor():
    raw = np.array([-1e6, -1.0, 0.0, 2.0, 1e6])
    held = floored(np, raw)
    assert held.min() > 0
    np.testing.assert_allclose(held[3:], raw[3:], rtol=1e-12)


# Groups with known errors, as eight schools: Gaussian given the log scale.
ERRORS = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
OUTCOMES = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])


def schools(centred):
    def energy(theta):
        mean, log_scale, groups = theta[0], theta[1], theta[2:]
        scale = jnp.exp(log_scale)
        effects = groups if centred else mean + scale * groups
        prior = jnp.sum(((groups - mean) / scale) ** 2) / 2 + 8 * log_scale
        prior = prior if centred else jnp.sum(groups**2) / 2
        fit = jnp.sum(((OUTCOMES - effects) / ERRORS) ** 2) / 2
        return fit + prior + mean**2 / 50 + scale**2 / 200 - log_scale

    return energy


def points_near(rng, energy, centred):
    """Points as chains would leave them: groups and scale vary together."""
    log_scale = rng.normal(1.5, 0.8, 250)
    groups = rng.standard_normal((250, 8))
    mean = rng.normal(5, 4, 250)
    if centred:
        groups = mean[:, None] + np.exp(log_scale)[:, None] * groups
    theta = np.column_stack([mean, log_scale, groups])
    value, grad = jax.vmap(jax.value_and_grad(energy))(jnp.asarray(theta))
    return EvaluatedPoints(theta, np.asarray(value), np.asarray(grad))


def star_graph():
    edges = np.eye(10, dtype=bool)
    edges[:2] = edges[:, :2] = True
    return scipy.sparse.csr_matrix(edges)


@pytest.mark.parametrize("centred", [True, False])
def test_both_forms_of_a_hierarchical_model_become_standard_normal(centred):
    """The layer undoes the difference between the two forms."""
    rng = np.random.default_rng(4)
    energy = schools(centred)
    points = points_near(rng, energy, centred)
    graph = Graph(star_graph(), {1: Link("exp")})
    fitted = fit_structured(rng, points, graph, np.ones(250))
    assert 1 in fitted.choice.hubs
    assert is_sane(rng, fitted.transport, points, np.ones(250))
    draws = fitted.transport.forward(rng.standard_normal((400, 10)))
    value, grad = jax.vmap(jax.value_and_grad(energy))(jnp.asarray(draws))
    x, scores = fitted.transport.pull_back(draws, np.asarray(grad))
    assert np.median(np.mean((scores - x) ** 2, axis=1)) < 0.02
    log_det = fitted.transport.inverse_and_log_det(draws)[1]
    log_weights = 0.5 * np.sum(x**2, axis=1) + log_det - np.asarray(value)
    low, high = np.quantile(log_weights, (0.16, 0.84))
    assert (high - low) / 2 < 0.5


def test_rows_of_a_gaussian_given_its_hub_are_exact():
    rng = np.random.default_rng(5)
    points = points_near(rng, schools(False), centred=False)
    scores = Scores(points.theta, points.grad, np.ones(250))
    fit = ConditionalFit(rng, scores, star_graph(), {1: Link("exp")}, (1,), (1,))
    choice = fit.exact()
    # In the joint form the mean is exact, too: it is eliminated last.
    for layer, exact in (
        (fit.by_level(choice), np.arange(2, 10)),
        (fit.joint(choice), np.r_[0, 2:10]),
    ):
        x = layer.inverse(points.theta)
        pulled = layer.pull_back(x, points.grad) - layer.log_det_grad(x)
        assert np.abs(pulled - x)[:, exact].max() < 1e-6


def test_only_a_gaussian_given_its_scales_has_a_known_form():
    rng = np.random.default_rng(7)
    energy = schools(True)

    def curved(theta):
        return energy(theta) + 0.01 * jnp.sum(theta[2:] ** 4)

    for model, is_gaussian in ((energy, True), (curved, False)):
        theta = rng.uniform(-2, 2, (40, 10))
        grad = np.asarray(jax.vmap(jax.grad(model))(jnp.asarray(theta)))
        scores = Scores(theta, grad, np.ones(40))
        fit = ConditionalFit(rng, scores, star_graph(), {1: Link("exp")}, (1,), (1,))
        assert (fit.exact() is not None) == is_gaussian


@pytest.mark.parametrize("centred", [True, False])
def test_the_closed_form_is_the_posterior_far_from_its_points(centred):
    """Points in a box around zero; the posterior is not there."""
    rng = np.random.default_rng(8)
    energy = schools(centred)
    theta = rng.uniform(-2, 2, (64, 10))
    value, grad = jax.vmap(jax.value_and_grad(energy))(jnp.asarray(theta))
    scores = Scores(theta, np.asarray(grad), np.ones(64))
    fit = ConditionalFit(rng, scores, star_graph(), {1: Link("exp")}, (1,), (1,))
    layer = fit.joint(fit.exact())
    transport, _ = with_hub_map(rng, layer, scores, np.asarray(value))
    draws = transport.forward(rng.standard_normal((200, 10)))
    x, log_det = transport.inverse_and_log_det(draws)
    energies = np.asarray(jax.vmap(energy)(jnp.asarray(draws)))
    assert np.std(0.5 * np.sum(x**2, axis=1) + log_det - energies) < 0.1


PRIORS = {
    "half-normal": lambda c: jnp.exp(2 * c) / 18,
    "exponential": lambda c: jnp.exp(c) / 4,
    "inverse gamma of the variance": lambda c: 6 * c + 3 * jnp.exp(-2 * c),
    "log-normal": lambda c: (c - 0.3) ** 2 / 0.8 + c,
    "half-Cauchy": lambda c: jnp.log1p(jnp.exp(2 * c) / 9),
    "half-t": lambda c: 2 * jnp.log1p(jnp.exp(2 * c) / 300),
}


@pytest.mark.parametrize("name", PRIORS)
def test_priors_of_scales_are_recognised(name):
    """The marginal of the scale is then known far from the points, too."""
    rng = np.random.default_rng(10)
    groups, prior = 30, PRIORS[name]
    data = 4 * rng.standard_normal(groups)

    def energy(theta):
        mean, c, effects = theta[0], theta[1], theta[2:]
        fit = jnp.sum((data - effects) ** 2) / 2 + mean**2 / 200
        spread = jnp.sum((effects - mean) ** 2) * jnp.exp(-2 * c) / 2
        return fit + spread + groups * c + prior(c) - c

    def marginal(c):
        variance = 1 + jnp.exp(2 * c)
        # Data are normal around a mean whose prior is normal with variance 100.
        scatter = jnp.sum((data - data.mean()) ** 2) / variance / 2
        between = data.mean() ** 2 / (variance / groups + 100) / 2
        volume = (groups - 1) / 2 * jnp.log(variance)
        volume += jnp.log(variance / groups + 100) / 2
        return scatter + between + volume + prior(c) - c

    edges = np.eye(groups + 2, dtype=bool)
    edges[:2] = edges[:, :2] = True
    theta = rng.uniform(-2, 2, (64, groups + 2))
    value, grad = jax.vmap(jax.value_and_grad(energy))(jnp.asarray(theta))
    scores = Scores(theta, np.asarray(grad), np.ones(64))
    graph = scipy.sparse.csr_matrix(edges)
    fit = ConditionalFit(rng, scores, graph, {1: Link("exp")}, (1,), (1,))
    layer = fit.joint(fit.exact())
    level, slopes = marginal_data(layer, scores, np.asarray(value))
    found = explicit_energy(rng, layer, scores, level, slopes)
    assert found is not None
    c = np.linspace(-3, 4, 15)
    expected = np.array([marginal(one) for one in c])
    difference = found(c[:, None]) - expected
    np.testing.assert_allclose(difference - difference[7], 0, atol=1e-4)


def test_a_map_without_hubs_is_the_sparse_gaussian():
    rng = np.random.default_rng(6)
    precision = 2.2 * np.eye(30) - np.eye(30, k=1) - np.eye(30, k=-1)
    theta = rng.multivariate_normal(np.zeros(30), np.linalg.inv(precision), 120)
    points = EvaluatedPoints(
        theta, 0.5 * np.sum(theta @ precision * theta, axis=1), theta @ precision
    )
    graph = Graph(scipy.sparse.csr_matrix(precision != 0))
    fitted = fit_structured(rng, points, graph, np.ones(120))
    x, scores = fitted.transport.pull_back(points.theta, points.grad)
    assert fitted.choice.hubs == ()
    assert np.mean((scores - x) ** 2) < 1e-6


def test_later_levels_stay_bounded_down_a_neck():
    """The precision of a mean of effects saturates as their scale goes to zero."""
    rng = np.random.default_rng(5)
    number = 10
    errors = rng.uniform(0.5, 1.5, number)
    data = rng.standard_normal(number)
    log_tau = rng.uniform(-2.5, 1.0, 300)
    mean = 0.4 * rng.standard_normal(300)
    effects = mean[:, None] + np.exp(log_tau)[:, None] * rng.standard_normal(
        (300, number)
    )
    pull = (effects - mean[:, None]) * np.exp(-2 * log_tau)[:, None]
    grad = np.zeros((300, number + 2))
    grad[:, :number] = (effects - data) / errors**2 + pull
    grad[:, number] = -pull.sum(axis=1)
    theta = np.column_stack([effects, mean, log_tau])
    graph = np.eye(number + 2, dtype=bool)
    graph[number:] = graph[:, number:] = True
    fit = ConditionalFit(
        rng,
        Scores(theta, grad, np.ones(300)),
        scipy.sparse.csr_matrix(graph),
        {number + 1: Link()},
        (number + 1,),
        (number + 1,),
    )
    layer = fit.by_level(fit.choose())
    places = np.array([-8.0, -2.0, 0.5])
    found = layer._moments(places[:, None])[1].precision[0] / layer.scale[number] ** 2
    exact = np.sum(1 / (errors**2 + np.exp(2 * places)[:, None]), axis=1)
    np.testing.assert_allclose(found, exact, rtol=0.05)


def test_the_energy_of_hubs_goes_on_beyond_the_evaluated_ones():
    """Along a line to the left, as in a neck; not slower than its square to the right.

    The energy is that of the logarithm of an exponential variable.
    """
    rng = np.random.default_rng(6)
    c = np.log(rng.exponential(size=200)).clip(-4.0, 1.2)[:, None]
    scores = Scores(c, np.exp(c) - 1, np.ones(200))
    energy = HubEnergy(rng, np.array([0]), scores, (np.exp(c) - c)[:, 0], np.exp(c) - 1)
    places = np.array([[-9.0], [-4.0], [0.0], [1.0], [2.2]])
    found = energy(places) - energy(places[2:3])
    exact = (np.exp(places) - places)[:, 0] - 1
    np.testing.assert_allclose(found[:4], exact[:4], atol=0.5)
    assert 0.6 * exact[4] < found[4] < 1.2 * exact[4]

"""The residual surrogate: its fit, its two implementations, its limits."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import vhmc
from vhmc.evaluation.evaluator import Account
from vhmc.numerics.bases import Additive
from vhmc.surrogate import network_fit as residual_fit
from vhmc.surrogate.network_fit import Lessons, Nodes
from vhmc.surrogate.trainer import Learner
from vhmc.transport.affine import Frame
from vhmc.transport.coupling import Bend
from vhmc.transport.transport_map import Chart


def lessons(rng, number, dim):
    x = rng.standard_normal((number, dim))
    return Lessons(
        x,
        rng.standard_normal((number, dim)),
        rng.standard_normal(number),
        rng.uniform(size=number),
        rng.uniform(size=number),
        np.ones(number, dtype=bool),
    )


def test_the_fit_is_weighted_least_squares():
    """Gradients and centred energies stacked as rows give the same weights."""
    rng = np.random.default_rng(0)
    taught, num_features = lessons(rng, 12, 3), 7
    nodes = residual_fit.place(rng, num_features, taught)
    basis = Additive(jnp.asarray(nodes.directions), jnp.asarray(nodes.offsets))
    jacobians = np.asarray(jax.vmap(basis.jacobian)(taught.x))
    roots = np.sqrt(taught.weight)
    rows = (jacobians * roots[:, None, None]).reshape(-1, num_features)
    right = (taught.grad * roots[:, None]).ravel()
    share = taught.energy_weight / taught.energy_weight.sum()
    outputs, energy = nodes.outputs(taught.x), taught.energy
    energy_roots = np.sqrt(taught.energy_weight)
    rows = np.concatenate([rows, (outputs - share @ outputs) * energy_roots[:, None]])
    right = np.concatenate([right, (energy - share @ energy) * energy_roots])
    gram = rows.T @ rows
    ridge = 1e-3 * np.trace(gram) / num_features
    expected = np.linalg.solve(gram + ridge * np.eye(num_features), rows.T @ right)
    sums = residual_fit.normal_sums(nodes, taught)
    weights = residual_fit.solve(sums.equations(), 1e-3, num_features)
    np.testing.assert_allclose(weights, expected, rtol=1e-8)


def test_sums_add_up():
    rng = np.random.default_rng(0)
    taught = lessons(rng, 20, 3)
    nodes = residual_fit.place(rng, 5, taught)
    whole = residual_fit.normal_sums(nodes, taught)
    first, second = (
        residual_fit.normal_sums(nodes, Lessons(*(rows[part] for rows in taught)))
        for part in (slice(8), slice(8, None))
    )
    for together, apart in zip(whole, first.plus(second), strict=True):
        np.testing.assert_allclose(together, apart, rtol=1e-12)
    for left, expected in zip(whole.minus(second), first, strict=True):
        np.testing.assert_allclose(left, expected, rtol=1e-9, atol=1e-12)


STRAIGHT = Chart((Frame(np.zeros(3), np.eye(3)),))
BENT = Chart(
    (
        *STRAIGHT.layers,
        Bend(np.eye(3), np.array([0.3, -0.2]), np.array([0.4, 0.1])),
        Frame(np.full(3, 0.1), np.diag([1.0, 0.8, 1.1])),
    )
)


def taught_learner(num_features=50, chart=STRAIGHT):
    target = vhmc.from_jax(
        lambda t: -0.25 * jnp.sum(t**4) - t[0] * t[1], np.array([0.5, -0.5, 0.3])
    )
    rng = np.random.default_rng(0)
    account = Account(target, 500)
    account.evaluate(rng.standard_normal((120, 3)), "training")
    learner = Learner(account, chart, num_features, rng)
    learner.learn(redraw=True)
    return learner


@pytest.mark.parametrize("chart", [STRAIGHT, BENT], ids=["straight", "bent"])
def test_host_and_jax_agree_on_the_surrogate(chart):
    learner = taught_learner(chart=chart)
    thetas = 2 * np.random.default_rng(1).standard_normal((40, 3))
    potential = learner.potential
    values = np.asarray(jax.vmap(potential)(thetas))
    np.testing.assert_allclose(learner.energies(thetas), values, rtol=1e-9)
    grads = np.asarray(jax.vmap(jax.grad(potential))(thetas))
    zero = learner.score_errors(thetas, grads)
    np.testing.assert_allclose(zero, 0.0, atol=1e-8)


def test_the_network_learns_what_a_gaussian_cannot():
    thetas = np.random.default_rng(2).standard_normal((50, 3)) * 0.8
    grads = taught_learner(0).account.target.evaluate(thetas).grad
    plain, taught = (
        np.mean(taught_learner(number).score_errors(thetas, grads) ** 2)
        for number in (0, 200)
    )
    assert taught < 0.2 * plain


def test_far_out_the_surrogate_always_rises():
    """Whatever the network has learnt, its density has a finite mass."""
    learner = taught_learner(200)
    rng = np.random.default_rng(0)
    directions = rng.standard_normal((100, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    near, far = (learner.energies(r * directions) for r in (1e3, 2e3))
    assert (far > near + 1e5).all()


def test_a_point_that_is_far_off_has_little_influence():
    learner = taught_learner()
    learner.account.evaluate(np.full((1, 3), 30.0), "training")
    weights = learner.lessons().weight
    assert weights[-1] < 1e-3 * np.median(weights)


def test_holes_raise_the_least_ridge():
    learner = taught_learner()
    before = learner._floor
    learner.mind_holes(np.array([0.0, 0.1, 0.2, -0.1, -30.0, -np.inf]))
    assert learner._floor == 10 * before
    learner.mind_holes(np.zeros(6))
    assert learner._floor < 10 * before


def test_nodes_are_as_many_as_asked_and_finite():
    rng = np.random.default_rng(0)
    taught = lessons(rng, 9, 2)._replace(grad=np.zeros((9, 2)))
    nodes = residual_fit.place(rng, 30, taught)
    assert isinstance(nodes, Nodes)
    assert nodes.directions.shape == (30, 2)
    assert np.isfinite(nodes.directions).all()


def wavy_lessons(frequency):
    """An energy that is a wave along the first axis, and its gradients."""
    x = np.random.default_rng(3).standard_normal((300, 2))
    energy = np.cos(frequency * x[:, 0])
    slope = -frequency * np.sin(frequency * x[:, 0])
    grad = np.stack([slope, np.zeros(300)], axis=1)
    ones = np.ones(300)
    return Lessons(x, grad, energy, ones, ones, ones.astype(bool))


@pytest.mark.parametrize(
    ("frequency", "usual", "chosen"), [(2.0, 40.0, 1.0), (4.0, 0.1, 1.0), (4.0, 1.0, 2)]
)
def test_held_out_error_chooses_the_scale_of_the_nodes(
    monkeypatch, frequency, usual, chosen
):
    """From hinges too narrow for a long wave or too wide for a short one."""
    monkeypatch.setattr(residual_fit, "SHARPNESS", (usual, chosen))
    rng = np.random.default_rng(1)
    taught = wavy_lessons(frequency)
    nodes = residual_fit.place(rng, 400, taught)
    is_out = residual_fit.hold_out(rng, taught)
    sharp = residual_fit.sharpen(nodes, taught, is_out)
    np.testing.assert_allclose(sharp.directions, chosen * nodes.directions)
    hinges = [np.linalg.norm(n.directions, axis=1) / n.offsets for n in (nodes, sharp)]
    np.testing.assert_allclose(*hinges)


def test_an_error_that_is_small_anyway_leaves_the_usual_scale(monkeypatch):
    monkeypatch.setattr(residual_fit, "SHARPNESS", (2.0, 1.0, 0.5))
    rng = np.random.default_rng(0)
    taught = wavy_lessons(0.6)
    nodes = residual_fit.place(rng, 400, taught)
    sharp = residual_fit.sharpen(nodes, taught, residual_fit.hold_out(rng, taught))
    np.testing.assert_array_equal(sharp.directions, 2 * nodes.directions)


def test_the_scale_is_left_alone_where_nothing_can_be_held_out():
    rng = np.random.default_rng(0)
    taught = wavy_lessons(1.0)
    nodes = residual_fit.place(rng, 40, taught)
    same = residual_fit.sharpen(nodes, taught, np.zeros(300, dtype=bool))
    np.testing.assert_array_equal(same.directions, nodes.directions)

"""The random-feature network: its fit, and how its scale is chosen."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from vhmc.numerics.bases import Additive
from vhmc.surrogate import network_fit
from vhmc.surrogate.network import Nodes
from vhmc.surrogate.residual_fit import hold_out
from vhmc.surrogate.training_set import TrainingSet


def random_set(rng, number, dim):
    x = rng.standard_normal((number, dim))
    return TrainingSet(
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
    training, num_features = random_set(rng, 12, 3), 7
    nodes = network_fit.place(rng, num_features, training)
    basis = Additive(jnp.asarray(nodes.directions), jnp.asarray(nodes.offsets))
    jacobians = np.asarray(jax.vmap(basis.jacobian)(training.x))
    roots = np.sqrt(training.weight)
    rows = (jacobians * roots[:, None, None]).reshape(-1, num_features)
    right = (training.grad * roots[:, None]).ravel()
    weight = training.energy_weight / training.energy_weight.sum()
    outputs, energy = nodes.outputs(training.x), training.energy
    energy_roots = np.sqrt(training.energy_weight)
    rows = np.concatenate([rows, (outputs - weight @ outputs) * energy_roots[:, None]])
    right = np.concatenate([right, (energy - weight @ energy) * energy_roots])
    gram = rows.T @ rows
    ridge = 1e-3 * np.trace(gram) / num_features
    expected = np.linalg.solve(gram + ridge * np.eye(num_features), rows.T @ right)
    sums = network_fit.normal_sums(nodes, training)
    weights = network_fit.solve(sums.equations(), 1e-3, num_features)
    np.testing.assert_allclose(weights, expected, rtol=1e-8)


def test_normal_terms_are_the_sums_over_jacobians():
    rng = np.random.default_rng(1)
    x, grad = rng.standard_normal((2, 20, 3))
    nodes = Nodes(rng.standard_normal((7, 3)), rng.standard_normal(7))
    matrix, right = nodes.normal_terms(x, grad)
    basis = Additive(jnp.asarray(nodes.directions), jnp.asarray(nodes.offsets))
    jacobians = jax.vmap(basis.jacobian)(x)
    expected = jnp.einsum("nds,ndt->st", jacobians, jacobians)
    np.testing.assert_allclose(matrix, expected, rtol=1e-9)
    np.testing.assert_allclose(right, jnp.einsum("nds,nd->s", jacobians, grad))


def test_sums_add_up():
    rng = np.random.default_rng(0)
    training = random_set(rng, 20, 3)
    nodes = network_fit.place(rng, 5, training)
    whole = network_fit.normal_sums(nodes, training)
    first, second = (
        network_fit.normal_sums(nodes, training.where(part))
        for part in (slice(8), slice(8, None))
    )
    for together, apart in zip(whole, first.plus(second), strict=True):
        np.testing.assert_allclose(together, apart, rtol=1e-12)
    for left, expected in zip(whole.minus(second), first, strict=True):
        np.testing.assert_allclose(left, expected, rtol=1e-9, atol=1e-12)


def test_nodes_are_as_many_as_asked_and_finite():
    rng = np.random.default_rng(0)
    training = random_set(rng, 9, 2)._replace(grad=np.zeros((9, 2)))
    nodes = network_fit.place(rng, 30, training)
    assert isinstance(nodes, Nodes)
    assert nodes.directions.shape == (30, 2)
    assert np.isfinite(nodes.directions).all()


def wavy_set(frequency):
    """An energy that is a wave along the first axis, and its gradients."""
    x = np.random.default_rng(3).standard_normal((300, 2))
    energy = np.cos(frequency * x[:, 0])
    slope = -frequency * np.sin(frequency * x[:, 0])
    grad = np.stack([slope, np.zeros(300)], axis=1)
    ones = np.ones(300)
    return TrainingSet(x, grad, energy, ones, ones, ones.astype(bool))


@pytest.mark.parametrize(
    ("frequency", "usual", "chosen"), [(2.0, 40.0, 1.0), (4.0, 0.1, 1.0), (4.0, 1.0, 2)]
)
def test_held_out_error_chooses_the_scale_of_the_nodes(
    monkeypatch, frequency, usual, chosen
):
    """From hinges too narrow for a long wave or too wide for a short one."""
    monkeypatch.setattr(network_fit, "SCALE_FACTORS", (usual, chosen))
    rng = np.random.default_rng(1)
    training = wavy_set(frequency)
    nodes = network_fit.place(rng, 400, training)
    is_out = hold_out(rng, training)
    scaled = network_fit.choose_scale(nodes, training, is_out)
    np.testing.assert_allclose(scaled.directions, chosen * nodes.directions)
    hinges = [np.linalg.norm(n.directions, axis=1) / n.offsets for n in (nodes, scaled)]
    np.testing.assert_allclose(*hinges)


def test_an_error_that_is_small_anyway_leaves_the_usual_scale(monkeypatch):
    monkeypatch.setattr(network_fit, "SCALE_FACTORS", (2.0, 1.0, 0.5))
    rng = np.random.default_rng(0)
    training = wavy_set(0.6)
    nodes = network_fit.place(rng, 400, training)
    scaled = network_fit.choose_scale(nodes, training, hold_out(rng, training))
    np.testing.assert_array_equal(scaled.directions, 2 * nodes.directions)


def test_the_scale_is_left_alone_where_nothing_can_be_held_out():
    rng = np.random.default_rng(0)
    training = wavy_set(1.0)
    nodes = network_fit.place(rng, 40, training)
    same = network_fit.choose_scale(nodes, training, np.zeros(300, dtype=bool))
    np.testing.assert_array_equal(same.directions, nodes.directions)

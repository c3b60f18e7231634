"""Moves on a surrogate without a residual, against those of the compiled kernels."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from vhmc.sampler.drawing import draw
from vhmc.surrogate.moves import Pace, independent, single_trajectory, walk
from vhmc.surrogate.network import Network, Nodes
from vhmc.surrogate.residual import Guard, ZeroResidual
from vhmc.surrogate.surrogate import Surrogate
from vhmc.transport.affine import Affine
from vhmc.transport.transport_map import TransportMap

DIM = 3


def surrogate(num_nodes, radius=2.0, curvature=3.0):
    """A standard normal in a guard, with nodes of no weight."""
    nodes = Nodes(np.ones((num_nodes, DIM)), np.zeros(num_nodes))
    residual = Network(nodes, np.zeros(num_nodes), num_nodes)
    transport = TransportMap((Affine(np.zeros(DIM), np.eye(DIM)),))
    guard = Guard(np.asarray(radius), np.asarray(curvature))
    return Surrogate(transport, residual if num_nodes else ZeroResidual(), guard)


def radial_moments(temperature, radius=2.0, guard=3.0):
    """Of the squared length, by quadrature: mean and sd."""
    r = np.linspace(0, 15, 200_001)
    energy = 0.5 * r**2 + 0.5 * guard * np.maximum(r - radius, 0) ** 2
    weight = r ** (DIM - 1) * np.exp(-energy / temperature)
    weight /= weight.sum()
    mean = weight @ r**2
    return mean, np.sqrt(weight @ (r**2 - mean) ** 2)


@pytest.mark.parametrize("temperature", [1.0, 2.2])
def test_draws_have_the_law_of_the_guarded_normal(temperature, seed):
    number = 20_000
    rng = np.random.default_rng(seed)
    x = independent(rng, surrogate(0).latent, np.full(number, temperature), DIM)
    mean, sd = radial_moments(temperature)
    square = np.sum(x**2, axis=1)
    # Two moments at two temperatures and six means: one false alarm in 10,000 each.
    assert abs(square.mean() - mean) < 3.9 * sd / np.sqrt(number)
    assert (np.abs(x.mean(axis=0)) < 3.9 * x.std(axis=0) / np.sqrt(number)).all()


def test_a_network_of_no_weight_walks_with_the_same_law(seed):
    rng = np.random.default_rng(seed)
    hot, number = np.full(400, 1.5), 400
    x = np.zeros((number, DIM))
    squares = []
    for nodes in (0, 4):
        ends = walk(rng, surrogate(nodes).latent, x, Pace(0.4, 5, 30), hot).x
        squares.append(np.sum(np.asarray(ends) ** 2, axis=1))
    mean, sd = radial_moments(1.5)
    for square in squares:  # one false alarm in 10,000
        assert abs(square.mean() - mean) < 3.9 * sd / np.sqrt(number)


def test_a_trajectory_is_a_reversible_rotation():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((50, DIM))
    made = single_trajectory(
        np.random.default_rng(1), surrogate(0).latent, x, Pace(0.3, 7)
    )
    # Energy of the normal is kept, so what the momentum loses the position gains.
    gained = 0.5 * np.sum(np.asarray(made.x) ** 2 - x**2, axis=1)
    np.testing.assert_allclose(made.kinetic_drop, gained, rtol=1e-10)
    assert not np.allclose(made.x, x)


def test_energies_of_draws_are_those_of_the_surrogate():
    bare = surrogate(0)
    assert bare.residual.is_zero and not surrogate(1).residual.is_zero
    drawn = draw(np.random.default_rng(0), bare, np.zeros((4, DIM)), 0.5, 500)
    flat = jnp.asarray(drawn.x.reshape(-1, DIM))
    energies = jax.vmap(bare.latent)(flat)
    np.testing.assert_allclose(energies, drawn.energy.ravel(), rtol=1e-12)
    assert drawn.ess > 1500 and drawn.rhat < 1.02

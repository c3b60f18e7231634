"""Moves on a surrogate without a network, against those of the compiled kernels."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from vhmc.numerics.bases import Additive
from vhmc.sampler.drawing import draw
from vhmc.surrogate.moves import independent, is_bare, launch, walk
from vhmc.surrogate.residual import Residual

DIM = 3


def residual(num_nodes, radius=2.0, guard=3.0):
    basis = Additive(jnp.ones((num_nodes, DIM)), jnp.zeros(num_nodes))
    return Residual(
        basis, jnp.zeros(num_nodes), jnp.asarray(radius), jnp.asarray(guard)
    )


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
    x = independent(rng, residual(0), np.full(number, temperature))
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
        ends = walk(rng, x, residual(nodes), 0.4, 5, 30, hot).x
        squares.append(np.sum(np.asarray(ends) ** 2, axis=1))
    mean, sd = radial_moments(1.5)
    for square in squares:  # one false alarm in 10,000
        assert abs(square.mean() - mean) < 3.9 * sd / np.sqrt(number)


def test_a_shot_is_a_reversible_rotation():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((50, DIM))
    shot = launch(np.random.default_rng(1), x, residual(0), 0.3, 7)
    # Energy of the normal is kept, so what the momentum loses the position gains.
    gained = 0.5 * np.sum(np.asarray(shot.x) ** 2 - x**2, axis=1)
    np.testing.assert_allclose(shot.kinetic_drop, gained, rtol=1e-10)
    assert not np.allclose(shot.x, x)


def test_energies_of_draws_are_those_of_the_surrogate():
    bare = residual(0)
    assert is_bare(bare) and not is_bare(residual(1))
    starts = np.zeros((4, DIM))
    frozen = draw(np.random.default_rng(0), bare, starts, 0.5, 500)
    flat = jnp.asarray(frozen.x.reshape(-1, DIM))
    np.testing.assert_allclose(jax.vmap(bare)(flat), frozen.energy.ravel(), rtol=1e-12)
    assert frozen.ess > 1500 and frozen.rhat < 1.02

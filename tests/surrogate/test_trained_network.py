"""The trained network: its gradients, growth and sparsity, and when it is chosen."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from vhmc.numerics.proximal_adam import shrink
from vhmc.surrogate import trained_network_fit
from vhmc.surrogate.residual_choice import FEWEST_POINTS, ResidualChoice
from vhmc.surrogate.residual_fit import AbstractResidualFit, Fitted, hold_out
from vhmc.surrogate.trained_network import Layers, TrainedNetwork
from vhmc.surrogate.trained_network_fit import (
    TrainedNetworkFit,
    solve_outputs,
    train,
    training_loss,
)
from vhmc.surrogate.training_set import TrainingSet

DIM, USED, MOST = 10, (2, 7), 250


def energy(x):
    """A residual of two of the coordinates."""
    first, second = x[USED[0]], x[USED[1]]
    return jnp.logaddexp(2 * first, 0) + first * jnp.tanh(second) + jnp.sin(second)


@functools.cache
def two_of_ten(number=MOST):
    if number < MOST:
        return two_of_ten().where(slice(number))
    x = np.random.default_rng(0).standard_normal((number, DIM))
    values, grads = jax.vmap(jax.value_and_grad(energy))(x)
    ones = np.ones(number)
    return TrainingSet(
        x, np.asarray(grads), np.asarray(values), ones, ones, ones.astype(bool)
    )


def random_network(dim=3, inner=6, outer=5):
    rng = np.random.default_rng(1)
    layers = Layers(
        rng.standard_normal((inner, dim)),
        rng.standard_normal(inner),
        rng.standard_normal((outer, inner)),
        rng.standard_normal(outer),
    )
    return TrainedNetwork(layers, rng.standard_normal(outer))


@pytest.fixture(scope="module", autouse=True)
def narrow():
    """Narrow layers, which are trained sooner, and a penalty above the batches' noise.

    At the default penalty one or two of the eight inputs kept weights with some seeds.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trained_network_fit, "WIDTHS", (24, 16))
        patch.setattr(trained_network_fit, "PENALTY", 0.01)
        yield


@pytest.fixture(scope="module", params=[2, 12])
def trained(narrow, request):
    """A network trained on the residual of two coordinates, for two seeds."""
    rng = np.random.default_rng(request.param)
    return train(rng, two_of_ten(), None, 4000, 1e-2)


def test_gradients_are_those_of_autodiff():
    network = random_network()
    x = 3 * np.random.default_rng(3).standard_normal((20, 3))
    device = network.on_device()
    values, grads = jax.vmap(jax.value_and_grad(device))(x)
    np.testing.assert_allclose(network.energies(x), values, rtol=1e-12)
    np.testing.assert_allclose(network.grads(x), grads, rtol=1e-10)
    summed = np.einsum("njk,j->nk", network.layers.jacobians(x), network.weights)
    np.testing.assert_allclose(summed, grads, rtol=1e-10)


def test_growth_is_at_most_linear():
    network = random_network()
    x = np.random.default_rng(4).standard_normal((50, 3))
    for length in (1.0, 1e3, 1e6):
        lengths = np.linalg.norm(network.grads(length * x), axis=1)
        assert lengths.max() <= network.slope


def test_inputs_that_do_not_matter_are_removed(trained):
    np.testing.assert_array_equal(np.flatnonzero(trained.layers.is_used), USED)
    # What is left is fitted: the penalty does not cost the residual itself.
    training = two_of_ten()
    assert training_loss(trained, training) < 0.02 * training_loss(None, training)


def test_a_column_vanishes_where_its_gradient_is_below_the_penalty():
    directions = jnp.array([[3.0, 0.3], [4.0, 0.4]])
    square = jnp.array([[4.0, 0.01], [4.0, 0.01]])
    shrunk = shrink(directions, square, jnp.asarray(1.0))
    # Lengths 5 and 0.5 are shortened by 1/2 and by 10.
    np.testing.assert_allclose(shrunk, [[2.7, 0.0], [3.6, 0.0]], rtol=1e-6)


def test_a_warm_start_never_increases_the_loss(trained):
    training = two_of_ten()
    for num_steps in (1, 50):
        # Steps that are much too long.
        again = train(np.random.default_rng(5), training, trained, num_steps, 0.5)
        assert training_loss(again, training) <= training_loss(trained, training)
    solved = solve_outputs(trained, training, 1e-4)
    assert training_loss(solved, training) <= training_loss(trained, training)


def test_between_trainings_only_output_weights_change(monkeypatch):
    monkeypatch.setattr(trained_network_fit, "FIRST", 20)
    monkeypatch.setattr(trained_network_fit, "LAST", 5)
    training, fit = two_of_ten(), TrainedNetworkFit()
    rng = np.random.default_rng(6)
    is_out = hold_out(rng, training)
    options = {"choose_anew": False, "least_ridge": 1e-4}
    some = training.where(slice(0, 220))
    old = fit.fit(rng, some, is_out[:220], redraw=True, **options).residual
    new = fit.fit(rng, training, is_out, redraw=False, **options).residual
    np.testing.assert_array_equal(old.layers.directions, new.layers.directions)
    assert np.any(old.weights != new.weights)


class Fixed(AbstractResidualFit):
    """A family of one residual with a given error; counts how often it is fitted."""

    def __init__(self, error):
        self.error, self.residual = error, random_network()
        self.held_out = []

    def fit(self, rng, training, is_out, **options):
        self.held_out.append(is_out)
        return Fitted(self.residual, self.error)

    def reset(self):
        pass


def choose(simple, trained, number=FEWEST_POINTS, **options):
    rng, training = np.random.default_rng(7), two_of_ten(number)
    is_out = hold_out(rng, training)
    options = {"redraw": True, "choose_anew": True, "least_ridge": 1e-4} | options
    choice = ResidualChoice(simple, trained)
    return choice, choice.fit(rng, training, is_out, **options)


@pytest.mark.parametrize(
    ("error", "is_trained"), [(0.5, True), (1.0, False), (0.95, False), (2.0, False)]
)
def test_the_better_family_is_chosen_and_the_simpler_on_a_tie(error, is_trained):
    simple, trained = Fixed(1.0), Fixed(error)
    fitted = choose(simple, trained)[1]
    assert fitted.residual is (trained if is_trained else simple).residual


def test_no_network_is_trained_without_reason():
    for error, number in [(1.0, FEWEST_POINTS - 1), (0.001, FEWEST_POINTS)]:
        trained = Fixed(0.0)
        choose(Fixed(error), trained, number)
        assert not trained.held_out


def test_points_once_held_out_stay_so():
    simple, trained = Fixed(1.0), Fixed(0.5)
    choice, _ = choose(simple, trained)
    more = two_of_ten(FEWEST_POINTS + 20)
    everything = np.ones(len(more.x), dtype=bool)
    options = {"redraw": False, "choose_anew": False, "least_ridge": 1e-4}
    choice.fit(np.random.default_rng(8), more, everything, **options)
    first, second = trained.held_out
    np.testing.assert_array_equal(second[:FEWEST_POINTS], first)
    assert second[FEWEST_POINTS:].all()
    # The family that won is fitted alone until the next contest.
    assert len(simple.held_out) == 1

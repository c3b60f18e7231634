"""Finding the posterior: descents in step, and frames from gradients."""

import jax.numpy as jnp
import numpy as np
import pytest

import vhmc
from vhmc.evaluation.evaluator import Account, Overdrawn
from vhmc.sampler.descents import Descent, descend
from vhmc.sampler.locate import Located, locate
from vhmc.sampler.warm_up import settle
from vhmc.transport.affine import Frame, divergence, frame_from_precision
from vhmc.transport.affine_fit import (
    geometric_mean,
    refit,
    stretch,
    stretch_along,
)

RNG = np.random.default_rng(0)


def spd(dim):
    root = RNG.standard_normal((dim, dim))
    return root @ root.T + np.eye(dim)


def gaussian_target(mean, precision, start):
    return vhmc.from_jax(
        lambda theta: -0.5 * (theta - mean) @ precision @ (theta - mean), start
    )


def test_frames_invert():
    frame = frame_from_precision(RNG.standard_normal(4), spd(4))
    x = RNG.standard_normal((5, 4))
    np.testing.assert_allclose(frame.to_x(frame.to_theta(x)), x, atol=1e-12)


def test_geometric_mean_solves_its_equation():
    covariance, information = spd(4), spd(4)
    mean = geometric_mean(covariance, information)
    np.testing.assert_allclose(mean @ information @ mean, covariance, rtol=1e-9)


def test_gradients_of_a_gaussian_give_it_away_wherever_they_are():
    """With many points the old frame, which shrinks the answer, is forgotten."""
    mean, precision = RNG.standard_normal(3), spd(3)
    thetas = 5 + 0.3 * RNG.standard_normal((100_000, 3))
    grads = (thetas - mean) @ precision
    frame = Frame(np.zeros(3), np.eye(3))
    for _ in range(4):
        x = frame.to_x(thetas)
        frame = frame.then(refit(x, frame.grad_to_x(x, grads), np.ones(len(x))))
    np.testing.assert_allclose(frame.mean, mean, atol=0.01)
    covariance = frame.factor @ frame.factor.T
    np.testing.assert_allclose(covariance, np.linalg.inv(precision), atol=0.01)


def test_a_frame_is_stretched_only_where_points_outgrow_it():
    x = RNG.standard_normal((500, 2)) * np.array([4.0, 1.0])
    wide = stretch(x)
    assert 4 < wide.factor[0, 0] < 5.5
    assert abs(wide.factor[1, 1] - 1) < 0.1
    same = stretch(RNG.standard_normal((500, 2)))
    np.testing.assert_allclose(same.factor, np.eye(2), atol=1e-12)


def test_a_frame_is_stretched_along_a_parameter_that_outgrew_it():
    """Too little for the sure test in all directions at once, but not for one alone."""
    dim = 20
    x = RNG.standard_normal((150, dim))
    x[:, 3] *= 1.5
    identity = np.eye(dim)
    np.testing.assert_allclose(stretch(x).factor, identity, atol=1e-12)
    wide = stretch_along(x, identity)
    widths = np.sqrt(np.diag(wide.factor @ wide.factor.T))
    assert 1.8 < widths[3] < 2.8
    np.testing.assert_allclose(np.delete(widths, 3), 1.0, atol=1e-12)


def test_divergence_is_that_of_gaussians():
    frame = Frame(np.array([0.5]), np.array([[0.5]]))
    exact = 0.5 * (1 / 4 + 1 / 4 - 1 + np.log(4))
    assert divergence(frame) == pytest.approx(exact)


def test_descents_in_step_find_the_minimum_and_end():
    target = gaussian_target(np.ones(3), spd(3), np.zeros(3))
    descents = [Descent(start) for start in (np.zeros(3), 4 * np.ones(3))]
    batches = []

    def evaluate(thetas):
        batches.append(len(thetas))
        return target.evaluate(thetas)

    descend(descents, evaluate, 60, lambda descent: False)
    for descent in descents:
        np.testing.assert_allclose(descent.theta, 1.0, atol=1e-4)
        descent.close()
        assert not descent._thread.is_alive() or descent.is_done
    assert max(batches) == 2, "the model is asked for batches"
    assert sum(batches) == target.num_evaluations


def test_a_far_start_and_walls_are_survived():
    """Energies are infinite beyond 60: line searches bounce off."""

    def log_density(theta):
        value = -0.5 * jnp.sum((theta - 50) ** 2)
        return jnp.where(jnp.all(theta < 60), value, -jnp.inf)

    account = Account(vhmc.from_jax(log_density, np.full(2, -1000.0)), 400)
    located = locate(account, np.random.default_rng(0), 200, True)
    np.testing.assert_allclose(located.frame.mean, 50.0, atol=0.5)
    assert located.has_mode


def test_a_density_without_a_mode_is_noticed():
    """Energy falls for ever along the first coordinate."""
    target = vhmc.from_jax(lambda theta: theta[0] - 0.5 * theta[1] ** 2, np.zeros(2))
    account = Account(target, 300)
    assert not locate(account, np.random.default_rng(0), 100, True).has_mode


def test_settling_leaves_a_mode_for_the_mass():
    """A log-gamma with shape 1 has its mass 0.58 below its mode, skewed."""
    target = vhmc.from_jax(lambda t: jnp.sum(t - jnp.exp(t)), np.zeros(8))
    account = Account(target, 500)
    frame = Frame(np.zeros(8), np.eye(8))
    located = Located(frame, [], np.zeros((1, 8)), np.zeros(1), np.ones(1) > 0, True)
    frame = settle(account, located, np.random.default_rng(0), 96, 16)
    assert frame.mean.mean() < -0.2
    assert sum(account.costs.values()) == target.num_evaluations <= 96


def test_a_neck_without_a_mode_is_left_for_a_place_on_the_way():
    """Centred eight-dimensional funnel: the energy falls for ever as `v` does."""

    def log_density(theta):
        v, x = theta[0], theta[1:]
        return -0.5 * (v / 3) ** 2 - 0.5 * jnp.sum(x**2) * jnp.exp(-v) - 4 * v

    target = vhmc.from_jax(log_density, np.ones(9))
    account, rng = Account(target, 600), np.random.default_rng(0)
    located = locate(account, rng, 200, with_hessian=True)
    assert located.frame.mean[0] < -15
    frame = settle(account, located, rng, 150, 16)
    assert abs(frame.mean[0]) < 6
    assert account.costs["scouting"] + account.costs["settling"] <= 150


def test_an_account_refuses_what_it_cannot_pay():
    target = gaussian_target(np.zeros(2), np.eye(2), np.zeros(2))
    account = Account(target, 3)
    account.evaluate(np.zeros((2, 2)), "training")
    with pytest.raises(Overdrawn):
        account.evaluate(np.zeros((2, 2)), "training")
    with pytest.raises(Overdrawn):
        account.hessian(np.zeros(2), "hessian")
    assert target.num_evaluations == 2
    assert account.left == 1

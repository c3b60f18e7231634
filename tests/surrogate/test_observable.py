"""Emulated outputs: gradients, exactness on a linear model, choice and refusal."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import vhmc
from vhmc.evaluation.evaluator import Evaluator
from vhmc.surrogate.competing_fit import CompetingFit
from vhmc.surrogate.emulator_fit import balanced_groups
from vhmc.surrogate.observable import ObservableResidual
from vhmc.surrogate.observable_fit import ObservableFit
from vhmc.surrogate.residual_fit import hold_out
from vhmc.surrogate.trainer import Trainer
from vhmc.surrogate.training_set import training_set
from vhmc.transport.affine import Affine
from vhmc.transport.transport_map import TransportMap

DIM, OUTPUTS = 4, 11
MATRIX = np.random.default_rng(5).standard_normal((OUTPUTS, DIM))
PRIOR = np.zeros(DIM), 1.5
MAP = TransportMap((Affine(np.full(DIM, 0.2), 0.5 * np.eye(DIM)),))


def linear(theta):
    return MATRIX @ theta


def curved(theta):
    return jnp.tanh(MATRIX @ theta) + 0.1 * (MATRIX @ theta)


def evaluated(forward, number=150, **changes):
    """A target, and the log of points around the origin."""
    target = vhmc.from_forward(forward, np.ones(OUTPUTS), 0.7, prior=PRIOR)
    for name, value in changes.items():
        setattr(target, name, target.observable._replace(**value))
    evaluator = Evaluator(target, 1000)
    thetas = np.random.default_rng(1).normal(0.2, 0.7, (number, DIM))
    evaluator.evaluate(thetas, "training")
    return target, evaluator.log


def fitted(forward, **changes):
    target, log = evaluated(forward, **changes)
    rng, training = np.random.default_rng(0), training_set(log, MAP)
    options = {"redraw": True, "choose_anew": True, "least_ridge": 0.0}
    fit = ObservableFit(target.observable)
    return fit.fit(rng, training, hold_out(rng, training), **options), training


def test_host_and_device_agree_and_gradients_are_those_of_autodiff():
    (residual, _), training = fitted(curved)
    x = training.x[:6]
    device = residual.on_device()
    np.testing.assert_allclose(residual.energies(x), jax.vmap(device)(x), rtol=1e-9)
    expected = jax.vmap(jax.grad(device))(x)
    np.testing.assert_allclose(residual.grads(x), expected, rtol=1e-7, atol=1e-7)


def test_a_linear_model_is_emulated_exactly():
    (residual, error), training = fitted(linear)
    assert error < 1e-6
    between = 0.7 * training.x[:50]
    target, _ = evaluated(linear, number=4)
    square = 0.5 * np.sum(between**2, axis=1)
    truth = target.evaluate(MAP.forward(between)).energy
    found = residual.energies(between) + square
    np.testing.assert_allclose(found, truth, rtol=1e-4)


def test_the_surrogate_is_normalisable_as_the_prior_is():
    (residual, _), _ = fitted(curved)
    x = 100 * np.random.default_rng(2).standard_normal((30, DIM))
    energies = residual.energies(x) + 0.5 * np.sum(x**2, axis=1)
    prior = 0.5 * np.sum((MAP.forward(x) / PRIOR[1]) ** 2, axis=1)
    assert (energies >= prior - 1e-6).all()


def test_outputs_are_divided_into_groups_of_equal_size():
    groups = balanced_groups(np.random.default_rng(0).standard_normal((5, 37)))
    members = groups[groups >= 0]
    assert sorted(members) == list(range(37))
    assert len(groups) == 8 and (groups < 0).sum() == groups.size - 37


def test_the_trainer_emulates_where_that_is_better():
    target, log = evaluated(curved)
    rng = np.random.default_rng(0)
    trainer = Trainer(MAP, 60, rng, observable=target.observable)
    surrogate = trainer.start(log)
    assert isinstance(surrogate.residual, ObservableResidual)
    again = trainer.refit(log, log.theta, log.grad)
    assert isinstance(again.residual, ObservableResidual)
    assert len(again.transport.layers) == 1


def test_without_outputs_the_network_serves():
    target, log = evaluated(curved)
    log = log._replace(outputs=np.full_like(log.outputs, np.nan))
    rng = np.random.default_rng(0)
    fit = CompetingFit(ObservableFit(target.observable), 60)
    training = training_set(log, MAP)
    options = {"redraw": True, "choose_anew": True, "least_ridge": 1e-6}
    residual, _ = fit.fit(rng, training, hold_out(rng, training), **options)
    assert not isinstance(residual, ObservableResidual)


def test_outputs_that_do_not_give_the_energies_are_refused():
    wrong = {"observable": {"sd": np.full(OUTPUTS, 0.5)}}
    with pytest.raises(ValueError, match="outputs do not give the model's energies"):
        fitted(curved, **wrong)

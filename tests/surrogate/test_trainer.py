"""The trainer: surrogates on host and device, their limits, their residuals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.densities import Density
from vhmc.surrogate.residual import AbstractResidual
from vhmc.surrogate.residual_fit import AbstractResidualFit, Fitted, zero_error
from vhmc.surrogate.trainer import Trainer
from vhmc.surrogate.training_set import training_set
from vhmc.transport.affine import Affine
from vhmc.transport.coupling import Coupling
from vhmc.transport.transport_map import TransportMap

STRAIGHT = TransportMap((Affine(np.zeros(3), np.eye(3)),))
CURVED = TransportMap(
    (
        *STRAIGHT.layers,
        Coupling(np.eye(3), np.array([0.3, -0.2]), np.array([0.4, 0.1])),
        Affine(np.full(3, 0.1), np.diag([1.0, 0.8, 1.1])),
    )
)


def quartic():
    return Density(lambda t: -0.25 * jnp.sum(t**4) - t[0] * t[1])


def trained(num_features=50, transport=STRAIGHT, **options):
    """A trainer, and the log that it was given."""
    rng, density = np.random.default_rng(0), quartic()
    density(rng.standard_normal((120, 3)), "training")
    trainer = Trainer(transport, num_features, rng, **options)
    trainer.start(density.log)
    return trainer, density


@pytest.mark.parametrize("transport", [STRAIGHT, CURVED], ids=["straight", "curved"])
def test_host_and_jax_agree_on_the_surrogate(transport):
    surrogate = trained(transport=transport)[0].surrogate
    assert not surrogate.residual.is_zero
    thetas = 2 * np.random.default_rng(1).standard_normal((40, 3))
    potential = surrogate.log_density.potential
    values = np.asarray(jax.vmap(potential)(thetas))
    np.testing.assert_allclose(surrogate.energies(thetas), values, rtol=1e-9)
    grads = np.asarray(jax.vmap(jax.grad(potential))(thetas))
    zero = surrogate.score_errors(thetas, grads)
    np.testing.assert_allclose(zero, 0.0, atol=1e-8)
    back = potential.on_host()
    np.testing.assert_allclose(back.energies(thetas), values, rtol=1e-9)


def test_a_fit_makes_a_new_surrogate_and_leaves_the_old_one():
    trainer, density = trained()
    old = trainer.surrogate
    thetas = np.random.default_rng(3).standard_normal((30, 3))
    before = old.energies(thetas)
    density(2 * thetas, "training")
    new = trainer.refit(density.log, thetas, density(thetas, "training").grad)
    assert new is trainer.surrogate and new is not old
    np.testing.assert_array_equal(old.energies(thetas), before)
    assert not np.allclose(new.energies(thetas), before)


def test_the_network_learns_what_a_gaussian_cannot():
    thetas = np.random.default_rng(2).standard_normal((50, 3)) * 0.8
    grads = quartic()(thetas, "training").grad
    plain, fitted = (
        np.mean(trained(number)[0].surrogate.score_errors(thetas, grads) ** 2)
        for number in (0, 200)
    )
    assert fitted < 0.2 * plain


def test_far_out_the_surrogate_always_rises():
    """Whatever the network was fitted to, its density has a finite mass."""
    surrogate = trained(200)[0].surrogate
    rng = np.random.default_rng(0)
    directions = rng.standard_normal((100, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    near, far = (surrogate.energies(r * directions) for r in (1e3, 2e3))
    assert (far > near + 1e5).all()


def test_a_point_that_is_far_off_has_little_influence():
    trainer, density = trained()
    density(np.full((1, 3), 30.0), "training")
    weights = trainer.training_set(density.log).weight
    assert weights[-1] < 1e-3 * np.median(weights)


def test_points_of_the_search_are_not_typical():
    density = quartic()
    points = np.random.default_rng(0).standard_normal((20, 3))
    for phase in ("search", "screening", "training"):
        density(points, phase)
    is_typical = training_set(density.log, STRAIGHT).is_typical
    assert not is_typical[:40].any() and is_typical[40:].all()


def test_without_a_network_the_least_ridge_stays():
    """Else a network that comes in late has hardly any, and holes."""
    trainer, _ = trained(num_features=0)
    before = trainer._least_ridge.value
    trainer.adapt_ridge(np.zeros(6))
    trainer.keep_ridge(np.array([0.0, 0.0, -30.0]))
    assert trainer._least_ridge.value == before


def test_no_residual_where_the_map_is_the_posterior():
    """All but: a ripple that moves no mean by more than 0.02 sd, until it matters."""
    density = Density(lambda t: -0.5 * jnp.sum(t**2) + 0.02 * jnp.sum(jnp.sin(t)))
    rng = np.random.default_rng(0)
    density(rng.standard_normal((120, 3)), "training")
    trainer = Trainer(STRAIGHT, 50, rng)
    assert trainer.start(density.log).residual.is_zero
    assert trainer.is_map_sufficient
    trainer.require_residual()
    assert not trainer.update(density.log).residual.is_zero
    assert not trainer.is_map_sufficient


class Arctan(AbstractResidual):
    """A new family of residuals: the sum of arctangents of the coordinates."""

    weights: np.ndarray

    def __call__(self, x):
        return self.weights @ jnp.arctan(x)

    def energies(self, x):
        return np.arctan(x) @ self.weights

    def grads(self, x):
        return self.weights / (1 + x**2)

    def on_device(self):
        return Arctan(jnp.asarray(self.weights))


class ArctanFit(AbstractResidualFit):
    """Its fit: least squares of the gradients, a coordinate at a time."""

    def fit(self, rng, training, is_out, *, redraw, choose_anew, least_ridge):
        features = 1 / (1 + training.x**2)
        weight = training.weight[:, None]
        square = np.sum(weight * features**2, axis=0) + least_ridge
        weights = np.sum(weight * features * training.grad, axis=0) / square
        residual = Arctan(weights)
        rest = training._replace(grad=training.grad - residual.grads(training.x))
        return Fitted(residual, zero_error(rest, is_out))

    def reset(self):
        pass


def test_a_new_family_of_residuals_takes_the_networks_place():
    """The worked example of CONTRIBUTING: an energy that this family knows exactly."""
    truth = np.array([0.8, -0.5, 0.3])
    density = Density(lambda t: -0.5 * jnp.sum(t**2) - jnp.arctan(t) @ truth)
    rng = np.random.default_rng(0)
    density(rng.standard_normal((120, 3)), "training")
    trainer = Trainer(STRAIGHT, 1, rng, ArctanFit())
    surrogate = trainer.start(density.log)
    np.testing.assert_allclose(surrogate.residual.weights, truth, atol=1e-3)
    thetas = rng.standard_normal((40, 3))
    values = np.asarray(jax.vmap(surrogate.log_density.potential)(thetas))
    np.testing.assert_allclose(surrogate.energies(thetas), values, rtol=1e-9)

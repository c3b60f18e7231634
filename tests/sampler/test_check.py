"""The check of draws against the model: weights, errors, and what it leaves out."""

from unittest.mock import Mock

import jax.numpy as jnp
import numpy as np
import pytest

from tests.densities import Density
from tests.surrogates import wrong_surrogate
from vhmc.evaluation.target import Evaluations
from vhmc.sampler.check import (
    Chosen,
    choose,
    stein_errors,
    tempered_efficiency,
)
from vhmc.sampler.check_surrogate import CLEAR_ERROR, check, is_clear
from vhmc.surrogate.residual import Guard, ZeroResidual
from vhmc.surrogate.surrogate import Surrogate
from vhmc.transport.affine import Affine
from vhmc.transport.transport_map import TransportMap

NONE = np.zeros((0, 2))


def gaussian_surrogate(mean=0.0, sd=1.0):
    layer = Affine(np.full(2, mean), sd * np.eye(2))
    return Surrogate(TransportMap((layer,)), ZeroResidual(), Guard(np.inf, 3.0))


def checked(surrogate, density, number=400, tempered=NONE, seed=0):
    rng = np.random.default_rng(seed)
    theta = surrogate.transport.forward(rng.standard_normal((number, 2)))
    chosen = Chosen(theta, np.full(number, 1 / number))
    return check(surrogate, density, lambda thetas: thetas, chosen, tempered)


NORMAL = Density(lambda t: -0.5 * jnp.sum(t**2))


def test_the_posterior_itself_has_nothing_against_it():
    found = checked(gaussian_surrogate(), NORMAL)
    assert found.importance_efficiency == pytest.approx(1.0)
    assert found.independent_acceptance == pytest.approx(1.0)
    assert found.log_weight_sd == pytest.approx(0.0, abs=1e-12)
    assert found.score_error == pytest.approx(0.0, abs=1e-12)
    assert found.hole_fraction == 0
    np.testing.assert_allclose(found.weights, 1 / 400)
    assert found.effective_size == pytest.approx(400)


def test_a_shifted_surrogate_is_seen_by_scores_and_by_weights():
    """Off by 0.3 sd; scores differ by that much everywhere."""
    found = checked(gaussian_surrogate(mean=0.3), NORMAL)
    np.testing.assert_allclose(np.abs(found.stein_mean_errors), 0.3, atol=0.03)
    np.testing.assert_allclose(found.weighted_mean_errors, 0.3, atol=0.15)
    # For equal widths the efficiency is exp(-|shift|^2), here of two coordinates.
    assert found.importance_efficiency == pytest.approx(np.exp(-0.18), abs=0.05)


def counted(surrogate, number):
    """Whether half of the checks leave no doubt, and how many are made."""
    tempered = 1.5 * np.random.default_rng(1).standard_normal((number // 4, 2))
    asked = []

    def evaluate(thetas, phase):
        asked.append(len(thetas))
        return NORMAL(thetas, phase)

    found = checked(surrogate, evaluate, number, tempered)
    assert len(found.theta) + number // 4 == sum(asked)
    return is_clear(found), sum(asked)


def test_half_of_the_checks_suffice_where_they_leave_no_doubt():
    assert counted(gaussian_surrogate(), 120) == (True, 90)
    assert counted(gaussian_surrogate(), 80) == (True, 100), "too few for a verdict"
    assert counted(gaussian_surrogate(mean=3 * CLEAR_ERROR), 120) == (False, 150)
    assert counted(gaussian_surrogate(sd=0.8), 120) == (False, 150)


def test_a_narrow_surrogate_is_seen():
    """The sd is 0.8 of the posterior's: (1 - 0.64) / 2 to first order."""
    found = checked(gaussian_surrogate(sd=0.8), NORMAL)
    np.testing.assert_allclose(np.abs(found.stein_sd_errors), 0.18, atol=0.05)
    assert (found.weighted_sd_errors < -0.05).all()


def test_tempered_draws_see_what_its_own_do_not():
    """A second mode that no draw of the surrogate reaches."""
    density = Density(
        lambda t: jnp.logaddexp(
            -0.5 * jnp.sum(t**2), -0.5 * jnp.sum((t - jnp.array([7.0, 0.0])) ** 2)
        )
    )
    near = np.random.default_rng(1).standard_normal((40, 2))
    blind = checked(gaussian_surrogate(), density, tempered=near)
    seeing = checked(
        gaussian_surrogate(),
        density,
        tempered=np.concatenate([near, near[:4] + np.array([7.0, 0.0])]),
    )
    assert blind.importance_efficiency > 0.95, "its own draws see nothing"
    assert seeing.tempered_efficiency < 0.05 < blind.tempered_efficiency


def test_a_hole_of_the_surrogate_far_from_its_draws_hides_nothing():
    """A point that the surrogate takes for heavy, and the posterior does not."""
    predicted = np.random.default_rng(1).chisquare(2, 41) / 2
    energy = predicted.copy()
    predicted[0] -= 60
    fake = Mock(Surrogate, dim=2)
    fake.energies.return_value = predicted
    answer = Evaluations(energy, np.zeros((41, 2)), np.full(41, ""))
    assert tempered_efficiency(fake, np.zeros((41, 2)), answer) == pytest.approx(1.0)


def test_a_model_without_any_answer_is_as_bad_as_can_be():
    nowhere = Density(lambda t: -jnp.inf * jnp.sum(t**2 + 1))
    found = checked(wrong_surrogate(2), nowhere)
    assert found.importance_efficiency == 0 and found.hole_fraction == 1
    assert np.isinf(found.score_error)
    assert np.isnan(found.tempered_efficiency) or found.tempered_efficiency == 0


def test_draws_are_chosen_by_leverage_and_weighted_back(seed):
    """The weighted mean of a heavy-tailed value: within five standard errors."""
    rng = np.random.default_rng(seed)
    draws = rng.standard_normal((8000, 1))

    def values(thetas):
        return np.exp(2 * thetas)

    chosen = choose(rng, values, draws, 2000)
    assert chosen.probability.sum() == pytest.approx(1.0)
    assert np.abs(chosen.theta).max() > 3, "far draws are chosen more often"
    some, every = values(chosen.theta)[:, 0], values(draws)[:, 0]
    error = np.sqrt(2000 * np.var(2000 * chosen.probability * some)) / 2000
    assert abs(chosen.probability @ some - every.mean()) < 5 * error


def test_first_order_errors_of_a_gaussian():
    """Posterior N(0.01, 1.01^2), surrogate N(0, 1): known to four standard errors."""
    draws = np.random.default_rng(0).standard_normal((200_000, 1))
    even = np.full(len(draws), 1 / len(draws))
    true_score = (draws - 0.01) / 1.01**2
    mean_error, sd_error = stein_errors(draws, draws - true_score, even)
    assert mean_error[0] == pytest.approx(0.01 / 1.01**2, abs=2e-4)
    assert sd_error[0] == pytest.approx((1 - 1 / 1.01**2) / 2, abs=2e-4)

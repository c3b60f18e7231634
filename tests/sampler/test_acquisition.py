"""Acquisitions: what they propose, and the accept step with the true energy."""

import jax.numpy as jnp
import numpy as np
import pytest

from tests.chance import LIMIT, standard_errors
from tests.densities import Density
from tests.surrogates import KINDS, wrong_surrogate
from vhmc.evaluation.target import Evaluations
from vhmc.sampler.accept_step import Proposal, States, accept
from vhmc.sampler.acquisition import (
    AbstractAcquisition,
    Assigned,
    DelayedAcceptance,
    Moves,
    SingleTrajectory,
    Tempered,
    assign,
    propose,
)
from vhmc.surrogate.moves import Pace

DIM = 2


def log_density(theta):
    """Logarithms of a gamma variable with shape 3, beside a standard normal."""
    return 3 * theta[0] - jnp.exp(theta[0]) - 0.5 * theta[1] ** 2


MOMENTS = np.array([3.0, 12.0, 0.0, 1.0])
"""Of the gamma variable and of the normal: means and mean squares."""


def moments(theta):
    gamma = np.exp(theta[..., 0])
    return np.stack([gamma, gamma**2, theta[..., 1], theta[..., 1] ** 2], axis=-1)


def everyone(acquisition, number):
    return [Assigned(acquisition, np.ones(number, dtype=bool))]


def one_round(rng, surrogate, density, states, assigned):
    paces = Pace(0.5, 4, 3), Pace(0.5, 3)
    proposal, _ = propose(rng, surrogate, states, assigned, *paces)
    answer = density(proposal.theta, "training")
    return accept(rng, states, proposal, answer)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("acquisition", [SingleTrajectory(), DelayedAcceptance()])
def test_the_posterior_is_the_law_of_the_chains(acquisition, kind, seed):
    """Whatever the surrogate, with a network or on a curved map.

    100 chains from draws of the posterior, so that none has to be waited for. False
    alarms: below one in 30,000 for each of eight cases.
    """
    rng = np.random.default_rng(seed)
    surrogate = wrong_surrogate(DIM, **KINDS[kind])
    density, number = Density(log_density), 100
    exact = np.stack(
        [np.log(rng.gamma(3.0, size=number)), rng.standard_normal(number)], axis=1
    )
    answer = density(exact, "training")
    states = States(exact, answer.energy, answer.grad)
    kept, rates = [], []
    for _ in range(300):
        assigned = everyone(acquisition, number)
        states, accept_prob = one_round(rng, surrogate, density, states, assigned)
        kept.append(states.theta)
        rates.append(accept_prob.mean())
    assert 0.03 < np.mean(rates) < 0.97, "some must be rejected, or nothing is tested"
    # Chains are independent: two make one of the 50 batches.
    rows = moments(np.stack(kept, axis=1)).reshape(-1, 4)
    assert standard_errors(rows, MOMENTS).max() < LIMIT


def test_states_stay_consistent_with_their_energies():
    rng = np.random.default_rng(0)
    density = Density(log_density)
    surrogate = wrong_surrogate(DIM, with_network=True)
    theta = rng.standard_normal((16, DIM))
    states = States(theta, *density(theta, "training")[:2])
    counts = ((DelayedAcceptance(), 8), (Tempered(2.0), 2), (SingleTrajectory(), 6))
    for _ in range(5):
        assigned = assign(rng, 16, counts)
        before = states
        states, accept_prob = one_round(rng, surrogate, density, states, assigned)
        again = density(states.theta, "training")
        np.testing.assert_allclose(states.energy, again.energy, rtol=1e-12)
        np.testing.assert_allclose(states.grad, again.grad, rtol=1e-10)
        is_hot = assigned[1].is_mine
        np.testing.assert_array_equal(states.theta[is_hot], before.theta[is_hot])
        assert (accept_prob[is_hot] == 0).all(), "tempered proposals are never accepted"


def test_every_chain_is_assigned_once():
    rng = np.random.default_rng(0)
    counts = ((DelayedAcceptance(), 8), (Tempered(2.0), 2), (SingleTrajectory(), 6))
    assigned = assign(rng, 16, counts)
    np.testing.assert_array_equal(np.sum([a.is_mine for a in assigned], axis=0), 1)
    assert [int(a.is_mine.sum()) for a in assigned] == [8, 2, 6]


def test_a_model_without_an_answer_is_a_rejection():
    states = States(np.zeros((3, 1)), np.array([0.0, 0.0, 5.0]), np.zeros((3, 1)))
    energy = np.array([np.inf, -1.0, 4.0])
    answer = Evaluations(energy, np.ones((3, 1)), np.array(["-inf", "", ""]))
    proposal = Proposal(np.ones((3, 1)), np.array([0.0, 0.0, np.nan]))
    moved, accept_prob = accept(np.random.default_rng(0), states, proposal, answer)
    np.testing.assert_array_equal(accept_prob, [0.0, 1.0, 0.0])
    np.testing.assert_array_equal(moved.theta[:, 0], [0.0, 1.0, 0.0])


class FromTheMap(AbstractAcquisition):
    """A new acquisition: an independent draw of the transport map's Gaussian."""

    def __init__(self, rng):
        self._rng = rng

    def ends(self, moves):
        return self._rng.standard_normal(moves.x.shape)

    def log_correction(self, surrogate, states, theta, moves):
        def log_proposal(theta):
            x, log_det = surrogate.transport.inverse_and_log_det(theta)
            return -0.5 * np.sum(x**2, axis=1) - log_det

        return log_proposal(states.theta) - log_proposal(theta)


def test_a_new_acquisition_needs_only_a_proposal_and_its_correction(seed):
    """The worked example of CONTRIBUTING: an independence sampler.

    False alarms: below one in 30,000.
    """
    rng = np.random.default_rng(seed)
    surrogate, density = wrong_surrogate(DIM, is_curved=True), Density(log_density)
    exact = np.stack(
        [np.log(rng.gamma(3.0, size=100)), rng.standard_normal(100)], axis=1
    )
    states = States(exact, *density(exact, "training")[:2])
    kept = []
    for _ in range(300):
        assigned = everyone(FromTheMap(rng), 100)
        states, _ = one_round(rng, surrogate, density, states, assigned)
        kept.append(states.theta)
    rows = moments(np.stack(kept, axis=1)).reshape(-1, 4)
    assert standard_errors(rows, MOMENTS).max() < LIMIT


def test_moves_are_made_once_and_only_where_asked_for():
    rng = np.random.default_rng(0)
    surrogate, paces = wrong_surrogate(DIM), (Pace(0.5, 4, 3), Pace(0.5, 3))
    moves = Moves(rng, surrogate, np.zeros((4, DIM)), np.ones(4), *paces)
    before = rng.bit_generator.state
    assert DelayedAcceptance().ends(moves) is not None
    after = rng.bit_generator.state
    assert after != before
    np.testing.assert_array_equal(DelayedAcceptance().ends(moves), moves.walk.x)
    assert rng.bit_generator.state == after
    assert moves.walk.x.shape == (4, DIM)

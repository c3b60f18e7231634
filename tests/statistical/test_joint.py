"""Geweke's test: kernels that keep the joint law of parameters and data.

Parameters from the prior, then in turn data given parameters and one transition of the
kernel given data: if the kernel leaves the posterior alone, parameters keep the law of
the prior for ever. Chains begin there, so nothing has to be waited for. A kernel that
is only a little wrong drifts away, as its errors add up.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import vhmc
from tests.chance import LIMIT, standard_errors
from tests.statistical.models import MODELS
from tests.surrogates import KINDS, wrong_surrogate
from vhmc.evaluation.target import Evaluations
from vhmc.sampler.accept_step import States, accept
from vhmc.sampler.acquisition import (
    DelayedAcceptance,
    SingleTrajectory,
    Tempered,
    assign,
    propose,
)
from vhmc.sampler.correction import exact_step
from vhmc.surrogate.moves import Pace, _transition

pytestmark = pytest.mark.statistical
REPLICAS = 100
"""Independent chains: two make one of the 50 batches of the rule for all tests."""


def waves(theta):
    """Functions without tails: a chain that runs away must not look merely noisy."""
    return np.concatenate([np.sin(theta), np.cos(theta)], axis=-1)


def assert_prior(model, thetas, seed):
    """Compare with 300,000 draws of the prior, whose own error is far smaller.

    thetas: shape (replica, time, dim). False alarms: below one in 130,000 a function.
    """
    keys = jax.random.split(jax.random.key(seed + 1), 300_000)
    truth = waves(np.asarray(jax.vmap(model.prior)(keys))).mean(axis=0)
    rows = waves(thetas).reshape(-1, 2 * model.dim)
    assert standard_errors(rows, truth).max() < LIMIT


def dense_mass(dim):
    return vhmc.paper.mass_from_covariance(0.5 * jnp.eye(dim) + 0.3)


KERNELS = {
    # Large steps: what is kept after a refusal must be right, too.
    "large steps": lambda dim: vhmc.paper.HMC(vhmc.paper.unit_mass(dim), 0.5, 3, 1.0),
    "dense mass, jitter": lambda dim: vhmc.paper.HMC(dense_mass(dim), 0.5, 6, 0.7),
    "unit mass": lambda dim: vhmc.paper.HMC(vhmc.paper.unit_mass(dim), 0.25, 6),
}


QUICK = dict(zip(MODELS, KERNELS, strict=True))


@pytest.mark.parametrize(
    ("name", "kernel"),
    [
        pytest.param(
            name, kernel, marks=[] if QUICK[name] == kernel else [pytest.mark.slow]
        )
        for name in MODELS
        for kernel in KERNELS
    ],
)
def test_hmc_keeps_the_joint_law(name, kernel, seed):
    """Energy and gradient are kept between four transitions that share their data."""
    kernel = KERNELS[kernel](MODELS[name].dim)

    def move(key, state, potential):
        return kernel.step(key, state, potential)[0]

    assert_kept(MODELS[name], kernel, move, seed)


def test_transitions_on_the_surrogate_keep_the_joint_law(seed):
    """Steps of random size, as all chains on the surrogate make them."""
    model = MODELS["hierarchical"]
    kernel = vhmc.paper.HMC(vhmc.paper.unit_mass(model.dim), 0.4, 5, 0.7)

    def move(key, state, potential):
        return _transition(key, kernel, state, potential)[0]

    assert_kept(model, kernel, move, seed)


def assert_kept(model, kernel, move, seed):
    """Data in turn with four moves, many chains side by side."""

    def replica(key):
        key_start, key_run = jax.random.split(key)

        def advance(theta, key):
            key_data, key_moves = jax.random.split(key)
            data = model.data(key_data, theta)

            def potential(theta):
                return model.energy(theta, data)

            def step(state, key):
                return move(key, state, potential), None

            state = kernel.init(theta[None], potential)
            state, _ = jax.lax.scan(step, state, jax.random.split(key_moves, 4))
            return state.theta[0], state.theta[0]

        keys = jax.random.split(key_run, 500)
        return jax.lax.scan(advance, model.prior(key_start), keys)[1]

    keys = jax.random.split(jax.random.key(seed), REPLICAS)
    assert_prior(model, np.asarray(jax.jit(jax.vmap(replica))(keys)), seed)


PACE = Pace(0.5, 4, 3)


def exact_correction(rng, surrogate, evaluate, states):
    """A step of the exact correction."""
    return exact_step(rng, surrogate, evaluate, states, PACE)


def training_round(rng, surrogate, evaluate, states):
    """A round of training: all acquisitions at once, chains assigned anew."""
    number = len(states.energy)
    counts = (
        (DelayedAcceptance(), number // 2),
        (Tempered(1.5), number // 8),
        (SingleTrajectory(), number - number // 2 - number // 8),
    )
    assigned = assign(rng, number, counts)
    proposal, _ = propose(rng, surrogate, states, assigned, PACE, Pace(0.5, 3))
    return accept(rng, states, proposal, evaluate(proposal.theta, "training"))


STEPS = {"exact correction": exact_correction, "round of training": training_round}
QUICK_STEPS = {
    ("normal", "exact correction", "network on a curved map"),
    ("normal", "round of training", "network on a curved map"),
    ("logistic", "exact correction", "network on a curved map"),
    ("logistic", "round of training", "network on a curved map"),
}


@pytest.mark.parametrize(
    ("name", "step", "kind"),
    [
        pytest.param(*case, marks=[] if case in QUICK_STEPS else [pytest.mark.slow])
        for case in (
            (name, step, kind) for name in MODELS for step in STEPS for kind in KINDS
        )
    ],
)
def test_accept_steps_with_the_true_energy_keep_the_joint_law(name, step, kind, seed):
    """Every chain has data of its own; all share one surrogate, which is wrong."""
    model = MODELS[name]
    energies = jax.jit(jax.vmap(jax.value_and_grad(model.energy)))
    simulate = jax.jit(jax.vmap(model.data))
    data = None

    def evaluate(thetas, phase):
        energy, grad = map(np.asarray, energies(thetas, data))
        return Evaluations(energy, grad, np.full(len(thetas), "", dtype=object))

    surrogate = wrong_surrogate(model.dim, **KINDS[kind])
    rng = np.random.default_rng(seed)
    keys = jax.random.split(jax.random.key(seed), 300)
    theta = np.asarray(jax.vmap(model.prior)(jax.random.split(keys[0], REPLICAS)))
    thetas, accepted = [], []
    for key in keys:
        data = simulate(jax.random.split(key, REPLICAS), theta)
        states = States(theta, *evaluate(theta, "start")[:2])
        for _ in range(2):  # energies of the first are kept for the second
            states, accept_prob = STEPS[step](rng, surrogate, evaluate, states)
            accepted.append(accept_prob.mean())
        theta = states.theta
        thetas.append(theta)
    assert 0.005 < np.mean(accepted) < 0.8, "some must be rejected"
    assert_prior(model, np.stack(thetas, axis=1), seed)

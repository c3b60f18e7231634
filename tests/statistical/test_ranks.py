"""Simulation-based calibration of HMC, of the exact correction and of whole runs."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import vhmc
from tests.statistical.models import MODELS, SQUARE
from tests.statistical.ranks import BINS, FALSE_ALARM, Replicates, p_values, rank
from vhmc.sampler.check import Chosen
from vhmc.sampler.check_surrogate import check
from vhmc.sampler.correction import CORRECTIONS, Uncorrected
from vhmc.sampler.drawing import draw
from vhmc.sampler.verdict import unchecked
from vhmc.surrogate.residual import Guard, ZeroResidual
from vhmc.surrogate.surrogate import Surrogate
from vhmc.transport.affine import Affine
from vhmc.transport.transport_map import TransportMap

pytestmark = pytest.mark.statistical
KEPT = BINS - 1


def slow(*values):
    return pytest.param(*values, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])


@pytest.mark.parametrize(
    ("name", "number"),
    [slow("normal", 5000), slow("logistic", 5000), ("hierarchical", 1000)],
)
def test_ranks_of_hmc_are_uniform(name, number, seed):
    """All replicates in one batch, on the exact posterior; every tenth draw is kept."""
    model = MODELS[name]
    kernel = vhmc.paper.HMC(vhmc.paper.unit_mass(model.dim), 0.3, 10, 0.5)

    def replicate(key):
        key_joint, key_start, key_run = jax.random.split(key, 3)
        truth, data = model.joint(key_joint)
        start = model.prior(key_start)[None]
        run = vhmc.paper.run_chains(
            key_run, kernel, start, lambda theta: model.energy(theta, data), 90, 100
        )
        return truth, run.theta[0, ::10]

    assert model.dim  # its parameters are made now, not while this is traced
    keys = jax.random.split(jax.random.key(seed), number)
    truths, draws = jax.jit(jax.vmap(replicate))(keys)
    ranks = np.asarray(jnp.sum(draws < truths[:, None], axis=1))
    assert p_values(ranks).min() > FALSE_ALARM


def ranks_of_correction(name, correction, number, seed):
    """Ranks among draws of one correction, from a surrogate that is bad.

    It is Laplace's Gaussian, moved by half a standard deviation and too wide.
    """
    replicates, dim = Replicates(MODELS[name], seed), MODELS[name].dim
    rng = np.random.default_rng(seed)
    ranks = []
    for i in range(number):
        truth, target = replicates.unconstrained(i)
        guide = vhmc.paper.laplace(target, target.start).guide
        lower = np.linalg.cholesky(np.linalg.inv(guide.precision))
        moved = np.asarray(guide.mean) + lower @ np.full(dim, 0.5)
        wrong = TransportMap((Affine(moved, 1.3 * lower),))
        surrogate = Surrogate(wrong, ZeroResidual(), Guard(np.inf, 3.0))
        drawn = draw(rng, surrogate, np.zeros((KEPT, dim)), 0.8, 50)
        theta = wrong.forward(drawn.x.reshape(-1, dim))
        if correction == "none":
            draws = theta[rng.permutation(len(theta))[:KEPT]]
        else:

            def evaluate(thetas, phase, target=target):
                return target.evaluate(thetas)

            chosen = Chosen(theta[::10], np.full(len(theta[::10]), 10 / len(theta)))
            values, nothing = target.parameters.values, np.zeros((0, dim))
            checked = check(surrogate, evaluate, values, chosen, nothing)
            made = Uncorrected(
                surrogate,
                drawn,
                checked,
                theta.reshape(KEPT, 50, dim),
                evaluate,
                KEPT * 60,
            )
            exact = CORRECTIONS[correction].draw(rng, made, unchecked("bad"))
            # The last of every chain: independent of each other.
            draws = exact.theta[:, -1]
        ranks.append(rank(draws, truth))
    return np.array(ranks)


@pytest.mark.parametrize(
    ("name", "number"),
    [slow("normal", 500), slow("logistic", 500), slow("hierarchical", 500)],
)
def test_ranks_of_the_exact_correction_are_uniform(name, number, seed):
    assert (
        p_values(ranks_of_correction(name, "exact", number, seed)).min() > FALSE_ALARM
    )


@pytest.mark.slow
def test_ranks_without_correction_are_not(seed):
    """The test can fail: on the bad surrogate's own draws it does."""
    ranks = ranks_of_correction("normal", "none", 200, seed)
    assert p_values(ranks).min() < FALSE_ALARM


@pytest.mark.parametrize(
    ("name", "number"),
    [slow("normal", 200), slow("logistic", 200), slow("hierarchical", 100)],
)
def test_ranks_of_whole_runs_are_uniform(name, number, seed):
    """The default sampler from the search to its draws, as a user calls it."""
    replicates = Replicates(MODELS[name], seed)
    rng = np.random.default_rng(seed)
    ranks = []
    for i in range(number):
        truth, target = replicates(i)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            posterior = vhmc.sample(target, MODELS[name].budget, seed=i)
        draws = posterior.unconstrained.reshape(-1, target.dim)
        ranks.append(rank(draws[rng.permutation(len(draws))[:KEPT]], truth))
    assert p_values(np.array(ranks)).min() > FALSE_ALARM


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_ranks_of_exact_runs_of_two_modes_are_uniform(seed):
    """The sign is not known: most posteriors have two modes, some only one."""
    replicates = Replicates(SQUARE, seed)
    ranks, num_modes = [], []
    for i in range(120):
        truth, target = replicates(i)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            posterior = vhmc.sample(
                target, SQUARE.budget, seed=i, correction="exact", chains=KEPT
            )
        # The last of every chain: independent of each other.
        ranks.append(rank(posterior.unconstrained[:, -1], truth))
        num_modes.append(len(posterior.modes))
    assert np.mean(np.array(num_modes) > 1) > 0.4
    assert p_values(np.array(ranks)).min() > FALSE_ALARM

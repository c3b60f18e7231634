"""Simulation-based calibration of the exact rung, from a surrogate that is bad.

A parameter from the prior, data given it, draws of its posterior: the rank of the
parameter among the draws is uniform if and only if the draws are right (Cook et al.,
2006; Talts et al., 2018). The surrogate is one Gaussian, whatever the data say, and not
the prior, whose ranks would be uniform as well.
"""

import numpy as np
import pytest
import scipy.stats
from scipy.special import expit

import vhmc
from vhmc.core.chart import Chart
from vhmc.core.frame import Frame
from vhmc.methods.learner import Learner
from vhmc.runs.check import Chosen, check
from vhmc.runs.corrections import exact_draws
from vhmc.runs.frozen import draw
from vhmc.targets.account import Account

BINS = 10
FALSE_ALARM = 1e-4
"""Chance that a right sampler fails one comparison; there are four."""
WRONG = Frame(np.array([0.4, -0.4]), 1.4 * np.eye(2))


def normal_model(rng):
    """Two means with unit normal priors, four observations of each."""
    truth = rng.standard_normal(2)
    data = truth + rng.standard_normal((4, 2))

    def value_and_grad(theta):
        value = -0.5 * theta @ theta - 0.5 * np.sum((data - theta) ** 2)
        return value, -theta + np.sum(data - theta, axis=0)

    return truth, value_and_grad


def logistic_model(rng):
    """Intercept and slope with unit normal priors, twelve binary answers."""
    truth = rng.standard_normal(2)
    design = np.stack([np.ones(12), rng.standard_normal(12)], axis=1)
    signs = np.where(rng.uniform(size=12) < expit(design @ truth), 1.0, -1.0)

    def value_and_grad(theta):
        margins = signs * (design @ theta)
        value = -0.5 * theta @ theta - np.sum(np.logaddexp(0, -margins))
        return value, -theta + design.T @ (signs * expit(-margins))

    return truth, value_and_grad


def ranks(model, rung, num_replicates, seed):
    """Bin of each true parameter among thinned draws, shape (replicate, 2)."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(num_replicates):
        truth, value_and_grad = model(rng)
        account = Account(vhmc.from_callable(value_and_grad, 2), 10**6)
        account.evaluate(np.zeros((1, 2)), "search")
        learner = Learner(account, Chart((WRONG,)), 0, rng)
        frozen = draw(rng, learner.residual(), np.zeros((8, 2)), 0.8, 50)
        free = learner.chart.to_theta(frozen.x.reshape(-1, 2))
        if rung == "none":
            draws = free[rng.permutation(len(free))[: BINS - 1]]
        else:
            chosen = Chosen(free[::10], np.full(40, 1 / 40))
            parameters = account.target.parameters
            checked = check(learner, parameters, chosen, np.zeros((0, 2)))
            exact = exact_draws(rng, learner, frozen, checked, 9 * 40, BINS - 1)
            draws = exact.theta[:, -1]  # one of every chain: independent of each other
        rows.append(np.sum(draws < truth, axis=0))
    return np.array(rows)


def p_values(rows):
    counts = [np.bincount(column, minlength=BINS) for column in rows.T]
    return np.array([scipy.stats.chisquare(count).pvalue for count in counts])


def test_ranks_of_the_exact_rung_are_uniform(seed):
    assert p_values(ranks(logistic_model, "exact", 40, seed)).min() > FALSE_ALARM


def test_ranks_without_correction_are_not(seed):
    """The test can fail: on the surrogate's own draws it does (p about 1e-6)."""
    assert p_values(ranks(normal_model, "none", 300, seed)).min() < FALSE_ALARM


@pytest.mark.slow
@pytest.mark.parametrize("model", [normal_model, logistic_model])
def test_ranks_of_the_exact_rung_are_uniform_in_many_runs(model, seed):
    assert p_values(ranks(model, "exact", 1000, seed + 1)).min() > FALSE_ALARM

"""A black box's graph is found from its gradients, and the same when replayed."""

import numpy as np
import pytest
import scipy.sparse as sp

import vhmc
from vhmc.evaluation.evaluator import EvaluationLog
from vhmc.sampler.black_box_graph import MAX_DIM, refined
from vhmc.structure.record import Structure

NUM_GROUPS = 6
Y = np.array([1.2, -0.4, 0.9, 2.1, 0.1, 1.5])
OPTIONS = {"draws": 250, "num_features": 60, "seed": 1, "progress": False}


def energy_and_grad(theta):
    """Normal data in groups with a mean and a log scale of their own, far from zero."""
    log_scale, mean, effect = theta[0], theta[1], theta[2:]
    precision = np.exp(-2 * log_scale)
    gap, misfit = effect - mean, (effect - Y) / 0.5
    energy = 0.5 * precision * gap @ gap + NUM_GROUPS * log_scale
    energy += 0.5 * misfit @ misfit + 2 * log_scale**2 + 0.5 * mean**2
    by_scale = NUM_GROUPS - precision * gap @ gap + 4 * log_scale
    by_effect = precision * gap + misfit / 0.5
    by_mean = mean - precision * gap.sum()
    return energy, np.concatenate([[by_scale, by_mean], by_effect])


def value_and_grad(theta):
    """With noise in all entries, without which differences would show the graph."""
    energy, grad = energy_and_grad(theta)
    return -energy, -grad + 1e-9 * np.sin(1e6 * theta.sum())


def expected():
    links = np.eye(NUM_GROUPS + 2, dtype=bool)
    links[:2] = links[:, :2] = True
    return links


def target():
    return vhmc.from_callable(
        value_and_grad,
        dim=NUM_GROUPS + 2,
        names={"log_scale": (), "mean": (), "effect": (NUM_GROUPS,)},
    )


def log_of(thetas, phase="warm-up"):
    answers = [energy_and_grad(theta) for theta in thetas]
    energy, grad = (np.array(part) for part in zip(*answers, strict=True))
    number = len(thetas)
    known, phases = np.ones(number, bool), np.repeat(phase, number)
    return EvaluationLog(thetas, energy, grad, known, phases, np.repeat("", number))


def scattered(rng, number):
    log_scale, mean = rng.standard_normal((2, number)) * [[0.4], [0.5]]
    effect = mean[:, None] + rng.standard_normal((number, NUM_GROUPS))
    return np.column_stack([log_scale, mean, effect])


def assumed(dim=NUM_GROUPS + 2):
    labels = tuple(f"x[{i}]" for i in range(dim))
    return Structure(labels, sp.csr_matrix(np.ones((dim, dim), bool)), "assumed")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    ledger = tmp_path_factory.mktemp("run") / "run.vhmc"
    return ledger, vhmc.sample(target(), 400, ledger=ledger, **OPTIONS)


def test_a_run_finds_the_graph(run):
    structure = run[1].structure
    assert structure.source == "gradients"
    assert not (expected() & ~structure.graph.toarray()).any()
    assert "from gradients" in structure.describe()


def test_a_replayed_run_finds_the_same_and_draws_the_same(run):
    ledger, first = run
    model = target()
    again = vhmc.sample(model, 400, ledger=ledger, **OPTIONS)
    assert model.num_evaluations <= 1  # which tells whether it is the same model
    np.testing.assert_array_equal(again.unconstrained, first.unconstrained)
    assert (again.structure.graph != first.structure.graph).nnz == 0


def test_points_scattered_over_the_mass_show_the_graph(seed):
    log = log_of(scattered(np.random.default_rng(seed), 120))
    found = refined(assumed(), log)
    assert found.source == "gradients"
    assert not (expected() & ~found.graph.toarray()).any()


def test_edges_are_added_and_never_removed(seed):
    log = log_of(scattered(np.random.default_rng(seed), 120))
    before = np.eye(NUM_GROUPS + 2, dtype=bool)
    before[2, 3] = before[3, 2] = True  # no link of the model
    known = assumed().with_graph(sp.csr_matrix(before), "gradients")
    after = refined(known, log).graph.toarray()
    assert after[2, 3] and not (expected() & ~after).any()
    assert refined(refined(known, log), log) is not known


def test_what_is_known_or_off_or_too_large_is_left_alone(seed):
    log = log_of(scattered(np.random.default_rng(seed), 120))
    labels = assumed().labels
    given = Structure(labels, sp.csr_matrix(np.eye(len(labels), dtype=bool)), "given")
    off, few = Structure(labels), log_of(scattered(np.random.default_rng(seed), 30))
    assert refined(given, log) is given
    assert refined(off, log) is off
    assert refined(whole := assumed(), few) is whole
    large = assumed(MAX_DIM + 1)
    assert refined(large, log) is large

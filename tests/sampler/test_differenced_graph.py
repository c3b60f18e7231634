"""A black box shows its graph; what a first look misses is found near the mass."""

import numpy as np
import pytest
import scipy.sparse as sp

import vhmc
from vhmc.evaluation.evaluator import Evaluator
from vhmc.sampler.differenced_graph import (
    SOURCE,
    confirmed,
    differenced,
    is_affordable,
)
from vhmc.sampler.model_graph import fitting_graph, model_graph
from vhmc.transport.affine import Affine

NUM_GROUPS = 12
DIM = NUM_GROUPS + 2
Y = np.linspace(-1.0, 2.0, NUM_GROUPS)


def hierarchy(theta):
    """Log density of group effects with a mean and a log scale; its gradient."""
    log_scale, mean, effect = theta[0], theta[1], theta[2:]
    precision = np.exp(-2 * log_scale)
    gap, misfit = effect - mean, effect - Y
    value = 0.5 * precision * gap @ gap + NUM_GROUPS * log_scale
    value += 0.5 * misfit @ misfit + 2 * log_scale**2 + 0.5 * mean**2
    first = NUM_GROUPS - precision * gap @ gap + 4 * log_scale, mean
    grad = np.concatenate([first, precision * gap + misfit])
    grad[1] -= precision * gap.sum()
    return -value, -grad


def hidden(theta):
    """Two halves, linked where their first parameters are beyond 20."""
    gap = np.maximum(theta[0] - 20.0, 0.0)
    value = 0.5 * theta @ theta - 20.5 * theta[0] + gap * theta[7:].sum()
    grad = theta.copy()
    grad[0] += (gap > 0) * theta[7:].sum() - 20.5
    grad[7:] += gap
    return -value, -grad


def noisy(theta):
    value, grad = hierarchy(theta)
    return value, grad + 1e-6 * np.random.default_rng().standard_normal(DIM)


def begun(model, seed, budget=1000):
    target = vhmc.from_callable(model, dim=DIM)
    evaluator = Evaluator(target, budget)
    return np.random.default_rng(seed), evaluator, model_graph(target)


def linked(structure):
    return structure.graph.toarray()


def test_the_graph_is_exact_for_a_gradient_a_parameter(seed):
    rng, evaluator, unknown = begun(hierarchy, seed)
    found = differenced(rng, evaluator, unknown, np.zeros(DIM))
    expected = np.eye(DIM, dtype=bool)
    expected[:2] = expected[:, :2] = True
    np.testing.assert_array_equal(linked(found), expected)
    assert "from gradient differences" in found.describe()
    assert evaluator.spent == DIM + 1
    layer = Affine(np.zeros(DIM), np.eye(DIM))
    assert confirmed(rng, evaluator, found, layer, 50) is found


def test_noise_and_full_graphs_tell_nothing_and_cost_little(seed):
    rng, evaluator, unknown = begun(noisy, seed)
    assert differenced(rng, evaluator, unknown, np.zeros(DIM)) is unknown
    assert evaluator.spent < DIM


@pytest.mark.parametrize("allowance", [10, 60])
def test_links_that_show_near_the_mass_alone_are_found(seed, allowance):
    rng, evaluator, unknown = begun(hidden, seed)
    found = differenced(rng, evaluator, unknown, np.zeros(DIM))
    assert not linked(found)[0, 7:].any()
    layer = Affine(np.r_[22.0, np.zeros(DIM - 1)], 0.3 * np.eye(DIM))
    evaluator.evaluate(layer.forward(rng.standard_normal((1, DIM))), "warm-up")
    after = confirmed(rng, evaluator, found, layer, allowance)
    assert linked(after)[0, 7:].sum() >= (7 if allowance > DIM + 8 else 1)


def test_only_unknown_graphs_of_exact_gradients_are_asked_for():
    target = vhmc.from_callable(hierarchy, dim=DIM)
    known = model_graph(target)
    assert is_affordable(known, target, 200)
    assert not is_affordable(known, target, 20)
    assert not is_affordable(model_graph(target, False), target, 200)
    values = vhmc.from_callable(
        lambda theta: hierarchy(theta)[0], dim=DIM, differences="central"
    )
    assert not is_affordable(model_graph(values), values, 200)


@pytest.mark.parametrize(("source", "expected"), [(SOURCE, [0, 1]), ("given", [])])
def test_scales_in_a_short_array_count_without_a_program(source, expected):
    target = vhmc.from_callable(
        hierarchy,
        dim=DIM,
        init=np.ones(DIM),
        names={"scales": (2,), "effect": (NUM_GROUPS,)},
        constraints={"scales": vhmc.positive, "effect": vhmc.positive},
    )
    links = np.eye(DIM, dtype=bool)
    links[:2] = links[:, :2] = True
    structure = model_graph(target).with_graph(sp.csr_matrix(links), source)
    graph = fitting_graph(structure, target.parameters)
    assert sorted(graph.scales) == expected

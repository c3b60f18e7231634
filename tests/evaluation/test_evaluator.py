"""The evaluator: it never exceeds its budget, and logs what it evaluates."""

import numpy as np
import pytest

import vhmc
from vhmc.evaluation.evaluator import Evaluator, OverBudget


def test_it_refuses_what_the_budget_does_not_allow():
    target = vhmc.from_jax(lambda theta: -0.5 * theta @ theta, np.zeros(2))
    evaluator = Evaluator(target, 3)
    evaluator.evaluate(np.zeros((2, 2)), "training")
    with pytest.raises(OverBudget):
        evaluator.evaluate(np.zeros((2, 2)), "training")
    with pytest.raises(OverBudget):
        evaluator.hessian(np.zeros(2), "hessian")
    assert target.num_evaluations == evaluator.spent == 2
    assert evaluator.left == 1
    evaluator.raise_budget(5)
    assert evaluator.left == 3
    with pytest.raises(ValueError, match="the budget is 5 already, got 4"):
        evaluator.raise_budget(4)


def test_the_log_has_every_point_in_order_with_its_phase():
    target = vhmc.from_callable(
        lambda t: (-np.inf, -t) if t[0] > 1 else (-0.5 * t @ t, -t), 2
    )
    evaluator = Evaluator(target, 10)
    assert len(evaluator.log.theta) == 0
    evaluator.evaluate(np.ones((2, 2)), "search")
    evaluator.evaluate(np.array([[2.0, 0.0]]), "training")
    log = evaluator.log
    np.testing.assert_array_equal(log.theta, [[1, 1], [1, 1], [2, 0]])
    assert list(log.phase) == ["search", "search", "training"]
    assert list(log.is_finite) == [True, True, False]
    assert log.reason[2] == "the log density is -inf"
    assert evaluator.costs == {"search": 2, "training": 1}

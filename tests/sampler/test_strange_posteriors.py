"""Strange posteriors end in a right result or in a clear sentence, never in a crash."""

import warnings

import jax.numpy as jnp
import numpy as np
import pytest

import vhmc


def sample(target, budget=300):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return vhmc.sample(target, budget, draws=100, chains=4)


def normal(dim, dtype=float):
    return vhmc.from_jax(lambda x: -0.5 * jnp.sum(x**2), np.ones(dim, dtype=dtype))


@pytest.mark.parametrize(
    ("dim", "budget"), [(1, 400), pytest.param(200, 1000, marks=pytest.mark.slow)]
)
def test_few_and_many_dimensions(dim, budget):
    """Within a fifth of an sd, as the mean of all coordinates is."""
    posterior = sample(normal(dim), budget)
    assert posterior.verdict.status != "bad", posterior.verdict
    assert abs(posterior.unconstrained.std() - 1) < 0.2


def test_a_budget_smaller_than_the_dimension_is_called_bad():
    posterior = sample(normal(50), 30)
    assert posterior.num_evaluations <= 30
    assert posterior.verdict.status == "bad"


@pytest.mark.parametrize(
    ("log_density", "sentence"),
    [
        (lambda x: 0.0 * jnp.sum(x), "the log density is the same at all points"),
        (lambda x: jnp.sum(x), "the posterior has no finite mass"),
        (lambda x: -0.5 * x[0] ** 2, "the posterior has no finite mass"),
    ],
    ids=["flat", "falls without end", "flat in one direction"],
)
def test_a_posterior_without_finite_mass_is_called_bad(log_density, sentence):
    posterior = sample(vhmc.from_jax(log_density, np.ones(2)))
    assert posterior.verdict.status == "bad"
    assert sentence in posterior.verdict.reasons[0]


def test_an_energy_that_falls_ever_faster_is_called_bad():
    """Or ends the run, if chains get to where no number is large enough.

    How far they get depends on rounding, that is, on the machine.
    """
    target = vhmc.from_jax(lambda x: jnp.exp(jnp.sum(x)), np.ones(2))
    try:
        posterior = sample(target)
    except vhmc.RunFailure as failure:
        assert "the log density or its gradient is as large as" in str(failure)
        assert len(failure.evaluation_log.theta) > 100
    else:
        assert posterior.verdict.status == "bad"
        assert "the search found no mode" in posterior.verdict.reasons[0]


@pytest.mark.parametrize(
    "answer",
    [(1e300, np.zeros(2)), (0.0, np.full(2, 1e300))],
    ids=["value", "gradient"],
)
def test_numbers_beyond_all_measure_are_refused(answer):
    with pytest.raises(ValueError, match=r"as large as 1e\+300"):
        sample(vhmc.from_callable(lambda x: answer, 2))


def test_numbers_beyond_all_measure_in_places_are_rejected():
    def strange(x):
        return (1e300, np.zeros(2)) if x[0] > 1.5 else (-0.5 * x @ x, -x)

    posterior = sample(vhmc.from_callable(strange, 2))
    assert posterior.verdict.status != "good"
    assert posterior.failures
    assert np.abs(posterior.unconstrained).max() < 10


def test_single_precision_in_and_out():
    def single(x):
        return np.float32(-0.5 * x @ x), (-x).astype(np.float32)

    for target in (normal(2, np.float32), vhmc.from_callable(single, 2)):
        posterior = sample(target)
        assert posterior.unconstrained.dtype == np.float64
        assert abs(posterior.unconstrained.std() - 1) < 0.2


def test_a_gradient_with_the_wrong_sign_ends_the_run():
    target = vhmc.from_callable(lambda x: (-0.5 * x @ x, x), 2)
    with pytest.raises(vhmc.RunFailure, match="the wrong sign in all parameters"):
        sample(target)
    assert target.num_evaluations < 20

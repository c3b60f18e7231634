"""Reasons of a verdict: one for each cause, with what to do."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.sampler.test_verdict import FINE
from vhmc.evaluation.evaluator import EvaluationLog
from vhmc.sampler.reasons import (
    LEADS,
    MODEL,
    MOST_REASONS,
    MOST_SYMPTOMS,
    Circumstances,
    Concern,
)
from vhmc.sampler.spread import Spread, changing_spread
from vhmc.sampler.verdict import judge


def of(concerns=(), known=None, **statistics):
    verdict = judge(dataclasses.replace(FINE, **statistics), list(concerns))
    return verdict.explained(known or Circumstances(1000, "mu"))


def test_many_numbers_of_one_cause_are_one_reason():
    verdict = of(
        importance_efficiency=0.1,
        log_weight_sd=1.0,
        score_error=1.0,
        weighted_mean_error=0.3,
        stein_sd_error=0.2,
    )
    (reason,) = verdict.reasons
    assert reason.startswith(f"{LEADS['fit']} (importance efficiency 0.10")
    assert f"and {5 - MOST_SYMPTOMS} more" in reason
    assert "largest score errors: mu" in reason
    assert reason.endswith("; raise the budget to about 4,000, or reparameterise")


def test_too_few_checks_come_before_what_they_cannot_tell():
    verdict = of(num_checks=25.0, error_bound=0.5)
    assert "25 checked draws" in verdict.reasons[0]
    assert verdict.reasons[0].endswith("raise the budget to about 2,000")
    assert verdict.reasons[1].startswith(LEADS["fit"])


def test_a_wrong_model_comes_first_and_needs_no_other_advice():
    wrong = Concern("caution", "the gradient is noisy; fix it", MODEL)
    verdict = of([wrong], importance_efficiency=0.1, rhat=1.5, mass_outside=0.5)
    assert verdict.status == "bad"
    assert verdict.reasons[0] == wrong.sentence
    assert len(verdict.reasons) == MOST_REASONS
    assert not any("budget" in reason for reason in verdict.reasons)


def test_missed_mass_comes_before_a_bad_fit_and_chains_last():
    verdict = of(importance_efficiency=0.1, rhat=1.5, mass_outside=0.5)
    leads = [reason.split(" (")[0] for reason in verdict.reasons]
    assert leads == [LEADS["mass"], LEADS["fit"], LEADS["mixing"]]


def test_few_effective_draws_are_no_matter_of_evaluations():
    (reason,) = of(ess=100.0).reasons
    assert reason.endswith("; ask for more draws")


def test_one_number_of_evaluations_is_advised():
    verdict = of(num_checks=25.0, importance_efficiency=0.1, largest_log_weight=3.0)
    assert sum("4,000" in reason for reason in verdict.reasons) == 1
    assert sum("budget to" in reason for reason in verdict.reasons) == 1


def test_a_funnel_is_named_as_the_cause():
    """Descents end in its neck: what they found there is no other mode."""
    spread = Spread("log_tau", ("a[0]", "a[1]", "a[2]"), 20.0)
    known, other = Circumstances(1000, "mu", spread), Concern("bad", "another mode")
    verdict = of([other], known, score_error=1.0)
    assert verdict.status == "bad"
    assert "a[0] to a[2] changes 20-fold with log_tau" in verdict.reasons[0]
    assert verdict.reasons[0].endswith("; " + spread.advice)
    assert verdict.reasons[1] == other.sentence


def test_a_long_tail_is_no_matter_of_the_fit():
    spread = Spread("tau", ("b[0]", "b[1]"), 7.0)
    known = Circumstances(1000, "tau", spread, "tau")
    (reason,) = of(known=known, error_bound=0.45).reasons
    assert reason.startswith("the tail of tau is long, and few draws are in it (")
    assert reason.endswith("quantiles of tau, or ask for more draws")
    worse = of(known=known, error_bound=0.45, score_error=1.0).reasons[0]
    assert worse.startswith(str(spread))


def log_of(energy, theta):
    """Points with gradients of an energy."""
    known, words = np.ones(len(theta), dtype=bool), np.array(["training"] * len(theta))
    value, grad = jax.vmap(jax.value_and_grad(energy))(theta)
    return EvaluationLog(theta, value, np.array(grad), known, words, words)


def test_a_funnel_is_recognised_by_gradients_anywhere():
    """The fifths of a normal scale of sd 2 have medians 5.1 apart: e^2.6 is 13."""
    theta = np.random.default_rng(0).normal(size=(1000, 4)) * [2.0, 1.0, 1.0, 1.0]

    def funnel(x):
        return x[0] ** 2 / 8 + 0.5 * jnp.sum(x[1:] ** 2) * jnp.exp(-x[0])

    found = changing_spread(log_of(funnel, theta), "sabc")
    assert found is not None
    assert (found.scale, found.others) == ("s", ("a", "b", "c"))
    assert 8 < found.factor < 20


@pytest.mark.parametrize(
    "middle", [lambda s: 0 * s, lambda s: 3 * s, jnp.square, jnp.exp]
)
def test_a_curved_ridge_is_no_funnel(middle):
    rng = np.random.default_rng(0)
    scale = rng.normal(size=(1000, 1))
    theta = np.hstack([scale, rng.normal(size=(1000, 3)) + middle(scale)])

    def ridge(x):
        return 0.5 * x[0] ** 2 + 0.5 * jnp.sum((x[1:] - middle(x[0])) ** 2)

    assert changing_spread(log_of(ridge, theta), "sabc") is None

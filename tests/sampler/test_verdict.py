"""The verdict: one word, and reasons."""

import numpy as np
import pytest

from vhmc.sampler.verdict import (
    ABOUT_SURROGATE,
    EXACT_LIMITS,
    LIMITS,
    judge,
    judge_exact,
    mode_concerns,
)

FINE = {
    "efficiency": 0.99,
    "wide_efficiency": 0.97,
    "delayed_acceptance": 0.95,
    "spread": 0.1,
    "low_share": 0.0,
    "high": 0.4,
    "explorers": 0.95,
    "score_error": 0.01,
    "mean_error": 0.01,
    "sd_error": 0.01,
    "mean_shift": 0.01,
    "sd_shift": 0.01,
    "rhat": 1.003,
    "ess": 3000.0,
    "worth": 0.4,
    "num_checks": 112,
    "failed_share": 0.0,
}


def test_every_limit_is_tried_here():
    assert {limit.name for limit in LIMITS} == set(FINE)


def test_nothing_against_it_is_good():
    verdict = judge(FINE, [])
    assert verdict.status == "good"
    assert verdict.reasons == ()


@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: limit.name)
def test_each_statistic_alone_can_spoil_it(limit):
    beyond = 1e-6 * limit.sign
    doubtful = judge({**FINE, limit.name: limit.caution + beyond}, [])
    bad = judge({**FINE, limit.name: limit.bad + beyond}, [])
    undefined = judge({**FINE, limit.name: np.nan}, [])
    assert (doubtful.status, bad.status) == ("caution", "bad")
    assert undefined.status == "bad", "what is not known is not good"
    assert len(bad.reasons) == 1
    assert "{" not in bad.reasons[0]


def test_the_worst_reason_comes_first():
    verdict = judge({**FINE, "spread": 0.7, "rhat": 2.0}, [("caution", "no mode")])
    assert verdict.status == "bad"
    assert "R-hat 2" in verdict.reasons[0]
    assert str(verdict).startswith("bad\n- R-hat 2")


FINE_EXACT = {"exact_rhat": 1.02, "exact_ess": 300.0, "exact_acceptance": 0.9}


def test_exact_draws_are_judged_by_their_own_chains():
    doubtful = judge({**FINE, "efficiency": 0.6}, [])
    for verdict in (judge(FINE, []), doubtful):
        corrected = judge_exact(verdict, FINE_EXACT)
        assert (corrected.status, corrected.reasons) == ("good", ())
    # What a bad surrogate leaves out is out of reach for the chains on it.
    bad = judge({**FINE, "efficiency": 0.1}, [])
    corrected = judge_exact(bad, FINE_EXACT)
    assert corrected.status == "bad"
    assert corrected.reasons == (ABOUT_SURROGATE, *bad.reasons)
    missing = judge({**FINE, "missed_modes": 1}, [("caution", "another mode")])
    assert judge_exact(missing, FINE_EXACT).status == "caution"


@pytest.mark.parametrize("limit", EXACT_LIMITS, ids=lambda limit: limit.name)
def test_exact_chains_that_do_not_mix_are_bad(limit):
    beyond = 1e-6 * limit.sign
    for value, status in (
        (limit.caution + beyond, "caution"),
        (limit.bad + beyond, "bad"),
        (np.nan, "bad"),
    ):
        found = judge_exact(judge(FINE, []), {**FINE_EXACT, limit.name: value})
        assert found.status == status
        assert len(found.reasons) == 1


def test_another_mode_as_low_is_bad_and_a_high_one_is_nothing():
    draws = np.random.default_rng(0).standard_normal((500, 2))
    ends = np.array([[0.0, 0.0], [20.0, 0.0]])
    finished = np.array([True, True])
    (status, message), *_ = mode_concerns(ends, np.array([0.0, 1.0]), finished, draws)
    assert status == "bad"
    assert "1 of 2 starts" in message
    assert not mode_concerns(ends, np.array([0.0, 50.0]), finished, draws)
    assert not mode_concerns(ends[:1], np.array([0.0]), finished[:1], draws)

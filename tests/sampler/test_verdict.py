"""The verdict: one word, and reasons."""

import dataclasses

import numpy as np
import pytest

from vhmc.sampler.assessment import missed_modes
from vhmc.sampler.locate import Modes
from vhmc.sampler.reasons import LEADS, MIXING, Concern
from vhmc.sampler.verdict import (
    ABOUT_SURROGATE,
    ExactStatistics,
    Statistics,
    judge,
    judge_exact,
    unchecked,
)

FINE = Statistics(
    importance_efficiency=0.99,
    tempered_efficiency=0.97,
    independent_acceptance=0.95,
    log_weight_sd=0.1,
    hole_fraction=0.0,
    largest_log_weight=0.4,
    delayed_acceptance_rate=0.95,
    score_error=0.01,
    stein_mean_error=0.01,
    stein_sd_error=0.01,
    weighted_mean_error=0.01,
    weighted_sd_error=0.01,
    error_bound=0.05,
    mass_outside=0.0,
    rhat=1.003,
    ess_per_draw=0.4,
    ess=3000.0,
    num_checks=112,
    failed_fraction=0.0,
    pareto_k=0.3,
    single_trajectory_rate=0.8,
    surrogate_acceptance=0.9,
    missed_modes=0,
    parameter_errors=np.zeros(2),
    worst_parameter="mu",
)
FINE_EXACT = ExactStatistics(exact_rhat=1.02, exact_ess=300.0, exact_acceptance=0.9)


def limits(record):
    return {
        entry.name: entry.metadata["limit"]
        for entry in dataclasses.fields(record)
        if "limit" in entry.metadata
    }


def test_nothing_against_it_is_good():
    verdict = judge(FINE, [])
    assert verdict.status == "good"
    assert verdict.reasons == ()
    assert verdict.numbers()["ess"] == 3000.0
    assert "worst_parameter" not in verdict.numbers()


@pytest.mark.parametrize("name", limits(Statistics))
def test_each_statistic_alone_can_spoil_it(name):
    limit = limits(Statistics)[name]
    beyond = 1e-6 * limit.sign
    doubtful, bad, undefined = (
        judge(dataclasses.replace(FINE, **{name: value}), [])
        for value in (limit.caution + beyond, limit.bad + beyond, np.nan)
    )
    assert (doubtful.status, bad.status) == ("caution", "bad")
    assert undefined.status == "bad", "a value that is not a number is bad"
    assert len(bad.reasons) == 1 and "; " in bad.reasons[0], "with what to do"
    assert "{" not in bad.reasons[0]


@pytest.mark.parametrize(
    ("record", "name"),
    [
        (record, entry.name)
        for record in (FINE, FINE_EXACT)
        for entry in dataclasses.fields(record)
    ],
)
def test_a_statistic_that_is_missing_is_an_error(record, name):
    """No default anywhere: what was not measured cannot be called good."""
    rest = {key: value for key, value in vars(record).items() if key != name}
    with pytest.raises(TypeError, match=name):
        type(record)(**rest)


def test_only_a_whole_record_is_judged():
    for nothing in ({}, None):
        with pytest.raises(TypeError):
            judge(nothing, [])


def test_unchecked_draws_are_bad():
    assert unchecked("nobody looked").status == "bad"


def test_the_worst_reason_comes_first():
    statistics = dataclasses.replace(FINE, log_weight_sd=0.7, rhat=2.0)
    verdict = judge(statistics, [Concern("caution", "no mode")])
    assert verdict.status == "bad"
    assert "R-hat 2" in verdict.reasons[0]
    assert str(verdict).startswith(f"bad\n- {LEADS[MIXING]} (R-hat 2)")
    assert verdict.reasons[1] == "no mode"


def test_exact_draws_are_judged_by_their_own_chains():
    def of(efficiency):
        return judge(dataclasses.replace(FINE, importance_efficiency=efficiency), [])

    for verdict in (of(0.99), of(0.6)):
        corrected = judge_exact(verdict, FINE_EXACT)
        assert (corrected.status, corrected.reasons) == ("good", ())
        assert corrected.exact_statistics is FINE_EXACT
    # What a bad surrogate leaves out is out of reach for the chains on it.
    bad = of(0.1)
    corrected = judge_exact(bad, FINE_EXACT)
    assert corrected.status == "bad"
    assert corrected.reasons == (ABOUT_SURROGATE + bad.reasons[0],)
    missing = dataclasses.replace(FINE, missed_modes=1)
    doubtful = judge(missing, [Concern("caution", "another mode")])
    assert judge_exact(doubtful, FINE_EXACT).status == "caution"


@pytest.mark.parametrize("name", limits(ExactStatistics))
def test_exact_chains_that_do_not_mix_are_bad(name):
    limit = limits(ExactStatistics)[name]
    beyond = 1e-6 * limit.sign
    for value, status in (
        (limit.caution + beyond, "caution"),
        (limit.bad + beyond, "bad"),
        (np.nan, "bad"),
    ):
        statistics = dataclasses.replace(FINE_EXACT, **{name: value})
        found = judge_exact(judge(FINE, []), statistics)
        assert found.status == status
        assert len(found.reasons) == 1


def test_another_mode_as_low_is_bad_and_a_high_one_is_nothing():
    draws = np.random.default_rng(0).standard_normal((500, 2))
    ends = np.array([[0.0, 0.0], [20.0, 0.0]])

    def found(energies, ends=ends):
        still = np.zeros_like(ends), np.ones(len(ends), dtype=bool)
        modes = Modes(ends, np.array(energies), *still, has_mode=True)
        return missed_modes(ends, modes, draws)

    concern, *_ = found([0.0, 1.0])
    assert concern.status == "bad"
    assert "1 of 2 descents" in concern.sentence
    assert found([0.0, 5.0])[0].status == "caution"
    assert not found([0.0, 50.0])
    assert not found([0.0], ends[:1])
    assert not found([], ends[:0])


def test_a_descent_cut_off_on_the_slope_is_no_other_mode():
    """In a round posterior the gradient there points away from the mass."""
    draws = np.random.default_rng(0).standard_normal((500, 2))
    ends = np.array([[0.0, 0.0], [20.0, 0.0]])

    def found(slope, arrived):
        grads = np.array([[0.0, 0.0], [slope, 0.0]])
        modes = Modes(ends, np.zeros(2), grads, np.array([True, arrived]), True)
        return missed_modes(ends, modes, draws)

    assert not found(20.0, False)
    assert not found(1.0, False)  # not arrived, so it may be on a ridge
    concern, *_ = found(0.0, True)
    assert "in another mode" in concern.sentence

"""A user's model may do anything: it is a reason on record, never a crash."""

import threading
import warnings

import jax.numpy as jnp
import numpy as np
import pytest

import vhmc


def normal(theta):
    return -0.5 * theta @ theta, -theta


def only(answer):
    """A target whose model always gives this answer."""
    return vhmc.from_callable(lambda theta: answer, 2)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ((np.nan, np.zeros(2)), "the log density is nan"),
        ((-np.inf, np.zeros(2)), "the log density is -inf"),
        ((np.inf, np.zeros(2)), "the log density is inf"),
        (
            (0.0, np.array([1.0, np.nan])),
            "1 of 2 entries of the gradient are not finite",
        ),
        (
            (0.0, np.zeros(3)),
            r"ValueError: the gradient must have shape (2,), got (3,)",
        ),
        (
            (np.zeros(2), np.zeros(2)),
            "ValueError: the log density must be one number, got shape (2,)",
        ),
        (1.0, "ValueError: the model must return the log density and its gradient"),
        (None, "ValueError: the model must return the log density and its gradient"),
    ],
)
def test_bad_answers_are_rejected_with_a_reason(answer, reason):
    target = only(answer)
    said = target.evaluate(np.ones((2, 2)))
    assert list(said.reason) == [reason, reason]
    assert (said.energy == np.inf).all()
    assert (said.grad == 0).all()
    assert target.num_evaluations == 2


def test_an_exception_is_a_reason_for_its_point_alone():
    def fragile(theta):
        if theta[0] > 0:
            raise ZeroDivisionError("the solver blew up\nat step 7")
        return normal(theta)

    said = vhmc.from_callable(fragile, 2).evaluate(np.array([[1.0, 0], [-1.0, 0]]))
    assert list(said.reason) == ["ZeroDivisionError: the solver blew up", ""]
    np.testing.assert_array_equal(said.energy, [np.inf, 0.5])


def test_a_traced_model_has_reasons_too():
    target = vhmc.from_jax(lambda x: jnp.sum(jnp.log(x)), np.ones(2))
    said = target.evaluate(np.array([[1.0, 2.0], [-1.0, 2.0]]))
    assert list(said.reason) == ["", "the log density is nan"]


def test_an_interrupt_is_no_failure():
    def stopped(theta):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        vhmc.from_callable(stopped, 2).evaluate(np.zeros((1, 2)))


def test_a_model_that_hangs_is_given_up():
    release = threading.Event()

    def hangs(theta):
        if theta[0] > 0:
            release.wait(60)
        return normal(theta)

    target = vhmc.from_callable(hangs, 2, timeout=0.2)
    said = target.evaluate(np.array([[1.0, 0], [-1.0, 0]]))
    release.set()
    assert list(said.reason) == ["no answer after 0.2 s", ""]


def test_a_batch_that_raises_fails_whole():
    def batch(points):
        raise OSError("the file is gone")

    said = vhmc.from_callable(batch, 2, batch=True).evaluate(np.zeros((3, 2)))
    assert list(said.reason) == ["OSError: the file is gone"] * 3


def test_a_hessian_with_a_hole_is_not_a_number():
    def fragile(theta):
        if theta[0] > 1.0:
            raise RuntimeError
        return normal(theta)

    hessian = vhmc.from_callable(fragile, 2).hessian(np.array([1.0, 0.0]))
    assert np.isnan(hessian).any()


def test_one_failure_in_five_is_survived_and_recorded(seed):
    rng = np.random.default_rng(seed)

    def unreliable(theta):
        if rng.uniform() < 0.2:
            raise ConnectionError("the node went away")
        return normal(theta - 1.0)

    target = vhmc.from_callable(unreliable, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a fifth of the points is worth a caution
        posterior = vhmc.sample(target, 600, draws=500, chains=4, seed=seed)
    failures = posterior.failures
    num_points = len(posterior.evaluation_log.energy)
    # Binomial: 5 standard errors.
    limit = 5 * np.sqrt(0.16 / num_points)
    assert abs(len(failures) / num_points - 0.2) < limit
    assert {failure.reason for failure in failures} == {
        "ConnectionError: the node went away"
    }
    assert "training" in {failure.phase for failure in failures}
    draws = posterior.unconstrained.reshape(-1, 3)
    assert np.abs(draws.mean(axis=0) - 1).max() < 0.2
    assert np.abs(draws.std(axis=0) - 1).max() < 0.2
    # Nothing is called good that a fifth of the calls did not answer.
    assert posterior.verdict.status == "caution"


def test_failures_that_are_the_rule_end_the_run_and_lose_nothing():
    calls = 0

    def dies(theta):
        nonlocal calls
        calls += 1
        if calls > 100:
            raise MemoryError("no memory is left")
        return normal(theta)

    target = vhmc.from_callable(dies, 2)
    with pytest.raises(
        vhmc.RunFailure,
        match=r"failed at \d+ of \d+ points .* most often: MemoryError: no memory",
    ) as info:
        vhmc.sample(target, 500)
    log = info.value.evaluation_log
    num_hessian = 4  # differences of gradients, which are kept as a matrix
    # Besides a round of training, the look around may have asked in vain.
    assert len(log.theta) + num_hessian == calls < 100 + 50 + 16 + 16
    assert log.is_finite.sum() + num_hessian == 100
    np.testing.assert_allclose(log.grad[log.is_finite], log.theta[log.is_finite])


def test_a_model_that_fails_everywhere_is_one_sentence():
    def broken(theta):
        raise ImportError("no module named solver")

    target = vhmc.from_callable(broken, 2)
    with pytest.raises(ValueError, match="ImportError: no module named solver"):
        vhmc.sample(target, 500)
    assert target.num_evaluations <= 9


@pytest.mark.slow
def test_the_papers_sampler_goes_on_after_a_failure():
    calls = 0

    def fragile(theta):
        nonlocal calls
        calls += 1
        if calls == 60:
            raise ZeroDivisionError("the solver blew up")
        return normal(theta)

    target = vhmc.from_callable(fragile, 2, init=np.ones(2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        posterior = vhmc.paper.sample_paper(target, vhmc.paper.VHMC(num_features=20))
    assert posterior.trained.num_failed == 1


def test_the_papers_sampler_ends_where_failures_are_the_rule():
    calls = 0

    def dies(theta):
        nonlocal calls
        calls += 1
        if calls > 60:
            raise ZeroDivisionError("the solver blew up")
        return normal(theta)

    target = vhmc.from_callable(dies, 2, init=np.ones(2))
    with pytest.raises(vhmc.RunFailure, match="solver blew up") as info:
        vhmc.paper.sample_paper(target, vhmc.paper.VHMC(num_features=20))
    (trained,) = info.value.trained
    known = np.isfinite(trained.energy)
    assert 0 < known.sum() < 60
    np.testing.assert_array_equal(trained.grad[known], trained.theta[known])

"""The default sampler: a budget in, draws and a verdict out."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import vhmc
from vhmc.numerics.effective_size import bulk_ess
from vhmc.sampler import training as schedule
from vhmc.sampler.check import stein_errors
from vhmc.sampler.rounds import Rounds


def normal_target(dim=3):
    scale = jnp.arange(1.0, dim + 1)
    return vhmc.from_jax(
        lambda theta: -0.5 * jnp.sum((theta - 2.0) ** 2 / scale**2), np.zeros(dim)
    )


def skewed_target():
    """Logarithms of gamma variables with shapes 2 and 5, as positive parameters."""
    return vhmc.from_jax(
        lambda p: jnp.log(p["a"]) - p["a"] + 4 * jnp.log(p["b"]) - p["b"],
        {"a": 1.0, "b": 1.0},
        constraints={"a": vhmc.positive, "b": vhmc.positive},
    )


@pytest.fixture(scope="module")
def skewed(seed):
    target = skewed_target()
    return target, vhmc.sample(target, 600, seed=seed)


def test_moments_of_a_skewed_posterior(skewed):
    """Five standard errors of independent draws, and a tenth for the surrogate."""
    _, posterior = skewed
    assert posterior.verdict.status == "good", posterior.verdict
    for name, shape in (("a", 2.0), ("b", 5.0)):
        draws = posterior.draws[name]
        error = 5 / np.sqrt(bulk_ess(draws)) + 0.1
        assert abs(draws.mean() - shape) < error * np.sqrt(shape)
        assert abs(draws.std() / np.sqrt(shape) - 1) < error


def test_every_call_is_counted_and_booked(skewed):
    _, posterior = skewed
    assert posterior.num_evaluations <= 600
    booked = {name: n for name, n in posterior.costs.items() if name != "hessian"}
    phases, counts = np.unique(posterior.evaluation_log.phase, return_counts=True)
    assert dict(zip(phases, counts, strict=True)) == booked
    assert posterior.costs["hessian"] == 2


def test_arviz_gets_the_verdict_and_the_costs(skewed):
    data = skewed[1].to_arviz()
    assert data["posterior"].attrs["verdict"] == "good"
    assert data["posterior"].attrs["num_evaluations"] == skewed[1].num_evaluations
    assert data["sample_stats"]["surrogate_lp"].shape == (8, 1000)
    assert list(skewed[1].summary().index) == ["a", "b"]
    assert "verdict good" in repr(skewed[1])


def test_the_surrogate_is_a_density_of_its_own(skewed):
    """It differs from the true log density by a constant, nearly."""
    target, posterior = skewed
    thetas = posterior.unconstrained[0, ::50]
    guessed = np.array([posterior.surrogate(jnp.asarray(t)) for t in thetas])
    difference = guessed + target.evaluate(thetas).energy
    assert np.std(difference) < 0.3


def test_an_easy_posterior_gives_evaluations_back(skewed):
    assert skewed[1].num_evaluations < 550


@pytest.mark.parametrize("budget", [20, 37, 100, 301])
def test_no_budget_is_exceeded(budget):
    target = normal_target()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so few evaluations cannot be good
        posterior = vhmc.sample(target, budget, draws=50, chains=2)
    assert target.num_evaluations == posterior.num_evaluations <= budget
    assert np.isfinite(posterior.unconstrained).all()
    if budget < 100:
        assert posterior.verdict.status != "good"


def test_a_target_used_before_still_has_its_whole_budget():
    target = normal_target()
    target.evaluate(np.zeros((7, 3)))
    posterior = vhmc.sample(target, 300, draws=200, chains=2)
    assert posterior.num_evaluations == target.num_evaluations - 7


def test_the_plan_is_the_budget():
    for budget in (20, 333, 1000, 10_000):
        for correction in ("auto", "none", "importance", "exact"):
            plan = vhmc.plan(normal_target(), budget, correction)
            assert plan.total == budget
            assert (plan.correction > 0) == (correction == "exact")


def test_same_seed_same_bits():
    def draws(seed):
        return vhmc.sample(skewed_target(), 300, draws=200, chains=2, seed=seed)

    one, two, other = draws(3), draws(3), draws(4)
    np.testing.assert_array_equal(one.unconstrained, two.unconstrained)
    np.testing.assert_array_equal(one.evaluation_log.theta, two.evaluation_log.theta)
    assert not np.array_equal(one.unconstrained, other.unconstrained)


def test_a_function_that_jax_cannot_trace_gives_the_same_posterior():
    def value_and_grad(theta):
        theta = np.asarray(theta)
        return float(-0.5 * theta @ theta), -theta

    target = vhmc.from_callable(value_and_grad, dim=2, init=np.ones(2))
    posterior = vhmc.sample(target, 500, draws=500, chains=4)
    assert posterior.verdict.status == "good", posterior.verdict
    assert posterior.num_evaluations == target.num_evaluations <= 500
    assert np.abs(posterior.unconstrained.std(axis=(0, 1)) - 1).max() < 0.15


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budget": 19}, "budget must be at least 20"),
        ({"correction": "psis"}, "correction must be one of auto, none"),
        ({"draws": 0}, "draws must be at least 4"),
        ({"chains": 0}, "chains must be at least 1"),
        ({"num_features": -1}, "num_features must be at least 0"),
    ],
)
def test_bad_input_costs_nothing(options, message):
    target = normal_target()
    with pytest.raises(ValueError, match=message):
        vhmc.sample(target, **options)
    assert target.num_evaluations == 0


def test_a_model_that_is_nowhere_finite_is_one_sentence():
    target = vhmc.from_jax(lambda theta: jnp.nan * jnp.sum(theta), np.zeros(2))
    with pytest.raises(ValueError, match="not finite at the start"):
        vhmc.sample(target, 200)


def test_a_boundary_where_the_density_ends():
    """A half space without density: found, named, and the rest is right."""

    def log_density(theta):
        inside = -0.5 * jnp.sum(theta**2)
        return jnp.where(theta[0] > -1.0, inside, -jnp.inf)

    target = vhmc.from_jax(log_density, np.ones(2))
    posterior = vhmc.sample(target, 500, draws=200, chains=4)
    assert np.sum(~posterior.evaluation_log.is_finite) > 0
    assert posterior.verdict.status == "good"
    assert "theta[0] < -1" in posterior.verdict.notes[0]
    first = posterior.unconstrained[..., 0]
    assert first.min() > -1
    # The mean of a normal above -1 is its density there over the mass above: 0.288.
    assert abs(first.mean() - 0.288) < 5 * 0.79 / np.sqrt(800)


def test_a_funnel_is_sampled_or_not_called_good():
    """Neal's funnel has no mode and no single scale; its log scale has sd 3."""

    def log_density(theta):
        log_scale = theta[0]
        rest = -0.5 * jnp.sum((theta[1:] * jnp.exp(-log_scale)) ** 2)
        return -0.5 * (log_scale / 3) ** 2 + rest - 9 * log_scale

    target = vhmc.from_jax(log_density, np.ones(10))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a bad verdict
        posterior = vhmc.sample(target, 500, draws=200, chains=4)
    log_scale = posterior.unconstrained[..., 0]
    is_right = abs(log_scale.mean()) < 0.75 and abs(log_scale.std() / 3 - 1) < 0.25
    assert is_right or posterior.verdict.status != "good"
    assert posterior.verdict.status == "good" or posterior.verdict.reasons


def test_two_modes_far_apart_are_not_called_good():
    """Chains in one of two equal modes look perfect; the starts know better."""

    def log_density(theta):
        return jnp.logaddexp(
            -0.5 * jnp.sum((theta - 10) ** 2), -0.5 * jnp.sum((theta + 10) ** 2)
        )

    target = vhmc.from_jax(log_density, np.zeros(2) + 0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        posterior = vhmc.sample(target, 800, draws=500, chains=4)
    low = (posterior.unconstrained[..., 0] < 0).mean()
    assert posterior.verdict.status != "good" or 0.4 < low < 0.6


def test_without_nodes_it_is_a_gaussian():
    target = normal_target()
    posterior = vhmc.sample(target, 500, num_features=0, draws=500, chains=4)
    assert posterior.verdict.status == "good", posterior.verdict
    (layer,) = posterior.surrogate.potential.transport.layers
    np.testing.assert_allclose(layer.mean, 2.0, atol=1e-5)
    covariance = layer.factor @ layer.factor.T
    np.testing.assert_allclose(covariance, np.diag([1, 4, 9.0]), atol=1e-4)


def test_stein_errors_are_those_of_a_wrong_gaussian():
    rng = np.random.default_rng(0)
    draws = 1.0 + 0.9 * rng.standard_normal((200_000, 1))  # q = N(1, 0.81), p = N(0, 1)
    score_errors = (draws - 1.0) / 0.81 - draws
    even = np.full(len(draws), 1 / len(draws))
    mean_error, sd_error = stein_errors(draws, score_errors, even)
    # To first order, and up to the sign: the mean is 1 too high, the sd 10 % too small.
    assert abs(mean_error[0] + 0.9) < 0.02
    assert abs(sd_error[0] - 0.5 * (1 - 0.81)) < 0.01


def test_nothing_is_easy_before_the_first_round():
    rounds = object.__new__(Rounds)
    rounds.reports = []
    assert not schedule._is_easy(rounds)


def test_a_second_run_of_the_same_shape_compiles_no_moves():
    """Another model, another seed; these programs are nearly all that is compiled."""
    programs = {"jit(_walk)", "jit(_single_trajectory)", "jit(_draw_segment)"}
    compiled = set()

    def listen(event, seconds, **facts):
        if event == "/jax/core/compile/backend_compile_duration":
            compiled.add(facts.get("fun_name"))

    def banana(theta, width):
        a, b, c = theta
        bent = b - a**2 / width
        grad = np.array([a / width - 2 * bent * a / width, bent, c])
        return -0.5 * (a**2 / width + bent**2 + c**2), -grad

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        for seed, width in enumerate((2.0, 3.0)):
            target = vhmc.from_callable(lambda t, width=width: banana(t, width), 3)
            # Sizes that no other test has: the first run must be seen to compile.
            vhmc.sample(target, 150, seed=seed, chains=6, num_features=37, draws=50)
            assert compiled & programs == (programs if seed == 0 else set())
            compiled.clear()
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)

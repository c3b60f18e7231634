"""Corrections: what each promises."""

import warnings

import jax.numpy as jnp
import numpy as np
import pytest

import vhmc
from tests.chance import LIMIT, standard_errors
from tests.densities import Density
from vhmc.sampler import correction as corrections
from vhmc.sampler.check import Chosen
from vhmc.sampler.check_surrogate import check
from vhmc.sampler.correction import (
    AUTO,
    CORRECTIONS,
    Corrected,
    Correction,
    Uncorrected,
    expect,
    resolve,
)
from vhmc.sampler.drawing import draw
from vhmc.sampler.verdict import unchecked
from vhmc.surrogate.residual import Guard, ZeroResidual
from vhmc.surrogate.surrogate import Surrogate
from vhmc.transport.affine import Affine
from vhmc.transport.transport_map import TransportMap

NONE = np.zeros((0, 2))


def skewed():
    """Log of a gamma variable with shape 2 beside a standard normal."""
    return vhmc.from_jax(
        lambda p: jnp.log(p["rate"]) - p["rate"] - 0.5 * p["x"] ** 2,
        {"rate": 1.0, "x": 0.0},
        constraints={"rate": vhmc.positive},
    )


def unconstrained_skewed(t):
    return 2 * t[0] - jnp.exp(t[0]) - 0.5 * t[1] ** 2


def gaussian(mean, sds):
    layer = Affine(np.array(mean), np.diag(sds))
    return Surrogate(TransportMap((layer,)), ZeroResidual(), Guard(np.inf, 3.0))


@pytest.fixture(scope="module")
def bad_run(seed):
    """A Gaussian beside the mass, and too wide; its draws, checked and corrected."""
    rng, density = np.random.default_rng(seed), Density(unconstrained_skewed)
    surrogate = gaussian([-0.3, 0.0], [1.0, 1.3])
    drawn = draw(rng, surrogate, np.zeros((100, 2)), 0.7, 80)
    theta = surrogate.transport.forward(drawn.x.reshape(-1, 2))
    chosen = Chosen(theta[::40], np.full(200, 1 / 200))
    checked = check(surrogate, density, lambda thetas: thetas, chosen, NONE)
    made = Uncorrected(
        surrogate, drawn, checked, theta.reshape(100, 80, 2), density, 20_000
    )
    exact = CORRECTIONS["exact"].draw(rng, made, unchecked("of the surrogate"))
    return theta, checked, exact, density


def test_none_is_wrong_where_exact_is_right(bad_run):
    """False alarms of the exact correction: below one in 60,000 for each moment."""
    theta, _, exact, _ = bad_run
    truth = np.array([2.0, 0.0, 6.0, 1.0])  # moments of gamma(2) and of the normal

    def moments(theta):
        rate = np.exp(theta[..., 0])
        return np.stack([rate, theta[..., 1], rate**2, theta[..., 1] ** 2], axis=-1)

    wrong = standard_errors(moments(theta), truth)
    assert wrong[[0, 3]].min() > 2 * LIMIT, "the surrogate was meant to be wrong"
    # Draws ordered by chain: chains are the batches, independent of each other.
    chains = moments(exact.theta[:, 20:]).reshape(50, -1, 4)
    right = standard_errors(chains.reshape(-1, 4), truth)
    assert right.max() < LIMIT, right


def test_every_exact_draw_is_one_evaluation(bad_run):
    _, _, exact, density = bad_run
    assert exact.theta.shape == (100, 200, 2)
    assert density.counts["correction"] == 20_000
    assert 0.3 < exact.verdict.exact_statistics.exact_acceptance < 0.95


def test_weights_remove_the_bias_of_uncorrected_draws(bad_run):
    """The control variate moves means that the weights show to be off."""
    theta, checked, _, _ = bad_run
    rate, true_rate = np.exp(theta[:, :1]), np.exp(checked.theta[:, :1])
    estimate = expect(rate, true_rate, checked.probability, checked.weights, 4000.0)
    assert estimate.kind[0] == "control variate"
    assert abs(estimate.value[0] - 2.0) < 5 * estimate.error[0]
    assert abs(estimate.value[0] - 2.0) < abs(rate.mean() - 2.0)


def test_a_perfect_surrogate_needs_no_weights():
    rng = np.random.default_rng(0)
    draws, checked = rng.standard_normal((4000, 2)), rng.standard_normal((100, 2))
    even = np.full(100, 0.01)
    estimate = expect(draws, checked, even, even, 4000.0)
    assert set(estimate.kind) == {"draws"}
    np.testing.assert_allclose(estimate.value, draws.mean(axis=0))


def shifted_check(num_checked, tilt):
    """Checked draws of a standard normal; the posterior's mean is at `tilt`."""
    rng = np.random.default_rng(0)
    theta = rng.standard_normal((num_checked, 2))
    chosen = Chosen(theta, np.full(num_checked, 1 / num_checked))
    density = Density(lambda t: -0.5 * jnp.sum((t - tilt) ** 2))
    surrogate = gaussian([0.0, 0.0], [1.0, 1.0])
    draws = rng.standard_normal((8000, 2))
    return check(surrogate, density, lambda thetas: thetas, chosen, NONE), draws


@pytest.mark.parametrize(
    ("num_checked", "tilt", "name"),
    [(400, 0.0, "none"), (400, 0.8, "importance"), (30, 6.0, "none")],
)
def test_auto_resamples_only_what_enough_draws_say(num_checked, tilt, name):
    """The last: all weight on a draw or two, which look free of noise."""
    assert resolve(AUTO, *shifted_check(num_checked, tilt)) == name


def test_one_draw_with_all_the_weight_is_no_certainty():
    checked = np.linspace(-2, 2, 20)[:, None]
    weights = np.eye(20)[-1]
    draws = np.random.default_rng(0).standard_normal((4000, 1))
    estimate = expect(draws, checked, np.full(20, 0.05), weights, 4000.0)
    assert estimate.error[0] > 1.0


def test_a_new_correction_is_one_row(monkeypatch):
    """The worked example of CONTRIBUTING: draws shifted to the weighted mean."""

    def draw_shifted(rng, made, verdict):
        check = made.check
        shift = (check.weights - check.probability) @ check.theta
        return Corrected(made.theta + shift, verdict)

    row = Correction(0.0, draw_shifted, lambda check, draws: np.inf)
    monkeypatch.setitem(CORRECTIONS, "shifted", row)
    monkeypatch.setattr(corrections, "CHOICES", (AUTO, *CORRECTIONS))
    monkeypatch.setattr("vhmc.sampler.plan.CHOICES", (AUTO, *CORRECTIONS))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        posterior = vhmc.sample(
            skewed(), 300, correction="shifted", draws=50, chains=4, progress=False
        )
    assert posterior.correction == "shifted"
    moved = posterior.unconstrained - posterior.uncorrected
    np.testing.assert_allclose(moved, moved[:1, :1] * np.ones_like(moved), atol=1e-12)
    assert posterior.expect().value.shape == (2,)


@pytest.mark.parametrize("correction", ["none", "importance", "exact", "auto"])
def test_each_correction_gives_draws(correction):
    target = skewed()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        posterior = vhmc.sample(
            target, 500, correction=correction, draws=100, chains=4, seed=1
        )
    assert posterior.correction in ("none", "importance", "exact")
    assert posterior.num_evaluations == target.num_evaluations <= 500
    if correction == "exact":
        price = vhmc.plan(target, 500, "exact").correction
        assert posterior.costs["correction"] == 4 * posterior.unconstrained.shape[1]
        assert price - 4 < posterior.costs["correction"] <= price
    else:
        assert "correction" not in posterior.costs
        assert posterior.unconstrained.shape == (4, 100, 2)
    estimate = posterior.expect()
    assert estimate.value.shape == estimate.error.shape == (2,)
    second = posterior.expect(lambda draws: draws["x"] ** 2)
    assert abs(second.value[0] - 1) < 5 * second.error[0] + 0.1


def test_exact_draws_speak_for_themselves():
    """With a Gaussian for a surrogate, which is off: one false alarm in 10^6."""
    target = skewed()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the surrogate, which is bad
        posterior = vhmc.sample(
            target, 3000, correction="exact", num_features=0, seed=0, progress=False
        )
    estimate = posterior.expect()
    assert set(estimate.kind) == {"exact draws"}
    drawn = posterior.parameters.values(posterior.unconstrained).mean(axis=(0, 1))
    np.testing.assert_allclose(estimate.value, drawn)
    moments = posterior.expect(lambda draws: draws["x"] ** 2)
    assert abs(moments.value[0] - 1) < 5 * moments.error[0]
    assert 0.3 < posterior.verdict.exact_statistics.exact_acceptance < 1


def test_exact_draws_on_a_bad_surrogate_are_not_called_better_than_that():
    """A Gaussian for a banana: the chains never get to its arms in a thousand draws."""

    def banana(x):
        return -0.5 * x[0] ** 2 - 2 * (x[1] - x[0] ** 2) ** 2

    target = vhmc.from_jax(banana, np.zeros(2))
    with pytest.warns(UserWarning, match="verdict bad"):
        posterior = vhmc.sample(
            target, 3000, correction="exact", num_features=0, seed=0, progress=False
        )
    assert any("the draws are corrected" in r for r in posterior.verdict.reasons)


def test_draws_that_nobody_checked_say_so():
    target = vhmc.from_jax(lambda x: -0.5 * x @ x, np.zeros(2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        posterior = vhmc.sample(target, 20, draws=10, progress=False)
    with pytest.raises(ValueError, match="none of these draws was checked: give a"):
        posterior.expect()

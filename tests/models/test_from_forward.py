"""Forward models with normal errors: densities, outputs, refusals, replay."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.stats import norm

import vhmc
from vhmc.evaluation.evaluator import Evaluator
from vhmc.evaluation.ledger import LedgerFile, Round
from vhmc.evaluation.replay import Replay

MATRIX = np.random.default_rng(3).standard_normal((6, 2))
DATA = np.linspace(-1.0, 1.0, 6)
SDS = np.linspace(0.3, 0.8, 6)


def forward(theta):
    return np.tanh(MATRIX @ theta)


def vjp(theta, cotangent):
    return MATRIX.T @ (cotangent / np.cosh(MATRIX @ theta) ** 2)


def traced(theta):
    return jnp.tanh(MATRIX @ theta)


def log_prior(theta):
    return jnp.sum(norm.logpdf(theta, 1.0))


def log_density(p):
    """With all constants: its integral is the evidence."""
    likelihood = jnp.sum(norm.logpdf(DATA, traced(p["theta"]), SDS))
    return likelihood + log_prior(p["theta"])


def make(forward=forward, **options):
    options = {"prior": (np.ones(2), 1.0), "vjp": vjp} | options
    return vhmc.from_forward(forward, DATA, SDS, **options)


@pytest.mark.parametrize(
    ("options", "price"),
    [
        ({}, 1),
        ({"forward": traced, "vjp": None}, 1),
        ({"vjp": None, "differences": "central"}, 5),
        ({"prior": log_prior, "dim": 2}, 1),
    ],
    ids=["vjp", "jax", "differences", "log density as prior"],
)
@pytest.mark.parametrize("constraints", [{}, {"theta": vhmc.positive}])
def test_densities_and_gradients_are_those_of_the_posterior(
    options, price, constraints
):
    target = make(constraints=constraints, init=np.ones(2), **options)
    expected = vhmc.from_jax(log_density, {"theta": np.ones(2)}, constraints)
    thetas = np.random.default_rng(0).normal(size=(5, 2))
    answer, truth = target.evaluate(thetas), expected.evaluate(thetas)
    np.testing.assert_allclose(answer.energy, truth.energy, rtol=1e-10)
    np.testing.assert_allclose(answer.grad, truth.grad, rtol=1e-6, atol=1e-7)
    assert target.num_evaluations == 5 * price
    points = target.parameters.constrain(thetas)["theta"]
    outputs = np.tanh(points @ MATRIX.T)
    np.testing.assert_allclose(answer.outputs, outputs, rtol=1e-12)
    known = target.observable
    energy = known.prior_rows(thetas)[0] + 0.5 * np.sum(
        known.misfit(answer.outputs) ** 2, axis=1
    )
    np.testing.assert_allclose(answer.energy, energy, rtol=1e-12)
    np.testing.assert_allclose(
        known.prior_rows(thetas)[1], jax.vmap(jax.grad(known.prior))(thetas)
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"noise_sd": 0.0}, "standard deviations of the noise must be positive"),
        ({"noise_sd": np.ones(5)}, "noise_sd must be a number, or one for each"),
        ({"data": [np.nan, 1]}, "data must be finite"),
        ({"prior": (np.zeros(2), -1.0)}, "standard deviations of the prior"),
        ({"prior": lambda t: 0.0}, "give dim, the number of parameters"),
        ({"differences": "central"}, "give vjp or differences, not both"),
    ],
)
def test_bad_arguments_get_a_sentence_before_any_evaluation(options, message):
    default = {"forward": forward, "data": DATA, "noise_sd": SDS, "vjp": vjp}
    default |= {"prior": (np.zeros(2), 1.0)}
    with pytest.raises(ValueError, match=message):
        vhmc.from_forward(**default | options)


def test_outputs_of_another_number_than_the_data_are_the_reason():
    target = make(lambda theta: np.ones(4))
    answer = target.evaluate(np.zeros((2, 2)))
    assert "the forward model returned 4 outputs, the data are 6" in answer.reason[0]
    assert np.isnan(answer.outputs).all()


@pytest.mark.filterwarnings("ignore:verdict")
def test_a_resumed_run_replays_outputs_bit_for_bit(tmp_path):
    options = {"draws": 50, "chains": 2, "seed": 3}
    whole = vhmc.sample(make(), 60, ledger=tmp_path / "run.vhmc", **options)
    target = make()
    again = vhmc.sample(target, 60, ledger=tmp_path / "run.vhmc", **options)
    assert target.num_evaluations <= 1, "a probe, that the model is the same"
    np.testing.assert_array_equal(again.unconstrained, whole.unconstrained)
    one, other = whole.evaluation_log, again.evaluation_log
    np.testing.assert_array_equal(one.outputs, other.outputs)


def test_points_of_a_ledger_without_outputs_have_none(tmp_path):
    thetas, target = np.array([[0.1, 0.2], [0.3, 0.4]]), make()
    answer = target.evaluate(thetas[:1])
    file = LedgerFile(tmp_path / "run.vhmc")
    file.append(Round("points", "search", thetas[:1], *answer[:3], 1, 0.0, 0.0))
    evaluator = Evaluator(target, 10, Replay(file))
    found = evaluator.evaluate(thetas, "search").outputs
    assert np.isnan(found[0]).all() and np.isfinite(found[1]).all()
    on_file = [entry.outputs for entry in file.rounds()]
    file.close()
    assert on_file[0] is None
    np.testing.assert_array_equal(on_file[1], found[1:])

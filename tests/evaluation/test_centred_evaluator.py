"""A model that is evaluated in its centred form is the same model."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import vhmc
from tests.structure.centred_models import by_scan, centred_walk, walk
from vhmc.evaluation.centred_evaluator import CentredEvaluator
from vhmc.sampler.model_graph import centring, model_graph


@pytest.fixture(scope="module")
def evaluator():
    target = walk(by_scan)
    layer = centring(model_graph(target), target.parameters)
    return CentredEvaluator(layer, target, 1000)


def points(number):
    return 0.5 * np.random.default_rng(1).standard_normal((number, 14))


def test_layer_and_determinant_are_those_of_autodiff(evaluator):
    layer, x = evaluator.layer, points(5)
    theta = layer.forward(x)
    np.testing.assert_allclose(layer.inverse(theta), x, atol=1e-10)
    inward = jax.vmap(jax.jacfwd(lambda row: layer.inverse(row[None])[0]))(
        jnp.asarray(theta)
    )
    np.testing.assert_allclose(layer.log_det(x), -np.linalg.slogdet(inward)[1])
    grad = np.random.default_rng(2).standard_normal(x.shape)
    pulled = np.linalg.solve(np.asarray(inward).swapaxes(1, 2), grad[..., None])[..., 0]
    np.testing.assert_allclose(layer.pull_back(x, grad), pulled, atol=1e-9)
    np.testing.assert_allclose(layer.push_forward(x, pulled), grad, atol=1e-9)
    slopes = jax.vmap(jax.grad(lambda row: layer.log_det(row[None])[0]))(jnp.asarray(x))
    np.testing.assert_allclose(layer.log_det_grad(x), slopes, atol=1e-8)


def test_energies_gradients_and_hessian_are_those_of_the_centred_model(evaluator):
    other, x = centred_walk(), points(6)
    answer, expected = evaluator.evaluate(x, "training"), other.evaluate(x)
    shift = expected.energy - answer.energy
    np.testing.assert_allclose(shift, shift[0], atol=1e-9)
    np.testing.assert_allclose(answer.grad, expected.grad, atol=1e-7)
    np.testing.assert_allclose(
        evaluator.hessian(x[-1], "hessian"), other.hessian(x[-1]), atol=1e-5
    )


def test_the_log_has_both_coordinates(evaluator):
    x = points(3)
    evaluator.evaluate(x, "training")
    np.testing.assert_allclose(evaluator.log.theta[-3:], x, atol=1e-10)
    outer = evaluator.evaluation_log
    np.testing.assert_array_equal(outer.theta[-3:], evaluator.layer.forward(x))
    again = evaluator.target.evaluate(outer.theta[-3:])
    np.testing.assert_allclose(outer.energy[-3:], again.energy)
    np.testing.assert_allclose(outer.grad[-3:], again.grad)


def test_a_run_is_given_in_the_coordinates_of_the_user(tmp_path):
    """Draws, checked energies, the surrogate and the ledger are of the written form.

    And a run that begins with it needs no search.
    """
    target, file = walk(by_scan), tmp_path / "run.vhmc"
    options = {"seed": 3, "draws": 50, "chains": 2, "num_features": 0}
    posterior = vhmc.sample(target, 150, ledger=file, **options)
    assert posterior.structure.centred is not None
    log = posterior.evaluation_log
    again = target.evaluate(log.theta[-5:])
    np.testing.assert_allclose(log.energy[-5:], again.energy)
    checked = posterior.check
    again = target.evaluate(checked.theta[:5])
    np.testing.assert_allclose(checked.energy[:5], again.energy)
    np.testing.assert_allclose(checked.grad[:5], again.grad, atol=1e-6)
    flat = posterior.unconstrained[:, :3].reshape(-1, target.dim)
    energies = posterior.stats["surrogate_lp"][:, :3].ravel()
    density = jax.vmap(posterior.surrogate)(jnp.asarray(flat))
    np.testing.assert_allclose(density, energies, atol=1e-6)

    before = target.num_evaluations
    replayed = vhmc.sample(target, 150, ledger=file, **options)
    assert target.num_evaluations == before, "a finished run is not evaluated again"
    np.testing.assert_array_equal(replayed.unconstrained, posterior.unconstrained)

    warmed = vhmc.sample(walk(by_scan), 80, warm_start=posterior, **options)
    assert "search" not in warmed.costs, "the old map was confirmed"

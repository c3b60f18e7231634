"""Python functions as models: names, constraints, batches, differences, workers."""

from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import jax.numpy as jnp
import numpy as np
import pytest

import vhmc

SHAPES = {"shares": (3,), "scale": (), "mean": (2,)}
CONSTRAINTS = {"shares": vhmc.simplex, "scale": vhmc.positive}
START = np.array([0.2, 0.3, 0.5, 1.5, -1.0, 2.0])


def log_density(p):
    """Dirichlet, gamma, and a normal whose scale is the gamma's."""
    return (
        jnp.sum(jnp.array([1.0, 2.0, 3.0]) * jnp.log(p["shares"]))
        + 3 * jnp.log(p["scale"])
        - p["scale"]
        - 0.5 * jnp.sum((p["mean"] / p["scale"]) ** 2)
    )


def value(x):
    x = np.asarray(x)
    shares, scale, mean = x[..., :3], x[..., 3], x[..., 4:]
    return (
        np.sum([1.0, 2.0, 3.0] * np.log(shares), axis=-1)
        + 3 * np.log(scale)
        - scale
        - 0.5 * np.sum((mean / scale[..., None]) ** 2, axis=-1)
    )


def value_and_grad(x):
    x = np.asarray(x)
    shares, scale, mean = x[..., :3], x[..., 3:4], x[..., 4:]
    square = np.sum(mean**2, axis=-1, keepdims=True)
    grad = [
        [1.0, 2.0, 3.0] / shares,
        3 / scale - 1 + square / scale**3,
        -mean / scale**2,
    ]
    return value(x), np.concatenate(grad, axis=-1)


def thetas(number=4):
    return np.random.default_rng(0).normal(size=(number, 5))


@pytest.fixture(scope="module")
def expected():
    """The same model in JAX, which adds the Jacobians itself."""
    init = {"shares": START[:3], "scale": START[3], "mean": START[4:]}
    return vhmc.from_jax(log_density, init, CONSTRAINTS)


def opaque(function=value_and_grad, **options):
    return vhmc.from_callable(
        function, 6, START, names=SHAPES, constraints=CONSTRAINTS, **options
    )


@pytest.mark.parametrize("batch", [False, True])
def test_constraints_names_and_batches(expected, batch):
    target = opaque(batch=batch)
    assert target.dim == expected.dim == 5
    assert target.parameters.shapes == expected.parameters.shapes
    np.testing.assert_allclose(target.start, expected.start)
    answer, truth = target.evaluate(thetas()), expected.evaluate(thetas())
    np.testing.assert_allclose(answer.energy, truth.energy, rtol=1e-10)
    np.testing.assert_allclose(answer.grad, truth.grad, rtol=1e-10)
    assert target.num_evaluations == 4


@pytest.mark.parametrize(
    ("kind", "step", "accuracy"),
    [("central", None, 1e-8), ("forward", None, 1e-5), ("central", 1e-3, 1e-4)],
)
def test_differences_are_gradients_and_are_counted(expected, kind, step, accuracy):
    target = opaque(value, differences=kind, step=step)
    price = 1 + 5 * (2 if kind == "central" else 1)
    assert target.price == price
    answer, truth = target.evaluate(thetas()), expected.evaluate(thetas())
    np.testing.assert_allclose(answer.energy, truth.energy, rtol=1e-10)
    scale = np.abs(truth.grad).max()
    np.testing.assert_allclose(answer.grad, truth.grad, atol=accuracy * scale)
    assert target.num_evaluations == 4 * price
    hessian, true_hessian = target.hessian(thetas()[0]), expected.hessian(thetas()[0])
    scale = np.abs(true_hessian).max()
    np.testing.assert_allclose(hessian, true_hessian, atol=5e-3 * scale)


def test_a_budget_of_values_is_kept():
    def quadratic(theta):
        return -0.5 * np.sum((theta - 1) ** 2)

    target = vhmc.from_callable(quadratic, 2, differences="central")
    assert vhmc.plan(target, 2502).total == 500
    posterior = vhmc.sample(target, 2502, draws=500, chains=4)
    assert posterior.num_evaluations == target.num_evaluations <= 2500
    assert posterior.num_evaluations == 5 * len(posterior.evaluation_log.energy) + 4 * 5
    assert posterior.verdict.status == "good", posterior.verdict
    assert np.abs(posterior.unconstrained.mean(axis=(0, 1)) - 1).max() < 0.15
    with pytest.raises(ValueError, match="at least 100 evaluations"):
        vhmc.sample(target, 99)


def test_a_neighbour_without_a_value_is_the_reason():
    def walled(theta):
        if theta[1] > 1.0:
            raise ValueError("beyond the wall")
        return -0.5 * theta @ theta

    target = vhmc.from_callable(walled, 2, differences="forward")
    answers = target.evaluate(np.array([[0.0, 1.0], [0.0, 0.0]]))
    assert list(answers.reason) == ["ValueError: beyond the wall", ""]


class List:
    """The least that `parallel` needs: an object with a `map`."""

    def map(self, function, points):
        return [function(point) for point in points]


def test_any_object_with_a_map_serves():
    points, truth = thetas(), opaque().evaluate(thetas())
    with (
        ThreadPoolExecutor(2) as threads,
        # Spawned, not forked: JAX is multithreaded.
        ProcessPoolExecutor(2, mp_context=get_context("spawn")) as processes,
        get_context("spawn").Pool(2) as pool,
    ):
        for parallel in (List(), threads, processes, pool):
            answer = opaque(parallel=parallel).evaluate(points)
            np.testing.assert_array_equal(answer.energy, truth.energy)
            np.testing.assert_array_equal(answer.grad, truth.grad)


def die(theta):
    """End the process, as a library that crashes does."""
    import os

    os._exit(1)


def test_workers_that_die_are_a_reason():
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as processes:
        target = vhmc.from_callable(die, 2, parallel=processes)
        answers = target.evaluate(np.zeros((3, 2)))
    assert all("the workers failed: BrokenProcessPool" in r for r in answers.reason)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"names": ["a"]}, "names are for 1 parameters, dim is 2"),
        ({"names": ["a", "a"]}, "names must be different words"),
        ({"names": "ab"}, "names must be different words"),
        ({"names": {"a": (3,)}}, "names are for 3 parameters, dim is 2"),
        ({"constraints": {"a": vhmc.positive}}, "constraints name no parameter: a"),
        ({"differences": "backward"}, "differences must be one of forward, central"),
        ({"differences": "central", "step": 2.0}, "step must be between 0 and 1"),
        ({"step": 0.1}, "step is for differences"),
        ({"parallel": 8}, "parallel must have a `map`, got 8"),
        ({"parallel": List(), "batch": True}, "give batch or parallel, not both"),
        ({"timeout": 0}, "timeout must be positive, got 0"),
    ],
)
def test_bad_options_get_a_sentence(options, message):
    with pytest.raises(ValueError, match=message):
        vhmc.from_callable(value_and_grad, 2, **options)


@pytest.mark.usefixtures("no_shape_checks")
def test_a_model_that_is_no_function():
    with pytest.raises(ValueError, match="the model must be a function, got 1"):
        vhmc.from_callable(1, 2)

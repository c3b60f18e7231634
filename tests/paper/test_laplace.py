"""The mode and the curvature, their cost, and what can go wrong."""

import jax.numpy as jnp
import numpy as np
import pytest

import vhmc
from vhmc.numerics.gaussian import positive_definite

MEAN = np.array([1.0, -2.0, 3.0])
PRECISION = np.array([[4.0, 0.5, 0.0], [0.5, 1.0, 0.1], [0.0, 0.1, 9.0]])


def log_density(theta):
    return -0.5 * (theta - MEAN) @ PRECISION @ (theta - MEAN)


def opaque(theta):
    return log_density(theta), -PRECISION @ (theta - MEAN)


TARGETS = {
    "from_jax": lambda: vhmc.from_jax(log_density, jnp.zeros(3)),
    "from_callable": lambda: vhmc.from_callable(opaque, 3),
}


@pytest.mark.parametrize(("kind", "hessian"), [("from_jax", 3), ("from_callable", 6)])
def test_a_gaussian_is_found_and_paid_for_once(kind, hessian):
    target = TARGETS[kind]()
    fitted = vhmc.paper.laplace(target, target.start)
    np.testing.assert_allclose(fitted.guide.mean, MEAN, atol=1e-4)
    np.testing.assert_allclose(fitted.guide.precision, PRECISION, rtol=1e-6, atol=1e-6)
    assert fitted.num_hessian == hessian
    assert fitted.num_search + fitted.num_hessian == target.num_evaluations
    assert fitted.warnings == ()


def test_a_saddle_is_repaired_and_reported():
    saddle = np.diag([4.0, -2.0, 0.0])
    repaired, (message,) = positive_definite(saddle)
    np.testing.assert_allclose(np.linalg.eigvalsh(repaired), [4e-10, 2.0, 4.0])
    assert message.startswith(
        "the Hessian at the mode is not positive definite: 2 of 3"
    )


def test_a_plateau_direction_is_reported_by_a_run():
    target = vhmc.from_jax(lambda x: -0.5 * x[0] ** 2 + 0 * x[1], jnp.ones(2))
    fitted = vhmc.paper.laplace(target, target.start)
    assert "1 of 2 curvatures" in fitted.warnings[0]
    assert np.all(np.linalg.eigvalsh(fitted.guide.precision) > 0)


def test_walls_without_a_value_are_survived():
    """The log density is NaN left of zero; the mode is at 1."""
    target = vhmc.from_jax(lambda x: jnp.log(x[0]) - x[0], jnp.array([5.0]))
    fitted = vhmc.paper.laplace(target, target.start)
    np.testing.assert_allclose(fitted.guide.mean, [1.0], atol=1e-3)


@pytest.mark.parametrize(("sd", "offset"), [(1e6, 0.0), (1e-6, 0.0), (1.0, 1e10)])
def test_neither_units_nor_constants_stop_the_search(sd, offset):
    target = vhmc.from_jax(
        lambda x: offset - 0.5 * jnp.sum((x / sd) ** 2), 5 * sd * jnp.ones(2)
    )
    fitted = vhmc.paper.laplace(target, target.start)
    assert np.abs(fitted.guide.mean / sd).max() < 0.01
    assert fitted.warnings == ()


def test_a_search_that_ends_far_from_the_mode_is_reported():
    target = vhmc.from_jax(
        lambda x: -0.5 * jnp.sum((x / jnp.array([1.0, 1e-3])) ** 2), jnp.ones(2)
    )
    fitted = vhmc.paper.laplace(target, target.start, max_evaluations=3)
    assert any("standard deviations from it" in text for text in fitted.warnings)


def test_running_out_of_evaluations_is_reported():
    target = vhmc.from_jax(
        lambda x: -jnp.sum((1 - x[:-1]) ** 2 + 100 * (x[1:] - x[:-1] ** 2) ** 2),
        -jnp.ones(4),
    )
    fitted = vhmc.paper.laplace(target, target.start, max_evaluations=5)
    assert "stopped early" in fitted.warnings[0]


@pytest.mark.parametrize(
    "broken", [lambda x: jnp.log(-jnp.sum(x**2)), lambda x: jnp.sum(jnp.sqrt(x))]
)
def test_a_start_without_a_value_or_a_gradient_is_refused(broken):
    target = vhmc.from_jax(broken, jnp.zeros(2))
    with pytest.raises(ValueError, match="must be finite at the start"):
        vhmc.paper.laplace(target, target.start)
    assert target.num_evaluations == 1


def test_a_flat_density_is_refused():
    target = vhmc.from_jax(lambda x: 0 * jnp.sum(x), jnp.zeros(2))
    with pytest.raises(ValueError, match="flat at the mode"):
        vhmc.paper.laplace(target, target.start)

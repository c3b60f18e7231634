"""The search: descents in step, and a first Gaussian at their best end."""

import jax.numpy as jnp
import numpy as np
import pytest

from tests.densities import Density
from vhmc.sampler.descents import Descent, Pool, descend, is_copy
from vhmc.sampler.first_gaussian import path_layer
from vhmc.sampler.locate import locate
from vhmc.sampler.race import is_finished
from vhmc.sampler.starts import begun


def gaussian(mean, precision):
    return Density(lambda t: -0.5 * (t - mean) @ precision @ (t - mean))


PRECISION = np.array([[4.0, 1.0, 0.5], [1.0, 2.0, 0.3], [0.5, 0.3, 1.0]])


def search(density):
    return lambda thetas: density(thetas, "search")


def test_descents_in_step_find_the_minimum():
    density = gaussian(np.ones(3), PRECISION)
    descents = [Descent(start) for start in (np.zeros(3), 4 * np.ones(3))]
    batches = []

    def evaluate(thetas):
        batches.append(len(thetas))
        return density(thetas, "search")

    descend(descents, evaluate, 60, lambda descent: False)
    for descent in descents:
        np.testing.assert_allclose(descent.theta, 1.0, atol=1e-4)
    assert max(batches) == 2, "the model is evaluated in batches"


def test_a_descent_is_paused_where_its_allowance_ends_and_goes_on_from_there():
    density = gaussian(np.ones(3), PRECISION)
    paused = Descent(np.full(3, 30.0))
    descend([paused], search(density), 3, lambda descent: False)
    assert paused.num_asked == 3 and not paused.is_done
    before = paused.energy
    descend([paused], search(density), 60, lambda descent: False)
    assert paused.energy < before
    np.testing.assert_allclose(paused.theta, 1.0, atol=1e-4)


def test_a_descent_that_still_falls_is_not_finished():
    falling = Density(lambda t: t[0] - 0.5 * t[1] ** 2)
    descent = Descent(np.zeros(2))
    descend([descent], search(falling), 20, is_finished)
    assert not is_finished(descent)
    resting = Descent(np.full(3, 5.0))
    descend([resting], search(gaussian(np.ones(3), PRECISION)), 60, is_finished)
    assert is_finished(resting) or resting.is_done


def test_descents_learn_from_each_other():
    """Six starts in five dimensions determine the Hessian of a Gaussian."""
    rng = np.random.default_rng(0)
    axes, _ = np.linalg.qr(rng.standard_normal((5, 5)))
    density = gaussian(np.ones(5), (axes * np.geomspace(1, 1e5, 5)) @ axes.T)
    pool = Pool()
    descents = [Descent(start, pool) for start in rng.standard_normal((6, 5))]
    descend(descents, search(density), 3, lambda descent: False)
    lowest = min(descents, key=lambda descent: descent.energy)
    np.testing.assert_allclose(lowest.theta, 1.0, atol=1e-3)


@pytest.mark.parametrize("units", [1e-6, 1e6])
def test_units_do_not_matter(units):
    scales = np.array([1.0, units, 1 / units])
    precision = PRECISION / np.outer(scales, scales)
    density = gaussian(3 * scales, precision)
    located = locate(np.random.default_rng(0), density, np.zeros(3), 120)
    whitened = np.linalg.cholesky(precision).T @ (located.layer.mean - 3 * scales)
    assert np.linalg.norm(whitened) < 0.2
    assert located.modes.arrived[np.argmin(located.modes.energies)]


def test_starts_without_an_energy_are_moved_to_where_there_is_one():
    inside = Density(
        lambda t: jnp.where(
            jnp.max(jnp.abs(t)) < 0.1, -0.5 * jnp.sum((t / 0.02) ** 2), -jnp.inf
        )
    )
    rng = np.random.default_rng(0)
    places = [np.zeros(2), np.ones(2), np.array([2.0, -1.0])]
    descents = begun(rng, np.zeros(2), places, Pool(), search(inside), 20)
    assert len(descents) == 3


def test_an_unfinished_descent_has_not_arrived():
    density = gaussian(np.full(3, 300.0), PRECISION)
    located = locate(np.random.default_rng(0), density, np.zeros(3), 3)
    assert not located.modes.arrived.any()


def test_a_descent_next_to_a_lower_one_ends():
    density = gaussian(np.zeros(3), PRECISION)
    pool = Pool()
    near, nearer = Descent(np.full(3, 5.01), pool), Descent(np.full(3, 5.0), pool)
    descend([near, nearer], search(density), 1, lambda descent: False)
    assert is_copy(near, [near, nearer]) and not is_copy(nearer, [near, nearer])


def test_a_far_start_and_walls_are_survived():
    """Energies are infinite beyond 60: line searches bounce off."""

    def log_density(theta):
        value = -0.5 * jnp.sum((theta - 50) ** 2)
        return jnp.where(jnp.all(theta < 60), value, -jnp.inf)

    density = Density(log_density)
    rng, origin = np.random.default_rng(0), np.full(2, -1000.0)
    located = locate(rng, density, origin, 200, density.hessian)
    np.testing.assert_allclose(located.layer.mean, 50.0, atol=0.5)
    assert located.modes.has_mode
    assert density.counts["search"] <= 200


def test_a_density_without_a_mode_is_noticed():
    """Energy falls for ever along the first coordinate."""
    density = Density(lambda theta: theta[0] - 0.5 * theta[1] ** 2)
    rng = np.random.default_rng(0)
    located = locate(rng, density, np.zeros(2), 100, density.hessian)
    assert not located.modes.has_mode


def test_two_modes_are_both_found():
    density = Density(
        lambda t: jnp.logaddexp(
            -0.5 * jnp.sum((t - 6) ** 2), -0.5 * jnp.sum((t + 6) ** 2)
        )
    )
    rng = np.random.default_rng(0)
    located = locate(rng, density, np.full(2, 5.0), 320, density.hessian)
    for mode in (6.0, -6.0):
        assert np.abs(located.modes.ends - mode).max(axis=1).min() < 0.1


def test_a_start_without_an_energy_is_refused_with_a_reason():
    density = Density(lambda theta: -jnp.inf * jnp.sum(theta**2 + 1))
    with pytest.raises(ValueError, match=r"not finite at the start .* -inf"):
        locate(np.random.default_rng(0), density, np.zeros(2), 60)


def test_without_a_hessian_the_descents_own_curvature_serves():
    density = gaussian(np.ones(3), PRECISION)
    located = locate(np.random.default_rng(0), density, np.zeros(3), 120)
    covariance = located.layer.factor @ located.layer.factor.T
    np.testing.assert_allclose(covariance, np.linalg.inv(PRECISION), atol=0.1)
    assert len(located.others) > 2


def test_a_path_of_one_point_gives_unit_curvature():
    descent = Descent(np.zeros(2))
    descent.tell(1.0, np.ones(2))
    np.testing.assert_array_equal(path_layer(descent.path).factor, np.eye(2))

"""The race of descents: steps that walls bound, and ends that are no modes."""

import jax.numpy as jnp
import numpy as np

from tests.densities import Density
from vhmc.sampler.descents import Descent, Evaluated, Pool, descend
from vhmc.sampler.locate import locate
from vhmc.sampler.race import has_arrived, height, is_finished, race


def search(density):
    return lambda thetas: density(thetas, "search")


def test_an_exponential_energy_is_left_in_few_steps():
    """From 1e40; a step of Newton's method takes one off the logarithm, 92 in all."""
    density = Density(lambda t: -jnp.sum(jnp.exp(t) + jnp.exp(-t)))
    descent = Descent(np.array([92.0, 90.0]))
    descend([descent], search(density), 60, is_finished)
    assert np.abs(descent.theta).max() < 0.3


def test_a_step_far_too_long_is_cut_faster_each_time():
    """The slope of a logistic energy is constant far away: no curvature is seen."""

    def log_density(t):
        return -jnp.logaddexp(0.0, 1e4 * t[0]) + 0.3e4 * t[0] - 0.5 * t[0] ** 2

    descent = Descent(np.array([5.0]))
    descend([descent], search(Density(log_density)), 40, is_finished)
    assert abs(descent.theta[0]) < 1e-2


def test_points_of_another_basin_tell_nothing():
    pool = Pool()
    for place in (-3.1, -2.9):
        pool.add(Evaluated(np.array([place]), 0.0, np.array([place + 3.0])), owner=1)
    at = Evaluated(np.array([2.0]), 5.0, np.array([-10.0]))
    assert pool.curvature(at, owner=2).num_pairs == 0
    # A parabola of curvature two counts, whosoever point it is.
    pool.add(Evaluated(np.array([1.0]), 16.0, np.array([-12.0])), owner=1)
    found = pool.curvature(at, owner=2)
    assert found.num_pairs == 1
    np.testing.assert_allclose(found.times(np.array([1.0])), [0.5])


def test_where_energies_are_noise_a_descent_is_given_up():
    rng = np.random.default_rng(0)

    def evaluate(thetas):
        answer = Density(lambda t: -0.5 * jnp.sum(t**2))(thetas, "search")
        return answer._replace(energy=answer.energy + 1e4 * rng.standard_normal(1))

    descent = Descent(np.full(2, 3.0))
    descend([descent], evaluate, 60, lambda descent: False)
    assert descent.is_rough and descent.is_done
    assert height(descent) == np.inf


def test_a_mode_is_preferred_to_an_energy_that_falls_out_of_sight():
    """A Gaussian at zero; beyond twenty the density grows without bound."""

    def log_density(t):
        return -0.5 * jnp.sum(t**2) + jnp.exp(5 * (t[0] - 20)) - jnp.exp(-100.0)

    density = Density(log_density)
    pool = Pool()
    descents = [Descent(np.array([start, 1.0]), pool) for start in (24.0, 3.0)]
    left = [80]

    def counted(thetas):
        left[0] -= len(thetas)
        return density(thetas, "search")

    race(descents, counted, 10, lambda: left[0])
    best = min(descents, key=height)
    assert has_arrived(best) and np.abs(best.theta).max() < 0.1
    assert descents[0].energy < 0 and height(descents[0]) == np.inf


def test_the_lowest_descent_goes_on_alone():
    density = Density(lambda t: -0.5 * jnp.sum((t / np.array([1.0, 1e3])) ** 4))
    descents = [Descent(np.full(2, start)) for start in (50.0, 60.0, 70.0)]
    left = [40]

    def counted(thetas):
        left[0] -= len(thetas)
        return density(thetas, "search")

    race(descents, counted, 5, lambda: left[0])
    assert left[0] >= 0
    assert max(descents, key=lambda one: one.num_asked) is min(descents, key=height)


def test_more_is_spent_only_where_no_descent_has_arrived():
    easy = Density(lambda t: -0.5 * jnp.sum(t**2))
    rng = np.random.default_rng(0)
    locate(rng, easy, np.ones(3), 60, easy.hessian, price=3, spare=40)
    assert easy.counts["search"] <= 60

    def log_density(t):
        valley = jnp.sum((t[1:] - t[:-1] ** 2) ** 2) / 1e-3
        return -0.5 * (valley + jnp.sum((t - 1) ** 2))

    hard = Density(log_density)
    locate(rng, hard, np.full(4, -3.0), 12, hard.hessian, price=4, spare=40)
    assert 12 < hard.counts["search"] <= 52

"""Separate modes: found, weighed, named; copies under relabelling; mass outside."""

import re

import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.special import logsumexp

import vhmc
from tests.chance import LIMIT
from vhmc.models.parameters import Parameters
from vhmc.numerics.constraints import positive, simplex
from vhmc.sampler.modes.copies import Labels, copies_among, label_sets, matched_draws
from vhmc.sampler.modes.look import is_apart
from vhmc.sampler.plan import plan
from vhmc.surrogate.mixture import Mixture
from vhmc.surrogate.moves import Pace
from vhmc.surrogate.residual import Guard, ZeroResidual
from vhmc.surrogate.surrogate import Surrogate
from vhmc.transport.affine import Affine
from vhmc.transport.transport_map import TransportMap


@pytest.fixture
def rng(seed):
    return np.random.default_rng(seed)


def mixture_target(means, sds, weights):
    """Normals in as many dimensions as the rows of their means have entries."""
    means, sds, weights = (jnp.asarray(part) for part in (means, sds, weights))

    def log_density(theta):
        z = (theta - means) / sds[:, None]
        squares = jnp.sum(z**2, axis=1)
        size = means.shape[1] * jnp.log(sds * jnp.sqrt(2 * jnp.pi))
        return logsumexp(jnp.log(weights) - 0.5 * squares - size)

    return vhmc.from_jax(log_density, np.zeros(means.shape[1]))


def surrogate(mean, sd):
    dim = len(mean)
    transport = TransportMap((Affine(np.asarray(mean, float), sd * np.eye(dim)),))
    return Surrogate(transport, ZeroResidual(), Guard(np.inf, 3.0))


def test_a_place_in_the_known_mode_is_not_apart_from_it():
    """In latent coordinates, volume counted, nothing rises on the way; else it does."""
    target = mixture_target(np.array([[0.0, 0.0], [9.0, 0.0]]), [1.0, 1.0], [0.5, 0.5])

    def evaluate(theta, phase):
        return target.evaluate(theta)

    known = surrogate([0.0, 0.0], 1.0).transport
    for place, is_other in (([2.5, 1.0], False), ([9.0, 0.0], True)):
        theta = np.array(place)
        energy = target.evaluate(theta[None]).energy[0]
        assert is_apart(evaluate, known, theta, energy) == is_other


def two_parts(apart=3.0):
    """A wide and a narrow normal that overlap, with exact normalising constants."""
    parts = surrogate([0.0, 0.0], 1.0), surrogate([apart, 0.0], 0.5)
    constants = np.full(2, np.log(2 * np.pi))
    return Mixture(parts, np.log([0.6, 0.4]), constants, np.zeros(2))


def test_a_mixture_is_normalised():
    line = np.linspace(-8, 10, 400)
    grid = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
    mass = np.exp(-two_parts().energies(grid)).sum() * (line[1] - line[0]) ** 2
    np.testing.assert_allclose(mass, 1.0, rtol=1e-6)


@pytest.mark.parametrize("apart", [3.0, 40.0])
def test_walks_keep_the_law_of_a_mixture(rng, apart):
    """Begun from the law, the share of a part and its mean stay; five errors."""
    mixture = two_parts(apart)
    number = 4000
    labels = rng.uniform(size=number) < 0.4
    z = rng.standard_normal((number, 2))
    theta = np.where(labels[:, None], np.array([apart, 0.0]) + 0.5 * z, z)
    moved = mixture.walk(rng, theta, Pace(0.5, 3))
    share = np.exp(mixture.log_masses)
    for values in (mixture.responsibilities(moved)[:, 1], moved[:, 0]):
        truth = share[1] if values.max() <= 1 else 0.4 * apart
        error = values.std() / np.sqrt(number)
        assert abs(values.mean() - truth) < LIMIT * error
    # They do jump: every label is drawn anew, so that many have changed.
    assert np.mean(mixture.labels(moved) != mixture.labels(theta)) > 0.2


def test_two_modes_have_their_masses():
    target = mixture_target([[0.0, 0.0], [10.0, 0.0]], [1.0, 1.0], [0.7, 0.3])
    posterior = vhmc.sample(target, 1200, seed=0)
    assert posterior.verdict.status == "good"
    first, second = posterior.modes
    assert abs(first.mass - 0.7) < LIMIT * first.error + 1e-3
    assert abs(second.center[0] - 10.0) < 0.5
    assert first.copy_of is second.copy_of is None
    share = np.mean(posterior.unconstrained[..., 0] > 5)
    assert abs(share - 0.3) < LIMIT * np.sqrt(0.21 / 2000)
    # The evidence is that of both; each part alone would be off by a third and more.
    assert abs(posterior.log_evidence.value) < LIMIT * posterior.log_evidence.error


def test_exact_draws_are_in_both_modes():
    target = mixture_target([[0.0, 0.0], [10.0, 0.0]], [1.0, 1.0], [0.5, 0.5])
    posterior = vhmc.sample(target, 1500, seed=1, correction="exact")
    share = np.mean(posterior.unconstrained[..., 0] > 5)
    assert 0.25 < share < 0.75
    assert posterior.verdict.exact_statistics.exact_acceptance > 0.8


def test_a_slab_around_a_spike_is_sampled():
    """Half of the mass in a normal twenty times as wide: no descent ends in it."""
    target = mixture_target(np.zeros((2, 3)), [1.0, 20.0], [0.5, 0.5])
    posterior = vhmc.sample(target, 1500, seed=0)
    sd = np.sqrt(0.5 * (1 + 400))
    assert posterior.verdict.status == "good"
    assert abs(posterior.unconstrained[..., 0].std() / sd - 1) < 0.1


def test_mass_outside_is_a_reason_where_no_budget_is_left():
    target = mixture_target(np.zeros((2, 3)), [1.0, 100.0], [0.5, 0.5])
    with pytest.warns(UserWarning, match="verdict bad"):
        posterior = vhmc.sample(target, 420, seed=0)
    assert posterior.verdict.statistics.mass_outside > 0.1
    assert posterior.verdict.notes[-1].endswith("the draws leave out what was found")


def test_a_look_costs_little_where_there_is_nothing():
    target = vhmc.from_jax(lambda x: -0.5 * jnp.sum(x**2), np.ones(4))
    posterior = vhmc.sample(target, 1000, seed=0)
    assert len(posterior.modes) == 1
    assert posterior.modes[0].mass == 1.0
    assert 0 < posterior.costs["look"] <= plan(target, 1000).look
    assert posterior.verdict.statistics.missed_modes == 0
    # The note has the numbers of this run.
    (note,) = posterior.verdict.notes
    log = posterior.evaluation_log
    looked = log.theta[log.phase == "look"]
    words = re.search(r"at (\d+) points up to (\d+) sds .* (\d+) evaluations", note)
    number, far, spent = map(int, words.groups())
    assert number <= spent == len(looked) == posterior.costs["look"]
    # A standard normal: its sds are one, up to those of the map.
    farthest = np.sqrt(np.mean(looked**2, axis=1)).max()
    assert abs(far / farthest - 1) < 0.3
    assert note.endswith("none was found")
    assert note in str(posterior.verdict)


def two_components(y):
    def log_density(p):
        z = y[:, None] - p["location"]
        parts = -0.5 * z**2 + jnp.log(p["weight"])
        prior = -0.5 * jnp.sum((p["location"] / 10) ** 2) + jnp.sum(
            jnp.log(p["weight"])
        )
        return prior + jnp.sum(logsumexp(parts, axis=1))

    init = {"location": np.array([-1.0, 1.0]), "weight": np.full(2, 0.5)}
    return vhmc.from_jax(log_density, init, {"weight": simplex})


def test_copies_under_relabelling_are_found_and_matched():
    y = np.concatenate([np.linspace(-5, -3, 30), np.linspace(3, 5, 20)])
    posterior = vhmc.sample(two_components(y), 1500, seed=0)
    assert [mode.copy_of for mode in posterior.modes] == [None, 0]
    assert abs(posterior.modes[0].mass - 0.5) < 0.05
    drawn = posterior.draws["location"][..., 0]
    assert 0.3 < np.mean(drawn > 0) < 0.7
    one = posterior.relabelled()
    assert np.ptp(np.sign(one["location"][..., 0])) == 0
    # Weights go with their locations: the larger one belongs to the lower location.
    low = np.argmin(one["location"].mean(axis=(0, 1)))
    assert abs(one["weight"][..., low].mean() - 32 / 54) < 0.05


LABELS = Labels(3, {"a": 1, "b": 2})


def labelled(rng):
    return {"a": rng.standard_normal(3), "b": rng.standard_normal((3, 2))}


def test_matching_undoes_an_order(rng):
    values = labelled(rng)
    moved = LABELS.reordered(values, [2, 0, 1])
    order = LABELS.matched(moved, values)
    back = LABELS.reordered(moved, order)
    for name, value in values.items():
        np.testing.assert_array_equal(back[name], value)
    assert order != [0, 1, 2]


def test_label_sets_are_axes_of_one_length():
    init = {"a": np.zeros(3), "b": np.ones((3, 2)), "c": 0.0, "d": np.zeros(5)}
    space = Parameters(init, {"b": positive})
    assert label_sets(space) == [Labels(2, {"b": 1}), Labels(3, {"a": 1, "b": 2})]


def test_only_what_is_apart_is_a_copy(rng):
    """The same point is none, nor is one with other values."""
    space = Parameters({"a": np.zeros(2)}, {})
    centres = np.array([[-4.0, 4.0], [4.0, -4.0], [-4.1, 4.0], [0.0, 9.0]])
    draws = rng.standard_normal((100, 2))
    assert copies_among(space, centres, draws) == [None, 0, None, None]


def test_a_single_number_has_no_labels(rng):
    space = Parameters({"x": 0.0}, {})
    centres = np.array([[-4.0], [4.0]])
    assert copies_among(space, centres, rng.standard_normal((100, 1))) == [None, None]


def test_matched_draws_keep_their_values(rng):
    space = Parameters({"a": np.zeros(2)}, {})
    values = {"a": rng.standard_normal((2, 50, 2)) + np.array([-5.0, 5.0])}
    values["a"][0, :20] = values["a"][0, :20, ::-1]
    moved = matched_draws(space, values, np.array([-5.0, 5.0]))["a"]
    assert (moved[..., 0] < moved[..., 1]).all()
    np.testing.assert_array_equal(np.sort(moved, axis=-1), np.sort(values["a"], -1))

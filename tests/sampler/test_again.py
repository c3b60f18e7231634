"""Search again where the first fit is hopeless, and only there."""

import jax.numpy as jnp
import numpy as np
import pytest

import vhmc
from tests.densities import Density
from vhmc.sampler.again import (
    SHARE_LEFT,
    heaviest,
    is_affordable,
    is_astray,
    is_lost,
    joined,
    places_around,
    planned,
)
from vhmc.sampler.first_map import Finder, FirstMap, no_modes
from vhmc.sampler.locate import Modes, locate
from vhmc.sampler.plan import share_out
from vhmc.sampler.rounds import RoundReport
from vhmc.surrogate.training_set import training_set
from vhmc.transport.affine import Affine
from vhmc.transport.transport_map import TransportMap

DIM = 3
UNIT = TransportMap((Affine(np.zeros(DIM), np.eye(DIM)),))


def remarks(posterior):
    """Notes on the search; the last one says how far was looked."""
    return posterior.verdict.notes[:-1]


def normal(scale=1.0):
    return Density(lambda t: -0.5 * jnp.sum((t / scale) ** 2))


def ends(*energies, held=()):
    number = len(energies)
    place = np.zeros((number, DIM))
    arrived = np.ones(number, dtype=bool)
    return Modes(place, np.array(energies), place, arrived, True, held)


def warmed(density, number=48):
    rng = np.random.default_rng(0)
    density(rng.standard_normal((number, DIM)), "warm-up")
    return density


def report(acceptance, score_error):
    return RoundReport(0, acceptance, acceptance, 0.0, 0.9, score_error)


def test_a_map_that_fits_is_not_astray():
    log = warmed(normal()).log
    assert not is_astray(log, UNIT, ends(0.0))


def test_the_centre_of_a_right_map_is_no_lower_point_elsewhere():
    """In 60 dimensions all draws are some 20 nats above it or more."""
    dim = 60
    density = Density(lambda t: -0.5 * jnp.sum(t**2))
    unit = TransportMap((Affine(np.zeros(dim), np.eye(dim)),))
    density(np.random.default_rng(0).standard_normal((48, dim)), "warm-up")
    no_ends = Modes(*np.zeros((3, 0, dim)), np.zeros(0, dtype=bool), True, ())
    no_ends = no_ends._replace(energies=np.zeros(0))
    density(np.zeros((1, dim)), "look")
    assert not is_astray(density.log, unit, no_ends)
    # Twice as wide: its centre is where the density's is, but far too low for it.
    wide = TransportMap((Affine(np.zeros(dim), 2 * np.eye(dim)),))
    other = Density(lambda t: -0.5 * jnp.sum(t**2) + 60 * (jnp.sum(t**2) < 1))
    other(2 * np.random.default_rng(0).standard_normal((48, dim)), "warm-up")
    other(np.zeros((1, dim)), "look")
    assert is_astray(other.log, wide, no_ends)


def test_a_map_whose_weights_spread_by_thousands_of_nats_is_astray():
    assert is_astray(warmed(normal(scale=0.01)).log, UNIT, ends(0.0))
    # Badly scaled is not hopeless: warm-up and training see to that.
    assert not is_astray(warmed(normal(scale=0.2)).log, UNIT, ends(0.0))


def test_draws_of_other_maps_say_nothing_of_this_one():
    density = warmed(normal())
    density(50.0 * np.random.default_rng(1).standard_normal((48, DIM)), "warm-up")
    assert not is_astray(density.log, UNIT, ends(0.0))


def test_an_energy_that_fell_on_after_all_descents_leads_astray():
    log = warmed(normal()).log
    assert is_astray(log, UNIT, ends(5000.0, 7000.0))
    assert not is_astray(log, UNIT, ends(5000.0, held=(0,)))
    assert not is_astray(log, UNIT, no_modes(DIM))


def test_a_lower_place_elsewhere_leads_astray():
    far = np.full(DIM, 20.0)

    def log_density(t):
        here, there = -0.5 * jnp.sum(t**2), 30.0 - 0.5 * jnp.sum((t - far) ** 2)
        return jnp.logaddexp(here, there)

    density = warmed(Density(log_density))
    assert not is_astray(density.log, UNIT, ends(0.0))
    density(far[None], "look")
    assert is_astray(density.log, UNIT, ends(0.0))


def test_a_low_place_that_was_known_before_does_not():
    """As the neck of a funnel, which the warm-up has passed by."""

    def log_density(t):
        here, neck = -0.5 * jnp.sum(t**2), 30.0 - 0.5 * jnp.sum((t - 20.0) ** 2)
        return jnp.logaddexp(here, neck)

    density = warmed(Density(log_density))
    density(np.full((1, DIM), 20.0), "search")
    density(np.full((1, DIM), 20.1), "look")
    assert not is_astray(density.log, UNIT, ends(-30.0))


def test_a_neck_that_the_map_knows_is_no_lower_place():
    """Its energy falls as its volume does: in latent coordinates it is level."""
    narrow = TransportMap((Affine(np.zeros(DIM), 1e-4 * np.eye(DIM)),))
    rng = np.random.default_rng(0)
    density = normal(scale=1e-4)
    density(1e-4 * rng.standard_normal((48, DIM)), "warm-up")
    density(np.full((1, DIM), 2e-4), "look")
    assert not is_astray(density.log, narrow, ends(0.0))


@pytest.mark.parametrize(
    ("acceptance", "score_error", "lost"),
    [(0.1, 5.0, True), (0.1, 0.5, False), (0.8, 5.0, False), (0.95, 0.01, False)],
)
def test_training_is_lost_where_nothing_is_accepted_and_no_gradient_known(
    acceptance, score_error, lost
):
    assert is_lost([report(acceptance, score_error)] * 4) is lost
    assert not is_lost([report(acceptance, score_error)] * 3)
    good = [report(0.9, 0.01)] * 3
    assert not is_lost([report(acceptance, score_error), *good])


def test_another_search_needs_enough_of_the_budget():
    plan = share_out(1000, 10, 0.0)
    assert is_affordable(plan, int(SHARE_LEFT * 1000))
    assert not is_affordable(plan, int(SHARE_LEFT * 1000) - 1)


@pytest.mark.parametrize("left", [350, 500, 800])
@pytest.mark.parametrize("correction", [0.0, 0.2])
@pytest.mark.parametrize("look", [0, 100])
def test_the_new_plan_shares_out_what_is_left(left, correction, look):
    plan = share_out(1000, 10, correction)._replace(look=look)
    new = planned(plan, left)
    assert new.total == left
    assert new.correction == plan.correction and new.look <= look
    assert min(new) >= 0


def test_the_other_starts_are_not_in_the_mode_that_is_known():
    density = warmed(normal())
    far = np.array([[30.0, 0, 0], [30.5, 0, 0], [0, 40.0, 0], [0, 0, 50.0]])
    density(far, "look")
    rng, origin = np.random.default_rng(0), np.full(DIM, 100.0)
    places = places_around(rng, density.log, UNIT, origin)
    np.testing.assert_array_equal(places[:2], far[[0, 2]])
    assert len(places) == 8
    assert all(np.isfinite(place).all() for place in places)
    # In the map's own units, whatever they are.
    wide = TransportMap((Affine(np.zeros(DIM), 1e6 * np.eye(DIM)),))
    reach = [
        np.linalg.norm(place) for place in places_around(rng, density.log, wide, origin)
    ]
    assert max(reach) > 1e7


def test_the_heavier_map_stays():
    far = np.full(DIM, 20.0)
    there = TransportMap((Affine(far, np.eye(DIM)),))
    rng = np.random.default_rng(1)

    def log_of(gain):
        def log_density(t):
            here, other = -0.5 * jnp.sum(t**2), gain - 0.5 * jnp.sum((t - far) ** 2)
            return jnp.logaddexp(here, other)

        density = warmed(Density(log_density))
        density(far + rng.standard_normal((48, DIM)), "warm-up")
        return density.log

    assert heaviest(log_of(30.0), [UNIT], there) == [there]
    assert heaviest(log_of(-30.0), [UNIT], there) == [UNIT]
    assert heaviest(log_of(1.0), [UNIT], there) == [there, UNIT]
    assert heaviest(log_of(0.0), [UNIT], UNIT) == [UNIT]


def test_ends_of_both_searches_are_known():
    both = joined(ends(1.0, 2.0), ends(0.0))
    np.testing.assert_array_equal(both.energies, [1.0, 2.0, 0.0])
    assert len(both.ends) == len(both.grads) == len(both.arrived) == 3


def test_given_starts_take_the_place_of_others():
    asked = []
    density = normal()

    def evaluate(thetas, phase):
        asked.append(thetas)
        return density(thetas, phase)

    given = [np.full(DIM, 7.0), np.full(DIM, -9.0)]
    rng = np.random.default_rng(0)
    locate(rng, evaluate, np.zeros(DIM), 60, places=given)
    np.testing.assert_array_equal(asked[0], given)


def test_points_left_behind_teach_nothing():
    log = warmed(normal()).log
    phase = log.phase.astype(object)
    phase[:10] = "left behind"
    found = training_set(log._replace(phase=phase), UNIT)
    assert not found.weight[:10].any() and found.weight[10:].all()
    assert not found.is_typical[:10].any()


FAR = np.full(DIM, 30.0)


def two_places(theta):
    """A mode next to zero, and another far away with all the mass."""
    near, far = -0.5 * jnp.sum(theta**2), 40.0 - 0.5 * jnp.sum((theta - FAR) ** 2)
    return jnp.logaddexp(near, far)


def in_the_wrong_place(finder, old):
    """What a first search finds that ends next to zero; one point tells of another."""
    evaluator = finder._evaluator
    white = np.random.default_rng(0).standard_normal((48, DIM))
    evaluator.evaluate(white, "warm-up")
    evaluator.evaluate(FAR[None] - 3.0, "look")
    return FirstMap(UNIT, ends(0.0))


def test_a_run_in_the_wrong_place_searches_again_and_says_so(monkeypatch):
    monkeypatch.setattr(Finder, "find", in_the_wrong_place)
    target = vhmc.from_jax(two_places, np.zeros(DIM))
    posterior = vhmc.sample(target, 600, seed=0, progress=False)
    draws = posterior.unconstrained.reshape(-1, DIM)
    np.testing.assert_allclose(draws.mean(axis=0), FAR, atol=0.2)
    assert posterior.verdict.status == "good"
    (note,) = remarks(posterior)
    assert "searched for anew after" in note
    assert posterior.num_evaluations <= 600
    log = posterior.evaluation_log
    assert len(log.energy) <= posterior.num_evaluations
    assert np.sum(log.phase == "left behind") >= 48


def test_a_map_that_was_right_stays(monkeypatch):
    asked = []

    def always(*_):
        asked.append(True)
        return True

    monkeypatch.setattr("vhmc.sampler.run.is_astray", always)
    target = vhmc.from_jax(lambda t: -0.5 * jnp.sum(t**2), np.ones(DIM))
    posterior = vhmc.sample(target, 600, seed=0, progress=False)
    assert asked == [True]
    draws = posterior.unconstrained.reshape(-1, DIM)
    np.testing.assert_allclose(draws.mean(axis=0), 0.0, atol=0.2)
    assert posterior.verdict.status == "good" and len(remarks(posterior)) == 1


def test_training_that_is_lost_is_followed_by_one_more_search(monkeypatch):
    monkeypatch.setattr("vhmc.sampler.run.is_lost", lambda reports: len(reports) > 2)
    target = vhmc.from_jax(lambda t: -0.5 * jnp.sum(t**2), np.ones(DIM))
    posterior = vhmc.sample(target, 1000, seed=0, progress=False)
    (note,) = remarks(posterior)
    assert "searched for anew after" in note
    assert posterior.verdict.status == "good" and posterior.num_evaluations <= 1000


def test_a_run_that_searched_again_is_resumed_alike(monkeypatch, tmp_path):
    monkeypatch.setattr(Finder, "find", in_the_wrong_place)
    target = vhmc.from_jax(two_places, np.zeros(DIM))
    chosen = {"seed": 0, "progress": False, "ledger": tmp_path / "run.vhmc"}
    first = vhmc.sample(target, 300, **chosen)
    before = target.num_evaluations
    again = vhmc.sample(target, 300, **chosen)
    np.testing.assert_array_equal(first.unconstrained, again.unconstrained)
    assert target.num_evaluations <= before + 3  # probes of a resumed run


def test_a_run_in_the_right_place_does_not():
    target = vhmc.from_jax(lambda t: -0.5 * jnp.sum(t**2), np.ones(DIM))
    posterior = vhmc.sample(target, 300, seed=0, progress=False)
    assert not remarks(posterior)

"""NUTS within a budget of gradients: what is a draw, what it costs, where it fails."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import vhmc
from vhmc.lab.baselines import nuts_within as blackjax_within
from vhmc.lab.baselines.nuts import load_blackjax
from vhmc.lab.baselines.short_chain import DEPTH, Path, short_chain
from vhmc.lab.bench import rivals
from vhmc.lab.bench.measure import (
    NEEDS,
    NUTPIE_WITHIN,
    NUTS,
    NUTS_WITHIN,
    Task,
    measure,
)
from vhmc.lab.bench.run import PROBLEMS


@pytest.fixture(params=[NUTS_WITHIN, NUTPIE_WITHIN])
def method(request):
    """Each of the two, if its library is there."""
    try:
        NEEDS[request.param]()
    except ModuleNotFoundError as error:
        pytest.skip(str(error))
    return request.param


def run(method, target, budget, seed=0):
    found = {NUTS_WITHIN: rivals.nuts_within, NUTPIE_WITHIN: rivals.nutpie_within}
    return found[method](target, budget, seed)


def normal_target():
    return vhmc.from_jax(lambda x: -0.5 * jnp.sum(x**2), np.zeros(2))


def steady(price):
    """A walk of numbered points, each of which takes `price` gradients."""
    tried = []

    def walk(target, start, seed, num_warmup, allowed):
        tried.append(num_warmup)
        target.charge(7)  # a walk may count what it likes
        number = num_warmup + allowed
        points = np.repeat(np.arange(number, dtype=float)[:, None], target.dim, axis=1)
        return Path(points, price * (1 + np.arange(number)))

    return walk, tried


@pytest.mark.parametrize(
    ("budget", "price", "tried", "first", "last"),
    [
        (1001, 5, [25, 50, 100, 200], 100, 199),  # 100 steps are 500 of 1,000
        (1000, 5, [25, 50, 100], 50, 198),  # 999 are left after the start
        (101, 1, [25, 50, 100], 50, 99),
        (101, 4, [25], 12, 24),  # the second half of what there is, warm-up or not
        (3, 4, [25], None, None),
    ],
)
def test_the_longest_warmup_that_half_pays_for(budget, price, tried, first, last):
    target = normal_target()
    walk, asked = steady(price)
    found = short_chain(walk, target, 0, budget)
    assert asked == tried
    assert found.num_evaluations == target.num_evaluations == budget
    expected = [] if first is None else np.arange(first, last + 1)
    np.testing.assert_array_equal(found.draws[0, :, 0], expected)


def test_a_model_of_finite_differences_pays_for_each_gradient():
    target = vhmc.from_callable(
        lambda x: -0.5 * x @ x, 2, differences="central", init=np.zeros(2)
    )
    walk, _ = steady(1)
    found = short_chain(walk, target, 0, 51 * target.price)
    assert target.price > 1
    assert found.num_evaluations == target.num_evaluations == 51 * target.price
    assert found.draws[0, 0, 0] == 25 and found.draws[0, -1, 0] == 49


def test_a_rival_keeps_to_its_budget_and_counts_truly(method):
    target = PROBLEMS["banana-2"]().make()
    found = run(method, target, 200)
    assert found.num_evaluations == target.num_evaluations == 200
    assert np.isfinite(found.draws).all()
    assert found.note == f"{len(found.draws)} draws"
    again, other = run(method, target, 200), run(method, target, 200, seed=1)
    np.testing.assert_array_equal(found.draws, again.draws)
    assert not np.array_equal(found.draws[:2], other.draws[:2])


def test_draws_of_a_normal_are_about_right(method):
    """Some hundred draws at least: an error of half an sd is five standard errors."""
    draws = run(method, normal_target(), 2000).draws
    assert len(draws) > 100
    assert np.abs(draws.mean(axis=0)).max() < 0.5
    assert np.abs(draws.std(axis=0) - 1).max() < 0.5


def test_models_that_jax_cannot_trace_are_taken(method):
    target = vhmc.from_callable(lambda x: (-0.5 * float(x @ x), -x), 2)
    found = run(method, target, 100)
    assert found.num_evaluations == target.num_evaluations == 100
    assert len(found.draws) >= 2 and np.isfinite(found.draws).all()


def test_no_finite_density_is_a_failure_in_a_sentence(method):
    target = vhmc.from_jax(lambda x: jnp.log(-jnp.sum(x**2)), np.zeros(2))
    problem = PROBLEMS["banana-2"]()
    row = measure(problem, target, Task(method, 100, 0), is_first=True)
    assert row.note == "failed: no finite start was found"
    assert row.mean_error == row.sd_error == np.inf
    assert row.num_evaluations == target.num_evaluations <= 100


def test_too_few_gradients_are_a_failure_in_a_sentence(method):
    found = run(method, PROBLEMS["student-t-10"]().make(), 2)
    assert found.note == "failed: the budget is too small for two draws"
    assert np.isnan(found.draws).all() and found.num_evaluations <= 2


def test_the_warmup_is_blackjax_own():
    """The same points step for step until rounding differs, which grows."""
    target = PROBLEMS["student-t-10"]().make()
    blackjax, seed, number = load_blackjax(), 3, 25
    path = blackjax_within._walk(target, target.start, seed, number, 800)
    warmup = blackjax.window_adaptation(
        blackjax.nuts, lambda x: -target.energy(x), max_num_doublings=DEPTH
    )
    key = jax.random.split(jax.random.key(seed))[0]
    _, info = warmup.run(key, jnp.asarray(target.start), num_steps=number)
    np.testing.assert_allclose(
        path.points[:12], info.state.position[:12], rtol=1e-6, atol=1e-6
    )
    steps = np.cumsum(info.info.num_integration_steps)
    np.testing.assert_array_equal(path.costs[:12], steps[:12])


def test_a_method_that_cannot_take_a_model_is_not_a_failure():
    problem = PROBLEMS["banana-2"]()
    target = vhmc.from_callable(lambda x: (-0.5 * float(x @ x), -x), 2)
    row = measure(problem, target, Task(NUTS, 0, 0), is_first=True)
    assert np.isnan([row.mean_error, row.sd_error]).all()
    assert row.num_evaluations == 0 and row.note == "NUTS needs a model of JAX"

"""The fitted surrogate on its own: for other samplers, and for the next run."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest

import vhmc
from tests.chance import LIMIT
from vhmc.lab.baselines.nuts import load_blackjax

blackjax = load_blackjax()  # quietly: it imports ArviZ


def skewed_target(shift=0.0):
    """Logarithms of gamma variables with shapes 3 and 5."""
    shapes = jnp.array([3.0, 5.0])

    def log_density(theta):
        return jnp.sum(shapes * (theta - shift) - jnp.exp(theta - shift))

    return vhmc.from_jax(log_density, np.zeros(2))


@pytest.fixture(scope="module")
def posterior():
    return vhmc.sample(skewed_target(), 500, draws=2000, chains=4)


def test_value_and_gradient(posterior):
    theta = np.array([0.5, 1.0])
    value, grad = posterior.surrogate.value_and_grad(theta)
    same = pytest.approx(value, rel=1e-13)  # programs of their own round their own way
    assert float(posterior.surrogate(jnp.asarray(theta))) == same
    assert -float(posterior.surrogate.potential(jnp.asarray(theta))) == same
    moved = [posterior.surrogate.value_and_grad(theta + h)[0] for h in (1e-6, -1e-6)]
    np.testing.assert_allclose((moved[0] - moved[1]) / 2e-6, grad.sum(), rtol=1e-5)


def mean_and_error(draws):
    batches = draws.reshape(50, -1, 2).mean(axis=1)
    return batches.mean(axis=0), batches.std(axis=0, ddof=1) / np.sqrt(50)


def agrees(posterior, draws):
    """Two means, five standard errors of their difference: once in a million."""
    (one, error), (other, other_error) = (
        mean_and_error(sample)
        for sample in (posterior.unconstrained.reshape(-1, 2), draws)
    )
    return (np.abs(one - other) < LIMIT * np.hypot(error, other_error)).all()


@pytest.mark.slow
def test_blackjax_samples_it(posterior):
    nuts = blackjax.nuts(posterior.surrogate, 0.5, np.array([0.4, 0.2]))
    step = jax.jit(nuts.step)

    def advance(state, key):
        state, _ = step(key, state)
        return state, state.position

    state = nuts.init(jnp.array([1.0, 1.5]))
    keys = jax.random.split(jax.random.key(0), 5000)
    _, draws = jax.lax.scan(advance, state, keys)
    assert agrees(posterior, np.asarray(draws))


def test_numpyro_samples_it(posterior):
    kernel = numpyro.infer.NUTS(potential_fn=posterior.surrogate.potential)
    mcmc = numpyro.infer.MCMC(
        kernel, num_warmup=500, num_samples=5000, progress_bar=False
    )
    mcmc.run(jax.random.key(0), init_params=jnp.array([1.0, 1.5]))
    assert agrees(posterior, np.asarray(mcmc.get_samples()))


@pytest.mark.slow
def test_nutpie_samples_it(posterior):
    import nutpie
    from nutpie.compiled_pyfunc import from_pyfunc

    compiled = from_pyfunc(
        2,
        lambda: posterior.surrogate.value_and_grad,
        lambda *seeds: lambda theta: {"theta": theta},
        [np.dtype("float64")],
        [(2,)],
        ["theta"],
    )
    trace = nutpie.sample(
        compiled, draws=500, tune=300, chains=2, cores=1, seed=0, progress_bar=False
    )
    draws = trace["posterior"]["theta"].to_numpy().reshape(-1, 2)
    assert agrees(posterior, draws)


def test_a_warm_start_spends_nothing_on_the_search(posterior):
    """The same data with a little more: the posterior has moved by a third of an sd."""
    target = skewed_target(0.15)
    again = vhmc.sample(target, 500, draws=2000, chains=4, warm_start=posterior)
    cold = vhmc.sample(skewed_target(0.15), 500, draws=2000, chains=4)
    assert "search" not in again.costs
    assert again.costs["warm start"] == 32
    assert again.num_evaluations < cold.num_evaluations
    assert again.verdict.status == "good", again.verdict
    moved = again.unconstrained.mean(axis=(0, 1)) - posterior.unconstrained.mean((0, 1))
    np.testing.assert_allclose(moved, 0.15, atol=0.08)


def test_a_surrogate_that_is_elsewhere_is_not_trusted(posterior):
    target = skewed_target(20.0)
    again = vhmc.sample(
        target, 600, draws=500, chains=4, warm_start=posterior.surrogate
    )
    assert again.costs["search"] > 0
    assert again.costs["warm start"] == 32
    moved = again.unconstrained.mean(axis=(0, 1)) - posterior.unconstrained.mean((0, 1))
    np.testing.assert_allclose(moved, 20.0, atol=0.15)


def test_a_warm_start_of_another_model_is_refused(posterior):
    target = vhmc.from_jax(lambda p: -0.5 * jnp.sum(p["a"] ** 2), {"a": np.zeros(2)})
    with pytest.raises(ValueError, match=r"parameters theta\[2\], this one has a\[2\]"):
        vhmc.sample(target, warm_start=posterior)
    target = vhmc.from_jax(lambda x: -0.5 * jnp.sum(x**2), np.zeros(3))
    with pytest.raises(ValueError, match="warm_start has dimension 2, the model 3"):
        vhmc.sample(target, warm_start=posterior.surrogate)
    assert target.num_evaluations == 0

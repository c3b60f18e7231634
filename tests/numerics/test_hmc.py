"""The one kernel: reversible, volume preserving, exact, and no dearer than it says."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.chance import LIMIT, standard_errors
from vhmc.numerics.bases import additive
from vhmc.numerics.chains import run_chains
from vhmc.numerics.gaussian import gaussian, standard_normal
from vhmc.numerics.hmc import HMC, HMCState, leapfrog
from vhmc.numerics.mass import mass_from_covariance, unit_mass
from vhmc.paper.potentials import Blend, Surrogate

COVARIANCE = jnp.array([[2.0, 0.6, 0.0], [0.6, 1.0, 0.2], [0.0, 0.2, 0.5]])
MASSES = {
    "identity": unit_mass(3),
    "diagonal": mass_from_covariance(jnp.array([2.0, 1.0, 0.5])),
    "dense": mass_from_covariance(COVARIANCE),
}
NETWORK = Surrogate(
    additive(jax.random.key(3), 20, standard_normal(3)),
    jax.random.normal(jax.random.key(4), (20,)),
)
CURVED = Blend(NETWORK, standard_normal(3), jnp.array(0.5))


def start_at(theta):
    return HMCState(theta, *jax.vmap(jax.value_and_grad(CURVED))(theta))


@pytest.mark.parametrize("name", MASSES)
@given(seed=st.integers(0, 2**16), num_steps=st.integers(1, 20))
@settings(deadline=None, max_examples=20)
def test_leapfrog_reverses(name, seed, num_steps):
    key_theta, key_momentum = jax.random.split(jax.random.key(seed))
    theta = jax.random.normal(key_theta, (4, 3))
    momentum = MASSES[name].sample(key_momentum, 4, 3)
    there = RUN(MASSES[name], start_at(theta), momentum, 0.2, num_steps)
    turned = HMCState(there.theta, there.energy, there.grad)
    back = RUN(MASSES[name], turned, -there.momentum, 0.2, num_steps)
    np.testing.assert_allclose(back.theta, theta, atol=1e-11)
    np.testing.assert_allclose(back.momentum, -momentum, atol=1e-11)


RUN = jax.jit(
    lambda m, state, momentum, eps, num: leapfrog(CURVED, m, state, momentum, eps, num)
)


@pytest.mark.parametrize("name", MASSES)
def test_leapfrog_preserves_volume(name):
    def flow(phase):
        theta, momentum = phase[None, :3], phase[None, 3:]
        end = leapfrog(CURVED, MASSES[name], start_at(theta), momentum, 0.3, 7)
        return jnp.concatenate([end.theta[0], end.momentum[0]])

    phase = jax.random.normal(jax.random.key(0), (6,))
    determinant = jnp.linalg.det(jax.jacfwd(flow)(phase))
    np.testing.assert_allclose(determinant, 1.0, rtol=1e-10)


def test_leapfrog_error_falls_with_the_square_of_the_step():
    theta = jax.random.normal(jax.random.key(1), (1, 3))
    momentum = jax.random.normal(jax.random.key(2), (1, 3))
    unit = MASSES["identity"]

    def energy_error(num_steps):
        start = start_at(theta)
        end = leapfrog(CURVED, unit, start, momentum, 1 / num_steps, num_steps)
        after = end.energy + unit.kinetic(end.momentum)
        return abs(float((after - start.energy - unit.kinetic(momentum))[0]))

    assert 3.5 < energy_error(20) / energy_error(40) < 4.5


@pytest.mark.parametrize("name", MASSES)
def test_momenta_have_the_mass_as_covariance(name, seed):
    momenta = np.asarray(MASSES[name].sample(jax.random.key(seed), 50_000, 3))
    inverse = np.asarray(MASSES[name].inverse)
    expected = np.linalg.inv(np.diag(inverse) if inverse.ndim == 1 else inverse)
    pairs = np.einsum("ni,nj->nij", momenta, momenta).reshape(-1, 9)
    assert standard_errors(pairs, expected.ravel()).max() < LIMIT


@pytest.mark.parametrize("name", MASSES)
def test_gaussian_moments(name, seed):
    """Nine comparisons a mass: a false alarm once in some 15,000 runs."""
    mean = jnp.array([1.0, -2.0, 0.5])
    potential = gaussian(mean, jnp.linalg.inv(COVARIANCE))
    kernel = HMC(MASSES[name], 0.4, num_steps=8, jitter=0.5)
    theta = jnp.broadcast_to(mean, (4, 3))
    run = run_chains(jax.random.key(seed), kernel, theta, potential, 25_000, 200)
    draws = np.asarray(run.theta).reshape(-1, 3)
    centred = draws - np.asarray(mean)
    products = np.einsum("ni,nj->nij", centred, centred)[:, *np.triu_indices(3)]
    expected = np.asarray(COVARIANCE)[np.triu_indices(3)]
    assert standard_errors(draws, np.asarray(mean)).max() < LIMIT
    assert standard_errors(products, expected).max() < LIMIT
    assert not run.is_divergent.any()


def counted(potential):
    """A potential that counts the points at which it is evaluated."""
    calls = {"number": 0}

    def count(theta):
        calls["number"] += int(np.prod(theta.shape[:-1], dtype=int))
        return np.zeros(theta.shape[:-1])

    def tick(theta):
        shape = jax.ShapeDtypeStruct((), float)
        return jax.pure_callback(count, shape, theta, vmap_method="expand_dims")

    @jax.custom_vjp
    def call(theta):
        return potential(theta) + tick(theta)

    def forward(theta):
        value, grad = jax.value_and_grad(potential)(theta)
        zero = tick(theta)
        return value + zero, grad + zero

    call.defvjp(forward, lambda grad, cotangent: (cotangent * grad,))
    return call, calls


def test_a_trajectory_costs_one_gradient_a_step_and_one_to_start():
    potential, calls = counted(standard_normal(2))
    kernel = HMC(unit_mass(2), 0.1, num_steps=7)
    run = run_chains(jax.random.key(0), kernel, jnp.zeros((3, 2)), potential, 5)
    jax.block_until_ready(run.theta)
    assert calls["number"] == 3 * (1 + 5 * 7)


@pytest.mark.parametrize(("jitter", "fewest"), [(0.0, 10), (0.5, 5), (1.0, 1)])
def test_jitter_covers_its_range_and_no_more(jitter, fewest):
    kernel = HMC(unit_mass(1), 0.1, num_steps=10, jitter=jitter)
    state = kernel.init(jnp.zeros((1, 1)), standard_normal(1))

    def length(key):
        return kernel.step(key, state, standard_normal(1))[1].num_steps

    lengths = jax.vmap(length)(jax.random.split(jax.random.key(0), 500))
    assert set(np.asarray(lengths).tolist()) == set(range(fewest, 11))


def test_a_wild_trajectory_is_rejected_and_counted_as_divergent():
    kernel = HMC(unit_mass(2), 100.0, num_steps=10)
    theta = jnp.ones((3, 2))
    run = run_chains(jax.random.key(0), kernel, theta, standard_normal(2), 20)
    assert run.is_divergent.all()
    assert np.array_equal(run.theta, np.ones((3, 20, 2)))


def test_a_gradient_that_is_not_finite_is_never_accepted():
    def broken(theta):
        return jnp.where(theta[0] > 0, jnp.sqrt(theta[0] - jnp.abs(theta[0])), 0.0)

    kernel = HMC(unit_mass(1), 0.5, num_steps=3)
    theta = -jnp.ones((5, 1))
    run = run_chains(jax.random.key(0), kernel, theta, broken, 50)
    assert np.isfinite(run.energy).all()
    assert (run.theta <= 0).all()


def test_potential_weights_are_data():
    """A new surrogate of the same shape does not compile the chains again."""
    traces = 0

    def activation(x):
        nonlocal traces
        traces += 1
        return jnp.tanh(x)

    kernel = HMC(unit_mass(3), 0.1)
    counts = []
    for number in range(4):
        key_nodes, key_weights = jax.random.split(jax.random.key(number))
        basis = additive(key_nodes, 5, standard_normal(3), activation=activation)
        weights = jax.random.normal(key_weights, (5,))
        potential = Blend(Surrogate(basis, weights), standard_normal(3), jnp.ones(()))
        run_chains(jax.random.key(0), kernel, jnp.zeros((2, 3)), potential, 10)
        counts.append(traces)
    assert counts[0] > 0
    assert counts[1:] == counts[:1] * 3


def test_every_chain_has_the_temperature_it_was_given():
    """A standard normal at temperature T has variance T, whatever the step size."""
    temperature = jnp.array([1.0, 2.5])
    kernel = HMC(unit_mass(2), 0.7, 4, 0.5, temperature)
    start = jnp.zeros((2, 2))
    chains = run_chains(jax.random.key(0), kernel, start, standard_normal(2), 20_000)
    for draws, warm in zip(np.asarray(chains.theta), temperature, strict=True):
        assert np.all(standard_errors(draws**2, float(warm)) < LIMIT)

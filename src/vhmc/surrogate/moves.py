r"""HMC transitions and trajectories on the surrogate, without evaluating the model.

With a residual they are HMC, compiled once a shape. Without one the surrogate is a
standard normal that the guard keeps in a ball: draws are made outright and trajectories
are rotations, so that nothing is compiled where the transport map suffices.
"""

from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from vhmc._types import Points, Potential, PRNGKey, Scalar
from vhmc.numerics.chain_groups import num_groups, side_by_side
from vhmc.numerics.hmc import HMC, HMCState, leapfrog
from vhmc.numerics.mass import unit_mass
from vhmc.surrogate.residual import Guard, LatentPotential

JITTER = 0.7
"""Fraction of a trajectory's length that is random."""
SHORT_STEP = 0.25
"""One transition in three takes steps shorter by this factor.

Where the surrogate is stiffer than on average, as in the tails of a banana, the usual
step is never accepted, and chains would not enter.
"""
SEGMENT = 250
"""Draws of one run of the compiled program: one shape serves for any number."""

Chains = Float[Array, " n"]


class Pace(NamedTuple):
    """Size and number of leapfrog steps, and transitions from draw to draw."""

    step_size: float
    num_steps: int
    num_transitions: int = 1


class Trajectory(NamedTuple):
    """Ends of one trajectory a chain, and the kinetic energy lost on it."""

    x: Points
    kinetic_drop: Chains


class Walk(NamedTuple):
    """Ends of a number of transitions, and their mean acceptance probability."""

    x: Points
    acceptance: Chains


class Segment(NamedTuple):
    """Consecutive draws of several chains.

    x: latent, shape (chain, draw, dim).
    energy: of the surrogate, shape (chain, draw).
    acceptance: on the surrogate, by chain.
    """

    x: np.ndarray
    energy: np.ndarray
    acceptance: np.ndarray


def single_trajectory(
    rng: np.random.Generator, potential: LatentPotential, x: np.ndarray, pace: Pace
) -> Trajectory:
    """One trajectory a chain, without an accept step: the true energy will decide."""
    if not potential.residual.is_zero:
        return _single_trajectory(_key(rng), x, potential, *pace[:2])
    momentum = rng.standard_normal(x.shape)
    angle = pace.step_size * pace.num_steps * (1 - JITTER * rng.uniform())
    end = np.cos(angle) * x + np.sin(angle) * momentum
    last = np.cos(angle) * momentum - np.sin(angle) * x
    drop = 0.5 * np.sum(momentum**2 - last**2, axis=1)
    return Trajectory(*jax.device_put((end, drop)))


def walk(
    rng: np.random.Generator,
    potential: LatentPotential,
    x: np.ndarray,
    pace: Pace,
    temperature: np.ndarray | None = None,
) -> Walk:
    """`pace.num_transitions` reversible transitions that keep the surrogate's law.

    temperature: of every chain, 1 unless given; hotter chains go where the surrogate's
        energy is high.
    """
    temperature = np.ones(len(x)) if temperature is None else temperature
    if potential.residual.is_zero:
        drawn = independent(rng, potential, temperature, x.shape[1])
        return Walk(*jax.device_put((drawn, np.ones(len(x)))))

    def program(key, x, temperature):
        return _walk(key, x, potential, *pace, temperature)

    return side_by_side(program, _keys(rng, len(x)), x, temperature)


def draw_segment(
    rng: np.random.Generator,
    potential: LatentPotential,
    x: np.ndarray,
    pace: Pace,
    num_draws: int = SEGMENT,
) -> Segment:
    """Draws of every chain, `SEGMENT` of them where chains are needed.

    x: where the chains start, one a row.
    num_draws: of every chain, where draws are independent.
    """
    if potential.residual.is_zero:
        num_chains, dim = x.shape
        ones = np.ones(num_chains * num_draws)
        drawn = independent(rng, potential, ones, dim)
        length = np.linalg.norm(drawn, axis=1)
        energy = 0.5 * length**2 + _on_host(potential.guard).energy(length)
        drawn, energy = (
            rows.reshape(num_chains, num_draws, *rows.shape[1:])
            for rows in (drawn, energy)
        )
        return Segment(drawn, energy, np.ones(num_chains))

    def program(key, x):
        return _draw_segment(key, x, potential, *pace, SEGMENT)

    return Segment(*side_by_side(program, _keys(rng, len(x)), x))


def independent(
    rng: np.random.Generator,
    potential: LatentPotential,
    temperature: np.ndarray,
    dim: int,
) -> np.ndarray:
    """Independent draws of the surrogate without a residual, one for each temperature.

    By rejection: the guard takes next to nothing away from a normal.
    """
    guard = _on_host(potential.guard)
    temperature = np.asarray(temperature, dtype=float)
    x = np.zeros((len(temperature), dim))
    missing = np.arange(len(x))
    while len(missing):
        hot = temperature[missing]
        trial = np.sqrt(hot)[:, None] * rng.standard_normal((len(missing), dim))
        energy = guard.energy(np.linalg.norm(trial, axis=1))
        is_kept = rng.uniform(size=len(missing)) < np.exp(-energy / hot)
        x[missing[is_kept]] = trial[is_kept]
        missing = missing[~is_kept]
    return x


def _on_host(guard: Guard) -> Guard:
    return jax.tree.map(np.asarray, guard)


def _key(rng: np.random.Generator) -> PRNGKey:
    """A key for JAX from the one stream of random numbers that a run has."""
    return jax.random.key(int(rng.integers(2**31)))


def _keys(rng: np.random.Generator, num_chains: int) -> list[PRNGKey]:
    """A key for each group of the chains."""
    return [_key(rng) for _ in range(num_groups(num_chains))]


@jax.jit
def _single_trajectory(
    key: PRNGKey,
    x: Points,
    potential: LatentPotential,
    step_size: Scalar,
    num_steps: Array,
) -> Trajectory:
    num_chains, dim = x.shape
    mass = unit_mass(dim)
    key_momentum, key_length = jax.random.split(key)
    momentum = mass.sample(key_momentum, num_chains, dim)
    fraction = 1 - JITTER * jax.random.uniform(key_length)
    length = jnp.maximum(jnp.ceil(fraction * num_steps), 1).astype(int)
    grad = jax.vmap(jax.grad(potential))(x)
    start = HMCState(x, jnp.zeros(num_chains), grad)
    end = leapfrog(potential, mass, start, momentum, step_size, length)
    return Trajectory(end.theta, mass.kinetic(momentum) - mass.kinetic(end.momentum))


@jax.jit
def _walk(
    key: PRNGKey,
    x: Points,
    potential: LatentPotential,
    step_size: Scalar,
    num_steps: Array,
    num_transitions: Array,
    temperature: Chains,
) -> Walk:
    kernel = HMC(unit_mass(x.shape[1]), step_size, num_steps, JITTER, temperature)
    state = kernel.init(x, potential)
    state, acceptance = _transitions(key, kernel, state, potential, num_transitions)
    return Walk(state.theta, acceptance)


@partial(jax.jit, static_argnames="num_draws")
def _draw_segment(
    key: PRNGKey,
    x: Points,
    potential: LatentPotential,
    step_size: Scalar,
    num_steps: Array,
    num_transitions: Array,
    num_draws: int,
) -> tuple[
    Float[Array, "chain draw d"], Float[Array, "chain draw"], Float[Array, " chain"]
]:
    """One state in `num_transitions` of every chain, with energy and acceptance."""
    kernel = HMC(unit_mass(x.shape[1]), step_size, num_steps, JITTER)

    def keep(state, count):
        key_now = jax.random.fold_in(key, count)
        state, acceptance = _transitions(
            key_now, kernel, state, potential, num_transitions
        )
        return state, (state.theta, state.energy, acceptance)

    start = kernel.init(x, potential)
    _, (theta, energy, accepted) = jax.lax.scan(keep, start, jnp.arange(num_draws))
    theta, energy = jnp.swapaxes(theta, 0, 1), jnp.swapaxes(energy, 0, 1)
    return theta, energy, jnp.mean(accepted, axis=0)


def _transitions(
    key: PRNGKey,
    kernel: HMC,
    state: HMCState,
    potential: Potential,
    number: Array,
) -> tuple[HMCState, Chains]:
    """A number of transitions, and their mean acceptance probability."""

    def advance(count, carry):
        state, total = carry
        state, accept_prob = _transition(
            jax.random.fold_in(key, count), kernel, state, potential
        )
        return state, total + accept_prob

    start = state, jnp.zeros(len(state.energy))
    state, total = jax.lax.fori_loop(0, number, advance, start)
    return state, total / number


def _transition(
    key: PRNGKey, kernel: HMC, state: HMCState, potential: Potential
) -> tuple[HMCState, Chains]:
    """One transition with a step of random size, and its acceptance probability."""
    key_step, key_move = jax.random.split(key)
    is_short = jax.random.uniform(key_step) < 1 / 3
    step_size = kernel.step_size * jnp.where(is_short, SHORT_STEP, 1.0)
    kernel = eqx.tree_at(lambda kernel: kernel.step_size, kernel, step_size)
    state, info = kernel.step(key_move, state, potential)
    return state, info.accept_prob

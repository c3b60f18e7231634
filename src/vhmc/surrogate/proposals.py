"""Moves on the surrogate, compiled once a shape: they cost no call of the model."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from vhmc._types import Points, Potential, PRNGKey, Scalar
from vhmc.numerics.hmc import HMC, HMCState, leapfrog
from vhmc.numerics.mass import unit_mass
from vhmc.surrogate.residual import Residual

JITTER = 0.7
"""Share of a trajectory's length that is random."""

SHORT_STEP = 0.25
"""One transition in three takes steps this much shorter.

Where the surrogate is stiffer than on average, as in the tails of a banana, the usual
step is never accepted: chains would neither enter nor notice.
"""

Chains = Float[Array, " n"]


class Shot(NamedTuple):
    """End of one trajectory, and the kinetic energy lost on it."""

    x: Points
    kinetic_drop: Chains


class Wander(NamedTuple):
    """End of a run of transitions, and their mean acceptance."""

    x: Points
    acceptance: Chains


def fresh_key(rng: np.random.Generator) -> PRNGKey:
    """A key for JAX from the one stream of random numbers that a run has."""
    return jax.random.key(int(rng.integers(2**31)))


@jax.jit
def shoot(
    key: PRNGKey, x: Points, residual: Residual, step_size: Scalar, num_steps: Array
) -> Shot:
    """One trajectory a chain, not accepted or rejected: the true energy will decide."""
    num_chains, dim = x.shape
    mass = unit_mass(dim)
    key_momentum, key_length = jax.random.split(key)
    momentum = mass.sample(key_momentum, num_chains, dim)
    share = 1 - JITTER * jax.random.uniform(key_length)
    length = jnp.maximum(jnp.ceil(share * num_steps), 1).astype(int)
    grad = jax.vmap(jax.grad(residual))(x)
    start = HMCState(x, jnp.zeros(num_chains), grad)
    end = leapfrog(residual, mass, start, momentum, step_size, length)
    return Shot(end.theta, mass.kinetic(momentum) - mass.kinetic(end.momentum))


@jax.jit
def wander(
    key: PRNGKey,
    x: Points,
    residual: Residual,
    step_size: Scalar,
    num_steps: Array,
    num_transitions: Array,
    temperature: Chains,
) -> Wander:
    """A run of transitions that leave the surrogate's density alone, reversibly.

    temperature: of every chain; above 1 they go where the surrogate is high.
    """
    kernel = HMC(unit_mass(x.shape[1]), step_size, num_steps, JITTER, temperature)

    def advance(count, carry):
        state, acceptance = carry
        state, accept_prob = transit(
            jax.random.fold_in(key, count), kernel, state, residual
        )
        return state, acceptance + accept_prob

    start = kernel.init(x, residual), jnp.zeros(len(x))
    state, total = jax.lax.fori_loop(0, num_transitions, advance, start)
    return Wander(state.theta, total / num_transitions)


def transit(
    key: PRNGKey, kernel: HMC, state: HMCState, potential: Potential
) -> tuple[HMCState, Chains]:
    """One transition with a step of random size, and its acceptance probability."""
    key_step, key_move = jax.random.split(key)
    is_short = jax.random.uniform(key_step) < 1 / 3
    step_size = kernel.step_size * jnp.where(is_short, SHORT_STEP, 1.0)
    kernel = eqx.tree_at(lambda kernel: kernel.step_size, kernel, step_size)
    state, info = kernel.step(key_move, state, potential)
    return state, info.accept_prob

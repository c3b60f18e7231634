"""Hamiltonian Monte Carlo in blocks of draws, so that a clock can stop it."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from vhmc._types import Points, Potential, PRNGKey
from vhmc.numerics.hmc import HMC, HMCState


class Block(NamedTuple):
    """Draws of one block.

    theta: shape (draw, chain, dim).
    acceptance: mean probability.
    num_gradients: for all chains together.
    """

    theta: np.ndarray
    acceptance: float
    num_gradients: int


class ExactHMC(eqx.Module):
    """HMC chains on a potential.

    kernel: step size, trajectory lengths and mass.
    potential: the exact energy, or a frozen surrogate.
    """

    kernel: HMC
    potential: Potential

    def init(self, theta: np.ndarray | Points) -> HMCState:
        """States at the rows of `theta`; costs one gradient per chain."""
        return _init(self, jnp.atleast_2d(jnp.asarray(theta, dtype=float)))

    def advance(
        self, rng: np.random.Generator, state: HMCState, num_draws: int
    ) -> tuple[HMCState, Block]:
        """Make `num_draws` transitions of every chain."""
        key = jax.random.key(int(rng.integers(2**31)))
        state, (theta, accept_prob, num_steps) = _advance(self, key, state, num_draws)
        gradients = int(num_steps.sum()) * len(state.theta)
        return state, Block(np.asarray(theta), float(accept_prob.mean()), gradients)


@eqx.filter_jit
def _init(chain: ExactHMC, theta: Points) -> HMCState:
    return chain.kernel.init(theta, chain.potential)


@eqx.filter_jit
def _advance(chain: ExactHMC, key: PRNGKey, state: HMCState, num_draws: int):
    def step(state, count):
        step_key = jax.random.fold_in(key, count)
        state, info = chain.kernel.step(step_key, state, chain.potential)
        return state, (state.theta, info.accept_prob, info.num_steps)

    return jax.lax.scan(step, state, jnp.arange(num_draws))

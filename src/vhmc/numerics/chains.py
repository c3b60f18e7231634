"""Chains of the one kernel, iterated inside JAX."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from vhmc._types import Points, Potential, PRNGKey
from vhmc.numerics.hmc import HMC


class Chains(NamedTuple):
    """Draws of several chains and what each transition did."""

    theta: Float[Array, "chain draw d"]
    energy: Float[Array, "chain draw"]
    accept_prob: Float[Array, "chain draw"]
    is_divergent: Bool[Array, "chain draw"]


@eqx.filter_jit
def run_chains(
    key: PRNGKey,
    kernel: HMC,
    theta: Points,
    potential: Potential,
    num_draws: int,
    num_warmup: int = 0,
) -> Chains:
    """Run a chain from every row of `theta`, in one batch; keep `num_draws` states."""

    def advance(state, count):
        state, info = kernel.step(jax.random.fold_in(key, count), state, potential)
        kept = state.theta, state.energy, info.accept_prob, info.is_divergent
        return state, kept

    # One loop for both phases: a second one would be compiled again.
    state = kernel.init(theta, potential)
    _, kept = jax.lax.scan(advance, state, jnp.arange(num_warmup + num_draws))
    return Chains(*(jnp.swapaxes(leaf[num_warmup:], 0, 1) for leaf in kept))

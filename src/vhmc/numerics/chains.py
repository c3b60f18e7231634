"""Run chains of the HMC kernel, and tune its step size, inside JAX."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from vhmc._types import Points, Potential, PRNGKey, Scalar
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


class Tuning(NamedTuple):
    """A tuned kernel, where its chains ended, and the acceptance it then had."""

    kernel: HMC
    theta: Points
    acceptance: Scalar


@eqx.filter_jit
def find_step_size(
    key: PRNGKey,
    kernel: HMC,
    theta: Points,
    potential: Potential,
    acceptance: float,
    num_tune: int = 400,
) -> Tuning:
    """Tune by stochastic approximation (`HMC.nudge`).

    The answer is the geometric mean over the second half of the run (Polyak), and the
    acceptance is the mean there, where the step hardly moves any more.
    """

    def tune(carry, count):
        kernel, state = carry
        state, info = kernel.step(jax.random.fold_in(key, count), state, potential)
        kernel = kernel.nudge(info, acceptance, count + 1.0)
        return (kernel, state), (jnp.log(kernel.step_size), info.accept_prob)

    carry = kernel, kernel.init(theta, potential)
    (_, state), path = jax.lax.scan(tune, carry, jnp.arange(num_tune))
    log_step, accept_prob = (leaf[num_tune // 2 :].mean() for leaf in path)
    tuned = eqx.tree_at(lambda kernel: kernel.step_size, kernel, jnp.exp(log_step))
    return Tuning(tuned, state.theta, accept_prob)

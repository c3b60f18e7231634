"""NUTS with a dense metric, by BlackJAX: what one pays without a surrogate."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from vhmc._types import Potential
from vhmc.evaluation.target import Target
from vhmc.lab.baselines.load_blackjax import load_blackjax
from vhmc.lab.baselines.random_start import ATTEMPTS, random_start
from vhmc.models.traced import TracedTarget


class NUTS(NamedTuple):
    """Draws, and calls of the model.

    draws: unconstrained, shape (chain, draw, dim).
    num_evaluations: from the lengths of the trajectories: chains that run in step
        would otherwise be charged for the longest.
    """

    draws: np.ndarray
    num_evaluations: int


def nuts(
    target: Target, seed: int, num_draws: int, num_warmup: int, num_chains: int = 4
) -> NUTS | None:
    """Chains from random starts; nothing if no start with a finite density is found.

    num_draws: of all chains together.
    """
    if not isinstance(target, TracedTarget):
        raise TypeError("nuts needs a target of from_jax")
    load_blackjax()  # missing, it is to be said before anything is spent
    before = target.num_evaluations
    rng = np.random.default_rng(seed)
    found = [random_start(target, rng, ATTEMPTS) for _ in range(num_chains)]
    starts = [start for start in found if start is not None]
    if len(starts) < num_chains:
        return None

    draws, num_steps = nuts_chains(
        target.energy, np.stack(starts), seed, num_draws // num_chains, num_warmup
    )
    target.charge(num_steps)
    return NUTS(draws, target.num_evaluations - before)


def nuts_chains(
    potential: Potential,
    starts: np.ndarray,
    seed: int,
    num_draws: int,
    num_warmup: int,
) -> tuple[np.ndarray, int]:
    """Draws of a chain from every row, and gradients computed for them.

    potential: an energy that is not counted; a pytree of arrays compiles only once.
    """
    blackjax = load_blackjax()
    keys = jax.random.split(jax.random.key(seed), len(starts))
    draws, num_steps = _chains(
        potential, blackjax, keys, jnp.asarray(starts), num_draws, num_warmup
    )
    # One call more a chain, for the energy that its first step starts from.
    return np.asarray(draws), int(num_steps.sum()) + len(starts)


@eqx.filter_jit
def _chains(potential, blackjax, keys, starts, num_draws: int, num_warmup: int):
    def log_density(theta):
        return -potential(theta)

    def chain(key, start):
        key_warmup, key_sample = jax.random.split(key)
        warmup = blackjax.window_adaptation(
            blackjax.nuts, log_density, is_mass_matrix_diagonal=False
        )
        (state, tuned), warm = warmup.run(key_warmup, start, num_steps=num_warmup)
        kernel = blackjax.nuts(log_density, **tuned).step

        def step(state, key):
            state, info = kernel(key, state)
            return state, (state.position, info.num_integration_steps)

        draw_keys = jax.random.split(key_sample, num_draws)
        _, (draws, num_steps) = jax.lax.scan(step, state, draw_keys)
        return draws, warm.info.num_integration_steps.sum() + num_steps.sum()

    return jax.vmap(chain)(keys, starts)

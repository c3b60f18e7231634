"""NUTS with a dense metric, by BlackJAX, and random starts as in Stan."""

from types import ModuleType
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from vhmc._imports import load_extra
from vhmc._types import Potential
from vhmc.evaluation.target import Target
from vhmc.models.traced import TracedTarget

HALF_WIDTH = 2.0
"""Half the side of the cube around `target.start` that random starts come from."""
ATTEMPTS = 10
"""Points tried for one random start before it is given up."""


class NUTS(NamedTuple):
    """Draws and their cost.

    draws: unconstrained, shape (chain, draw, dim).
    num_evaluations: sum of the trajectory lengths, not what vectorised chains execute,
        where each waits for the longest.
    """

    draws: np.ndarray
    num_evaluations: int


def nuts(
    target: Target, seed: int, num_draws: int, num_warmup: int, num_chains: int = 4
) -> NUTS | None:
    """Run chains from random starts; none if no start has a finite density.

    num_draws: of all chains together.
    """
    if not isinstance(target, TracedTarget):
        raise TypeError("nuts needs a target of from_jax")
    load_blackjax()  # if it is missing, say so before the model is evaluated
    before = target.num_evaluations
    starts = random_starts(target, seed, num_chains)
    if starts is None:
        return None

    draws, num_steps = nuts_chains(
        target.energy, starts, seed, num_draws // num_chains, num_warmup
    )
    target.charge(num_steps)
    return NUTS(draws, target.num_evaluations - before)


def nuts_chains(
    potential: Potential, starts: np.ndarray, seed: int, num_draws: int, num_warmup: int
) -> tuple[np.ndarray, int]:
    """Draws of a chain from each row of `starts`, and the gradients they took.

    potential: an energy that does not count; if a pytree of arrays, it compiles once.
    """
    keys = jax.random.split(jax.random.key(seed), len(starts))
    draws, num_steps = _chains(
        potential, load_blackjax(), keys, jnp.asarray(starts), num_draws, num_warmup
    )
    # Each chain also evaluates the energy at its start.
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


def random_starts(target: Target, seed: int, number: int) -> np.ndarray | None:
    """Random points as rows; none if one of them cannot be found."""
    rng = np.random.default_rng(seed)
    found = [random_start(target, rng, ATTEMPTS) for _ in range(number)]
    starts = [start for start in found if start is not None]
    return np.stack(starts) if len(starts) == number else None


def random_start(
    target: Target, rng: np.random.Generator, attempts: int
) -> np.ndarray | None:
    """A random point with a finite energy and gradient, found as Stan does."""
    for _ in range(attempts):
        theta = target.start + rng.uniform(-HALF_WIDTH, HALF_WIDTH, target.dim)
        answer = target.evaluate(theta[None])
        if np.isfinite(answer.energy[0]) and np.isfinite(answer.grad).all():
            return theta
    return None


def load_blackjax() -> ModuleType:
    """BlackJAX, which only Pathfinder and NUTS need."""
    blackjax = load_extra("blackjax", "Pathfinder or NUTS", "bench")
    load_extra("blackjax.optimizers.lbfgs", "Pathfinder", "bench")
    return blackjax

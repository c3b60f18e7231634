"""BlackJAX's NUTS on few gradients, from a random start as in Stan."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from vhmc.evaluation.target import Target
from vhmc.lab.baselines.nuts import NUTS, load_blackjax
from vhmc.lab.baselines.short_chain import DEPTH, Path, short_chain

BLOCK = 128
"""Steps of one compiled loop, which ends early where the gradients are spent."""
ACCEPTED = 0.8
"""Rate of acceptance that the step size aims at: BlackJAX's default, as in Stan."""
FAST, SLOW, LAST, DRAW = range(4)
"""Stages of a step: tune its size; and gather moments; and take them; tune nothing."""


def nuts_within(target: Target, seed: int, budget: int) -> NUTS | None:
    """Draws of a `short_chain` with a diagonal metric; none without a finite start.

    A dense metric was worse on three hierarchical models: it has too few draws.
    """
    load_blackjax()  # if it is missing, say so before the model is evaluated
    return short_chain(_walk, target, seed, budget)


class _Chain(NamedTuple):
    """What the next step needs: the point, and both adaptations of BlackJAX."""

    state: Any
    averaging: Any
    metric: Any


def _walk(
    target: Target, start: np.ndarray, seed: int, num_warmup: int, allowed: int
) -> Path:
    """BlackJAX's own warm-up step for step, in a program for any number of steps."""
    blackjax = load_blackjax()
    energy = target.traced_energy or target.potential
    key_warmup, key_draws = jax.random.split(jax.random.key(seed))
    schedule = blackjax.adaptation.window_adaptation.build_schedule(num_warmup)
    stages = np.append(np.asarray(schedule).sum(axis=1), np.full(allowed + BLOCK, DRAW))
    keys = jnp.concatenate(
        [
            jax.random.split(key_warmup, num_warmup),
            jax.random.split(key_draws, allowed + BLOCK),
        ]
    )
    chain = _begin(energy, blackjax, jnp.asarray(start))
    points, steps = np.empty((0, target.dim)), np.empty(0, int)
    while (spent := steps.sum()) < allowed:
        some = slice(len(steps), len(steps) + BLOCK)
        chain, number, *new = _advance(
            *(energy, blackjax, chain, keys[some], stages[some], allowed - spent)
        )
        points = np.concatenate([points, new[0][:number]])
        steps = np.append(steps, new[1][:number])
    return Path(points, np.cumsum(steps))


@eqx.filter_jit
def _begin(energy, blackjax, start) -> _Chain:
    averaging, metric = _adaptations(blackjax)
    state = blackjax.nuts.init(start, lambda theta: -energy(theta))
    return _Chain(state, averaging[0](1.0), metric[0](start.size))


@eqx.filter_jit
def _advance(energy, blackjax, chain: _Chain, keys, stages, allowed):
    """Steps until the gradients are spent, at most a block."""
    averaging, metric = _adaptations(blackjax)
    kernel = blackjax.nuts.build_kernel()

    def tune(chain: _Chain, accepted) -> _Chain:
        return chain._replace(averaging=averaging[1](chain.averaging, accepted))

    def gather(chain: _Chain, accepted) -> _Chain:
        chain = tune(chain, accepted)
        return chain._replace(metric=metric[1](chain.metric, chain.state.position))

    def take(chain: _Chain, accepted) -> _Chain:
        chain = gather(chain, accepted)
        restarted = averaging[0](averaging[2](chain.averaging))
        return chain._replace(averaging=restarted, metric=metric[2](chain.metric))

    def keep(chain: _Chain, accepted) -> _Chain:
        return chain

    def step(carry):
        number, chain, points, steps = carry
        sizes = chain.averaging
        log_size = jnp.where(
            stages[number] == DRAW, sizes.log_step_size_avg, sizes.log_step_size
        )
        state, info = kernel(
            *(keys[number], chain.state, lambda theta: -energy(theta)),
            *(jnp.exp(log_size), chain.metric.inverse_mass_matrix, DEPTH),
        )
        chain = jax.lax.switch(
            stages[number],
            (tune, gather, take, keep),
            *(chain._replace(state=state), info.acceptance_rate),
        )
        points = points.at[number].set(state.position)
        steps = steps.at[number].set(info.num_integration_steps)
        return number + 1, chain, points, steps

    def goes_on(carry):
        number, _, _, steps = carry
        return (number < BLOCK) & (steps.sum() < allowed)

    points = jnp.zeros((BLOCK, chain.state.position.size))
    carry = jnp.array(0), chain, points, jnp.zeros(BLOCK, int)
    number, chain, points, steps = jax.lax.while_loop(goes_on, step, carry)
    return chain, number, points, steps


def _adaptations(blackjax):
    """Dual averaging of the step size, and the diagonal metric: init, update, final."""
    parts = blackjax.adaptation
    averaging = parts.step_size.dual_averaging_adaptation(ACCEPTED)
    return averaging, parts.mass_matrix.mass_matrix_adaptation(is_diagonal_matrix=True)

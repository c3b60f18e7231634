"""Draws of the frozen surrogate: they cost no call of the model, so until they mix."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from vhmc._types import Points, PRNGKey, Scalar
from vhmc.numerics.chain_groups import side_by_side
from vhmc.numerics.effective_size import bulk_ess, split_rhat
from vhmc.numerics.hmc import HMC
from vhmc.numerics.mass import unit_mass
from vhmc.report.watch import Watch
from vhmc.surrogate.moves import fresh_keys, independent, is_bare
from vhmc.surrogate.proposals import JITTER, transit
from vhmc.surrogate.residual import Residual

BLOCK_DRAWS = 250
"""Draws of one call of the compiled program: one shape serves for any number."""
WANTED = 0.87
MIXED = 1.01
"""R-hat at which chains count as mixed."""
WORTH = 0.2
"""Wanted effective draws a draw."""
LENGTHS = 2.0, 5.0, 12.0
"""Trajectory lengths in whitened time: each is tried if the one before did not mix."""
MOST_STEPS = 100
MOST_GRADIENTS = 20_000
"""Leapfrog steps of a chain that one attempt may take."""


class Pace(NamedTuple):
    """Size and number of leapfrog steps, and transitions from draw to draw."""

    step_size: float
    num_steps: int
    num_transitions: int = 1


class Frozen(NamedTuple):
    """Draws in whitened coordinates, and how they were made.

    x: shape (chain, draw, dim).
    energy: of the surrogate, shape (chain, draw).
    acceptance: on the surrogate.
    rhat, ess: of the worst coordinate.
    pace: of the chains.
    """

    x: np.ndarray
    energy: np.ndarray
    acceptance: float
    rhat: float
    ess: float
    pace: Pace


class Block(NamedTuple):
    """A run of draws of several chains.

    x: shape (chain, draw, dim).
    energy: of the surrogate, shape (chain, draw).
    acceptance: on the surrogate, by chain.
    """

    x: np.ndarray
    energy: np.ndarray
    acceptance: np.ndarray


@partial(jax.jit, static_argnames="num_draws")
def draw_block(
    key: PRNGKey,
    x: Points,
    residual: Residual,
    step_size: Scalar,
    num_steps: Array,
    num_transitions: Array,
    num_draws: int,
) -> tuple[
    Float[Array, "chain draw d"], Float[Array, "chain draw"], Float[Array, " chain"]
]:
    """Keep one state in `num_transitions` of every chain; also energy, acceptance."""
    kernel = HMC(unit_mass(x.shape[1]), step_size, num_steps, JITTER)

    def advance(count, carry):
        key, state, total = carry
        key_now = jax.random.fold_in(key, count)
        state, accept_prob = transit(key_now, kernel, state, residual)
        return key, state, total + accept_prob

    def keep(state, count):
        carry = jax.random.fold_in(key, count), state, jnp.zeros(len(x))
        _, state, total = jax.lax.fori_loop(0, num_transitions, advance, carry)
        return state, (state.theta, state.energy, total / num_transitions)

    start = kernel.init(x, residual)
    _, (theta, energy, accepted) = jax.lax.scan(keep, start, jnp.arange(num_draws))
    theta, energy = jnp.swapaxes(theta, 0, 1), jnp.swapaxes(energy, 0, 1)
    return theta, energy, jnp.mean(accepted, axis=0)


def blocks(
    rng: np.random.Generator, residual: Residual, x: np.ndarray, pace: Pace
) -> Block:
    """One block of every chain, on two cores."""

    def program(key, x):
        return draw_block(key, x, residual, *pace, BLOCK_DRAWS)

    return Block(*side_by_side(program, fresh_keys(rng, len(x)), x))


def draw(
    rng: np.random.Generator,
    residual: Residual,
    starts: np.ndarray,
    step_size: float,
    num_draws: int,
    watch: Watch | None = None,
) -> Frozen:
    """Draw until the chains have mixed, with longer trajectories where they do not.

    starts: dispersed points, one a chain.
    step_size: to begin with.
    watch: is told how far it is.
    """
    x, wanted = starts, len(starts) * num_draws
    watch = Watch(0) if watch is None else watch
    watch.draws(0, wanted)
    if is_bare(residual):
        made = _independent(rng, residual, len(starts), num_draws)
        watch.draws(wanted, wanted, wanted)
        # Independent as they are made: to measure it took longer than all the rest.
        return Frozen(*made[:2], 1.0, 1.0, float(wanted), Pace(step_size, 1))
    # Warm-up on the same program: the step finds its size, the chains theirs.
    for gain in (1.0, 1.0, 0.5):
        pace = Pace(step_size, _num_steps(LENGTHS[0], step_size))
        made = blocks(rng, residual, x, pace)
        factor = np.exp(gain * (float(np.mean(made.acceptance)) - WANTED))
        step_size = float(np.clip(step_size * factor, 1e-4, 2.0))
        x = made.x[:, -1]
    tries: list[Frozen] = []
    thin = 1
    for length in LENGTHS:
        num_steps = _num_steps(length, step_size)
        thin = min(thin, max(1, MOST_GRADIENTS // (num_steps * num_draws)))
        pace = Pace(step_size, num_steps, thin)
        made = _draw(rng, residual, x, pace, num_draws, watch)
        x = made.x[:, -1]
        frozen = _measure(made, pace)
        watch.draws(wanted, wanted, frozen.ess)
        worth = frozen.ess / frozen.energy.size
        if frozen.rhat <= MIXED and worth >= WORTH:
            return frozen
        tries.append(frozen)
        thin = int(np.clip(np.ceil(thin * WORTH / max(worth, 0.05)), 1, 6))
    return max(tries, key=lambda frozen: frozen.ess)


def some_draws(
    rng: np.random.Generator, residual: Residual, starts: np.ndarray, step_size: float
) -> np.ndarray:
    """Draws of every chain, mixed or not, one a row: to see where a surrogate leads."""
    if is_bare(residual):
        block = _independent(rng, residual, len(starts), BLOCK_DRAWS)
        return block.x.reshape(-1, starts.shape[1])
    pace = Pace(step_size, _num_steps(LENGTHS[0], step_size), 2)
    block = blocks(rng, residual, starts, pace)
    return block.x[:, BLOCK_DRAWS // 10 :].reshape(-1, starts.shape[1])


def _independent(
    rng: np.random.Generator, residual: Residual, num_chains: int, num_draws: int
) -> Block:
    """Draws of the surrogate without a network, which needs no chains."""
    drawn = independent(rng, residual, np.ones(num_chains * num_draws))
    length = np.linalg.norm(drawn, axis=1)
    beyond = np.maximum(length - float(residual.radius), 0.0)
    energies = 0.5 * length**2 + 0.5 * float(residual.guard) * beyond**2
    x, energy = (
        part.reshape(num_chains, num_draws, *part.shape[1:])
        for part in (drawn, energies)
    )
    return Block(x, energy, np.ones(num_chains))


def _draw(
    rng: np.random.Generator,
    residual: Residual,
    x: np.ndarray,
    pace: Pace,
    num_draws: int,
    watch: Watch,
) -> Block:
    """Blocks in a row, until there are enough draws; `watch` is told after each."""
    parts: list[Block] = []
    wanted = len(x) * num_draws
    while len(parts) * BLOCK_DRAWS < num_draws:
        parts.append(blocks(rng, residual, x, pace))
        x = parts[-1].x[:, -1]
        drawn = np.concatenate([part.x for part in parts], axis=1)[:, :num_draws]
        number = len(x) * drawn.shape[1]
        if number < wanted:  # all of them are measured by who asked for them
            watch.draws(number, wanted, _ess(drawn))
    energy = np.concatenate([part.energy for part in parts], axis=1)[:, :num_draws]
    return Block(drawn, energy, np.mean([part.acceptance for part in parts], axis=0))


def _num_steps(length: float, step_size: float) -> int:
    return int(np.clip(np.ceil(length / step_size), 1, MOST_STEPS))


def _measure(block: Block, pace: Pace) -> Frozen:
    return Frozen(
        x=block.x,
        energy=block.energy,
        acceptance=float(np.mean(block.acceptance)),
        rhat=float(np.max(split_rhat(block.x))) if _is_many(block.x) else np.inf,
        ess=_ess(block.x),
        pace=pace,
    )


def _is_many(x: np.ndarray) -> bool:
    """Whether chains are long enough to be compared."""
    return x.shape[1] >= 4


def _ess(x: np.ndarray) -> float:
    """Effective draws of the worst coordinate.

    Undefined where a coordinate does not move, which is as bad as can be.
    """
    return float(np.nan_to_num(np.min(bulk_ess(x)))) if _is_many(x) else 0.0

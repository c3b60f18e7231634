r"""Moves on the surrogate, with or without a network.

Without one it is a standard normal that a guard keeps in a ball. That is drawn from
outright, and its trajectories are rotations: nothing needs to be compiled, which would
take longer than all the rest where the chart is the posterior already.
"""

import jax.numpy as jnp
import numpy as np

from vhmc._types import PRNGKey
from vhmc.numerics.chain_groups import num_groups, side_by_side
from vhmc.surrogate.proposals import JITTER, Shot, Wander, fresh_key, shoot, wander
from vhmc.surrogate.residual import Residual


def is_bare(residual: Residual) -> bool:
    """Whether there is no network."""
    return not residual.basis.num_features


def walk(
    rng: np.random.Generator,
    x: np.ndarray,
    residual: Residual,
    step_size: float,
    num_steps: int,
    num_transitions: int,
    temperature: np.ndarray,
) -> Wander:
    """A reversible run of moves that leave the surrogate's density alone.

    temperature: of every chain; above 1 they go where the surrogate is high.
    """
    if is_bare(residual):
        drawn = independent(rng, residual, temperature)
        return Wander(jnp.asarray(drawn), jnp.asarray(np.ones(len(x))))

    def program(key, x, temperature):
        return wander(
            key, x, residual, step_size, num_steps, num_transitions, temperature
        )

    return side_by_side(program, fresh_keys(rng, len(x)), x, temperature)


def fresh_keys(rng: np.random.Generator, num_chains: int) -> list[PRNGKey]:
    """A key for each group of the chains."""
    return [fresh_key(rng) for _ in range(num_groups(num_chains))]


def launch(
    rng: np.random.Generator,
    x: np.ndarray,
    residual: Residual,
    step_size: float,
    num_steps: int,
) -> Shot:
    """One trajectory a chain, not accepted or rejected: the true energy will decide."""
    if not is_bare(residual):
        return shoot(fresh_key(rng), jnp.asarray(x), residual, step_size, num_steps)
    momentum = rng.standard_normal(x.shape)
    angle = step_size * num_steps * (1 - JITTER * rng.uniform())
    end = np.cos(angle) * x + np.sin(angle) * momentum
    last = np.cos(angle) * momentum - np.sin(angle) * x
    drop = 0.5 * np.sum(momentum**2 - last**2, axis=1)
    return Shot(jnp.asarray(end), jnp.asarray(drop))


def independent(
    rng: np.random.Generator, residual: Residual, temperature: np.ndarray
) -> np.ndarray:
    """Draws of the surrogate without a network, one for each temperature.

    By rejection: the guard only takes away from a normal, and next to nothing.
    """
    radius, guard = float(residual.radius), float(residual.guard)
    temperature = np.asarray(temperature, dtype=float)
    x = np.zeros((len(temperature), residual.basis.directions.shape[1]))
    missing = np.arange(len(x))
    while len(missing):
        hot = temperature[missing]
        trial = np.sqrt(hot)[:, None] * rng.standard_normal((len(missing), x.shape[1]))
        beyond = np.maximum(np.linalg.norm(trial, axis=1) - radius, 0.0)
        is_kept = rng.uniform(size=len(missing)) < np.exp(
            -0.5 * guard * beyond**2 / hot
        )
        x[missing[is_kept]] = trial[is_kept]
        missing = missing[~is_kept]
    return x

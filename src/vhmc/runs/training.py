"""The training phase of Algorithm 2: a host loop, so that any model can be asked."""

from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from vhmc.core.hmc import HMCInfo
from vhmc.methods.vhmc import VHMC, VHMCState
from vhmc.targets.target import Target

PATIENCE = 200
"""Proposals in a row without an acceptance after which a chain is called stuck."""


class Trained(NamedTuple):
    """The state after training and every exact gradient that was paid for.

    theta, energy, grad: accepted states, the true energy and gradient there.
    acceptance: share of the proposals that were accepted.
    num_failed: accepted states where the model gave no finite gradient; they are kept,
        but nothing was learnt from them.
    failure: why the surrogate is of no use, or nothing.
    """

    state: VHMCState
    theta: np.ndarray
    energy: np.ndarray
    grad: np.ndarray
    acceptance: float
    num_failed: int
    failure: str | None


class SurrogateFailure(RuntimeError):
    """The surrogate became useless; `trained` holds everything that was paid for."""

    def __init__(self, message: str, trained: Trained):
        super().__init__(message)
        self.trained = trained


def train(
    keys: Key[Array, " r"], method: VHMC, target: Target, states: VHMCState
) -> list[Trained]:
    """Train replicas, independent runs in one batch, for `method.num_train` iterations.

    One call of the model for each accepted proposal. Ends early once all are stuck.
    """
    arrays, settings = eqx.partition(method, eqx.is_array)
    shape = method.num_train, len(keys)
    accepted = np.zeros(shape, dtype=bool)
    thetas = np.empty((*shape, target.dim))
    energies = np.empty(shape)
    grads = np.empty_like(thetas)
    num_done = 0
    while num_done < method.num_train:
        states, info = _propose(settings, arrays, keys, states)
        moved = np.asarray(info.is_accepted[:, 0])
        accepted[num_done] = moved
        num_done += 1
        if moved.any():
            theta = np.asarray(states.theta)
            energy, grad = np.full(len(keys), np.nan), np.full_like(theta, np.nan)
            energy[moved], grad[moved] = target.evaluate(theta[moved])
            states = _learn(settings, arrays, states, grad)
            thetas[num_done - 1] = theta
            energies[num_done - 1], grads[num_done - 1] = energy, grad
        elif num_done > PATIENCE and not accepted[num_done - PATIENCE : num_done].any():
            break

    def outcome(row: int) -> Trained:
        chosen = np.flatnonzero(accepted[:num_done, row])
        state = jax.tree.map(lambda leaf: leaf[row], states)
        grad = grads[chosen, row]
        return Trained(
            state,
            thetas[chosen, row],
            energies[chosen, row],
            grad,
            len(chosen) / num_done,
            int((~np.isfinite(grad).all(axis=1)).sum()),
            _failure(state, num_done - int(max(chosen, default=0))),
        )

    return [outcome(row) for row in range(len(keys))]


def _failure(state: VHMCState, num_idle: int) -> str | None:
    if not np.isfinite(state.fit.weights).all():
        return "the weights of the surrogate are not finite: raise the ridge"
    if num_idle > PATIENCE:
        return (
            f"training accepted none of its last {num_idle - 1} proposals: "
            "lower the step size or raise the ridge"
        )
    return None


# The settings are split once into arrays and the rest: `eqx.filter_jit` would do so at
# every call, which took twice as long as the calls themselves.
@partial(jax.jit, static_argnums=0)
def _propose(
    settings: VHMC, arrays: VHMC, keys: Key[Array, " r"], states: VHMCState
) -> tuple[VHMCState, HMCInfo]:
    return jax.vmap(eqx.combine(settings, arrays).propose)(keys, states)


@partial(jax.jit, static_argnums=0)
def _learn(
    settings: VHMC, arrays: VHMC, states: VHMCState, grads: Float[Array, "r d"]
) -> VHMCState:
    """Learn where there is a finite gradient; the others keep their state."""

    def learn(state, grad):
        is_known = jnp.all(jnp.isfinite(grad))
        learnt = eqx.combine(settings, arrays).learn(state, grad)
        return jax.tree.map(partial(jnp.where, is_known), learnt, state)

    return jax.vmap(learn)(states, grads)

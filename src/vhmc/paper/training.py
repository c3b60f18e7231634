"""The training phase of Algorithm 2: a loop on the host, so that any model serves."""

from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from vhmc.evaluation.evaluator import RunFailure, most_common
from vhmc.evaluation.target import Target
from vhmc.numerics.hmc import HMCInfo
from vhmc.paper.algorithm2 import VHMC, VHMCState
from vhmc.paper.trained_inputs import refit, train_inputs

PATIENCE = 200
"""Proposals in a row without an acceptance after which a chain is called stuck."""
MOST_FAILURES = 20
"""Failures of the model in a row after which training ends.

The chain moves on the surrogate, so it may be where the model has no answer for long.
"""


class Trained(NamedTuple):
    """The state after training, and every evaluation made in it.

    theta, energy, grad: accepted states, the true energy and gradient there.
    acceptance: fraction of the proposals that were accepted.
    num_failed: accepted states where the model gave no finite energy and gradient;
        they are kept, but nothing was learnt from them.
    failure: why the surrogate is of no use, or nothing.
    """

    state: VHMCState
    theta: np.ndarray
    energy: np.ndarray
    grad: np.ndarray
    acceptance: float
    num_failed: int
    failure: str | None


def train(
    keys: Key[Array, " r"], method: VHMC, target: Target, states: VHMCState
) -> list[Trained]:
    """Train replicas, independent runs in one batch, for `method.num_train` iterations.

    One evaluation for each accepted proposal. Ends early once all are stuck.
    """
    arrays, settings = eqx.partition(method, eqx.is_array)
    shape = method.num_train, len(keys)
    accepted = np.zeros(shape, dtype=bool)
    thetas = np.empty((*shape, target.dim))
    energies = np.empty(shape)
    grads = np.empty_like(thetas)
    reasons = np.zeros(0, dtype=object)
    num_done = 0

    def outcome(row: int) -> Trained:
        chosen = np.flatnonzero(accepted[:num_done, row])
        state = jax.tree.map(lambda leaf: leaf[row], states)
        energy, grad = energies[chosen, row], grads[chosen, row]
        is_known = np.isfinite(energy) & np.isfinite(grad).all(axis=1)
        return Trained(
            state,
            thetas[chosen, row],
            energy,
            grad,
            len(chosen) / max(num_done, 1),
            int((~is_known).sum()),
            _failure(state, num_done, int(max(chosen, default=-1))),
        )

    while num_done < method.num_train:
        states, info = _propose(settings, arrays, keys, states)
        moved = np.asarray(info.is_accepted[:, 0])
        if moved.any():
            theta = np.asarray(states.theta)
            energy, grad = np.full(len(keys), np.nan), np.full_like(theta, np.nan)
            answer = target.evaluate(theta[moved])
            energy[moved], grad[moved] = answer.energy, answer.grad
            thetas[num_done], energies[num_done], grads[num_done] = theta, energy, grad
            reasons = np.append(reasons, answer.reason)[-MOST_FAILURES:]
            states = _learn(settings, arrays, states, energy, grad)
        accepted[num_done] = moved
        num_done += 1
        if method.trains_inputs and num_done == method.num_train // 2:
            known = accepted[:num_done] & np.isfinite(energies[:num_done])
            states = _with_trained_inputs(
                *(keys, method, states, known, thetas[:num_done], grads[:num_done])
            )
        if np.sum(reasons != "") == MOST_FAILURES:
            raise RunFailure(
                f"the model failed at the last {MOST_FAILURES} points of training, "
                f"most often: {most_common(reasons)}",
                trained=[outcome(row) for row in range(len(keys))],
            )
        if num_done > PATIENCE and not accepted[num_done - PATIENCE : num_done].any():
            break
    return [outcome(row) for row in range(len(keys))]


def _with_trained_inputs(
    keys: Key[Array, " r"],
    method: VHMC,
    states: VHMCState,
    known: np.ndarray,
    thetas: np.ndarray,
    grads: np.ndarray,
) -> VHMCState:
    """States whose nodes are trained on what each replica has seen, and fitted anew."""
    known = known & np.isfinite(grads).all(axis=2)
    rows = []
    for row, key in enumerate(keys):
        state = jax.tree.map(lambda leaf, row=row: leaf[row], states)
        theta, grad = thetas[known[:, row], row], grads[known[:, row], row]
        # The moves fold in the iterations, which never reach this number.
        key = jax.random.fold_in(key, 2**31)
        basis = train_inputs(key, state.surrogate, state.guide, theta, grad)
        ridge = float(method.ridge_for(state.guide))
        rows.append(state._replace(basis=basis, fit=refit(basis, theta, grad, ridge)))
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *rows)


def _failure(state: VHMCState, num_done: int, last_accepted: int) -> str | None:
    if not np.isfinite(state.fit.weights).all():
        return "the weights of the surrogate are not finite: raise the ridge"
    num_idle = num_done - 1 - last_accepted
    if num_idle >= min(PATIENCE, num_done):
        return (
            f"training accepted none of its last {num_idle} proposals: "
            "lower the step size or raise the ridge"
        )
    return None


# The settings are split once into arrays and the rest: `eqx.filter_jit` would do so at
# every call, which about doubled their time.
@partial(jax.jit, static_argnums=0)
def _propose(
    settings: VHMC, arrays: VHMC, keys: Key[Array, " r"], states: VHMCState
) -> tuple[VHMCState, HMCInfo]:
    return jax.vmap(eqx.combine(settings, arrays).propose)(keys, states)


@partial(jax.jit, static_argnums=0)
def _learn(
    settings: VHMC,
    arrays: VHMC,
    states: VHMCState,
    energies: Float[Array, " r"],
    grads: Float[Array, "r d"],
) -> VHMCState:
    """Learn where energy and gradient are finite; the others keep their state."""

    def learn(state, energy, grad):
        # Outside its support a model may have an infinite energy and yet a gradient.
        is_known = jnp.isfinite(energy) & jnp.all(jnp.isfinite(grad))
        learnt = eqx.combine(settings, arrays).learn(state, grad)
        return jax.tree.map(partial(jnp.where, is_known), learnt, state)

    return jax.vmap(learn)(states, energies, grads)

r"""Algorithm 2 in blocks: the fit waits for a batch of gradients, then is solved anew.

The printed update costs $O(d s^2)$ for every accepted state, on a9a more than ten
full-data gradients. Here states accepted in a block are evaluated in one batch and
added to the normal equations in Hadamard form, $O(s^2)$ a state; one Cholesky solve
ends the block. Blocks double, so solves are few. Between solves the weights are those
of the last block, which is all that differs from the printed algorithm.
"""

import time
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from vhmc._types import PRNGKey, Vector
from vhmc.evaluation.target import Target
from vhmc.numerics.bases import Additive, softplus
from vhmc.numerics.gaussian import Gaussian
from vhmc.numerics.hmc import HMC
from vhmc.paper.algorithm2 import VHMC, Schedule
from vhmc.paper.potentials import Blend, Surrogate
from vhmc.paper.trained_inputs import train_inputs
from vhmc.surrogate.network import Nodes
from vhmc.surrogate.network_fit import solve_with

CHUNK = 16
"""Proposals in one compiled loop."""
BATCH = 64
"""Points that are evaluated together: more would only fill the memory."""


class BlockTrained(NamedTuple):
    """The surrogate, the state of its chain, and every evaluation.

    surrogate: nodes and weights.
    states, times: of the chain after every proposal, and seconds since the start.
    theta, grad: accepted states and the true gradients there.
    acceptance: fraction of the proposals that were accepted.
    seconds: by part: moving, evaluating, solving.
    """

    surrogate: Surrogate
    states: np.ndarray
    times: np.ndarray
    theta: np.ndarray
    grad: np.ndarray
    acceptance: float
    seconds: dict[str, float]


def train_in_blocks(
    key: PRNGKey,
    method: VHMC,
    target: Target,
    theta: Vector,
    guide: Gaussian,
    kernel: HMC,
) -> BlockTrained:
    """Train for `method.num_train` proposals.

    kernel: its step is kept as it is.
    """
    key_nodes, key_moves = jax.random.split(key)
    basis = method.nodes(key_nodes, method.num_features, guide)
    if not isinstance(basis, Additive) or basis.activation is not softplus:
        raise ValueError("training in blocks needs additive softplus nodes")
    nodes = Nodes(np.asarray(basis.directions), np.asarray(basis.offsets))
    ridge = float(method.ridge_for(guide))
    is_trained = not method.trains_inputs
    surrogate = Surrogate(basis, jnp.zeros(method.num_features))
    gram = np.zeros((method.num_features, method.num_features))
    moment = np.zeros(method.num_features)

    seconds = dict.fromkeys(("moving", "evaluating", "solving"), 0.0)
    thetas: list[np.ndarray] = []
    grads: list[np.ndarray] = []
    waiting: list[np.ndarray] = []
    chain: list[np.ndarray] = []
    times: list[float] = []
    num_done, next_solve = 0, 2 * CHUNK
    start = time.perf_counter()
    while num_done < method.num_train:
        began = time.perf_counter()
        theta, states, moved = _move(
            method.schedule,
            kernel,
            key_moves,
            surrogate,
            guide,
            theta,
            jnp.asarray(num_done),
        )
        states, moved = np.asarray(states), np.asarray(moved)
        waiting.append(states[moved])
        chain.append(states)
        times += [time.perf_counter() - start] * CHUNK
        num_done += CHUNK
        seconds["moving"] += time.perf_counter() - began
        if num_done < min(next_solve, method.num_train):
            continue
        next_solve *= 2
        new, waiting = np.concatenate(waiting), []
        if not len(new):
            continue
        began = time.perf_counter()
        energy, grad = _evaluate(target, new)
        known = np.isfinite(energy) & np.isfinite(grad).all(axis=1)
        thetas.append(new)
        grads.append(grad)
        seconds["evaluating"] += time.perf_counter() - began
        began = time.perf_counter()
        if not is_trained and 2 * num_done >= method.num_train:
            is_trained = True
            new, grad = np.concatenate(thetas), np.concatenate(grads)
            known = np.isfinite(grad).all(axis=1)
            basis = train_inputs(
                *(jax.random.fold_in(key_moves, 2**31), surrogate, guide),
                *(new[known], grad[known]),
            )
            nodes = Nodes(np.asarray(basis.directions), np.asarray(basis.offsets))
            gram, moment = np.zeros_like(gram), np.zeros_like(moment)
        more_gram, more_moment = nodes.normal_terms(new[known], grad[known])
        gram += more_gram
        moment += more_moment
        weights = solve_with((gram, moment), ridge)
        surrogate = Surrogate(basis, jnp.asarray(weights))
        seconds["solving"] += time.perf_counter() - began
    theta_rows = np.concatenate(thetas) if thetas else np.zeros((0, target.dim))
    return BlockTrained(
        surrogate,
        np.concatenate(chain),
        np.array(times),
        theta_rows,
        np.concatenate(grads) if grads else theta_rows,
        len(theta_rows) / num_done,
        seconds,
    )


def _evaluate(target: Target, thetas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    parts = [
        target.evaluate(thetas[begin : begin + BATCH])
        for begin in range(0, len(thetas), BATCH)
    ]
    energies = [part.energy for part in parts]
    grads = [part.grad for part in parts]
    return np.concatenate(energies), np.concatenate(grads)


@eqx.filter_jit
def _move(
    schedule: Schedule,
    kernel: HMC,
    key: PRNGKey,
    surrogate: Surrogate,
    guide: Gaussian,
    theta: Vector,
    num_done: jax.Array,
):
    """A chunk of proposals on $V_t$, in which the surrogate's weight grows."""

    def propose(theta, count):
        potential = Blend(surrogate, guide, schedule(count + 1.0))
        state = kernel.init(theta[None], potential)
        step_key = jax.random.fold_in(key, count)
        state, info = kernel.step(step_key, state, potential)
        return state.theta[0], (state.theta[0], info.is_accepted[0])

    counts = num_done + jnp.arange(CHUNK)
    theta, (states, moved) = jax.lax.scan(propose, theta, counts)
    return theta, states, moved

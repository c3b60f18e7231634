"""A whole run of the paper's algorithm: guide, training, frozen phase."""

import time
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from vhmc._arguments import whole
from vhmc._types import PRNGKey
from vhmc.evaluation.evaluator import RunFailure
from vhmc.evaluation.target import Target
from vhmc.numerics.chains import find_step_size, run_chains
from vhmc.numerics.gaussian import Gaussian
from vhmc.numerics.hmc import HMC
from vhmc.paper.algorithm2 import VHMC
from vhmc.paper.doubts import doubts
from vhmc.paper.laplace_guide import laplace
from vhmc.paper.training import Trained, train
from vhmc.sampler.posterior import Posterior
from vhmc.surrogate.surrogate import LogDensity

TUNING_CHAINS = 16
LEAST_ACCEPTANCE = 0.01
"""Below it the frozen chains do not move, whatever the step size."""


def sample_paper(
    target: Target,
    method: VHMC | None = None,
    *,
    start: Any = None,
    draws: int = 1000,
    chains: int = 4,
    warmup: int = 500,
    seed: int = 0,
) -> Posterior:
    r"""Sample a posterior by Algorithm 2.

    target: the model.
    method: settings of the algorithm.
    start: values in the user's space where the search for the mode and the chain begin;
        unless given, the search begins at the target's and the chain at the mode.
    draws: draws kept of every chain on the frozen surrogate.
    chains: chains on the frozen surrogate, run in one batch.
    warmup: transitions of each chain that are not kept.
    seed: of all random numbers of the run.
    """
    method = VHMC() if method is None else method
    draws, chains = whole("draws", draws, 1), whole("chains", chains, 1)
    warmup, seed = whole("warmup", warmup), whole("seed", seed)
    method.check_dim(target.dim)
    origin = target.start if start is None else target.parameters.flatten(start)
    keys = jax.random.split(jax.random.key(seed), 5)
    key_nodes, key_tune, key_train, key_retune, key_draw = keys

    began = time.perf_counter()
    fitted = laplace(target, origin)
    theta = fitted.guide.mean if start is None else jnp.asarray(origin)
    kernel = initial_kernel(key_tune, method, fitted.guide)
    state = method.init(key_nodes, theta, fitted.guide, kernel)
    one_replica = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], state)
    (trained,) = train(key_train[None], method, target, one_replica)
    if trained.failure:
        raise RunFailure(trained.failure, trained=[trained])
    trained_after = time.perf_counter() - began

    kernel, starts = frozen_kernel(key_retune, method, trained, chains)
    surrogate = trained.state.surrogate
    run = run_chains(key_draw, kernel, starts, surrogate, draws, warmup)
    unconstrained = np.asarray(run.theta)
    acceptance = float(run.accept_prob.mean())
    if not acceptance > LEAST_ACCEPTANCE:
        raise RunFailure(
            f"chains on the frozen surrogate accept {acceptance:.2g} of their "
            "proposals: raise the ridge or the number of nodes",
            trained=[trained],
        )
    drawn_after = time.perf_counter() - began

    notes = [*fitted.warnings, *doubts(method, trained, run)]
    for note in notes:
        warnings.warn(note, stacklevel=2)
    return Posterior(
        parameters=target.parameters,
        unconstrained=unconstrained,
        stats={
            "surrogate_lp": -np.asarray(run.energy),
            "acceptance_rate": np.asarray(run.accept_prob),
            "diverging": np.asarray(run.is_divergent),
        },
        costs={
            "search": fitted.num_search,
            "hessian": fitted.num_hessian,
            "training": len(trained.theta),
        },
        seconds={"training": trained_after, "drawing": drawn_after - trained_after},
        trained=trained,
        surrogate=LogDensity(surrogate),
        warnings=tuple(notes),
    )


def initial_kernel(key: PRNGKey, method: VHMC, guide: Gaussian) -> HMC:
    """The kernel of the training phase, its step found on the guide unless given."""
    kernel = method.initial_kernel(guide)
    if method.step_size is not None:
        return kernel
    starts = jnp.broadcast_to(guide.mean, (TUNING_CHAINS, len(guide.mean)))
    return find_step_size(key, kernel, starts, guide, method.acceptance).kernel


def frozen_kernel(
    key: PRNGKey, method: VHMC, trained: Trained, chains: int
) -> tuple[HMC, jax.Array]:
    """The kernel and the starts of the frozen phase.

    Chains start at states of the second half of training. The step is tuned anew: its
    acceptance is the surrogate's business, and the surrogate is no longer the guide.
    """
    key_starts, key_step = jax.random.split(key)
    state = trained.state
    half = jnp.asarray(trained.theta[len(trained.theta) // 2 :])
    pool = half if len(half) else state.theta[None]
    starts = pool[jax.random.randint(key_starts, (chains,), 0, len(pool))]
    if method.step_size is not None:
        return state.kernel, starts
    tuning = find_step_size(
        key_step, state.kernel, starts, state.surrogate, method.acceptance
    )
    return tuning.kernel, tuning.theta

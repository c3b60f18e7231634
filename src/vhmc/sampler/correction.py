"""The correction ladder: from draws of the surrogate to draws of the posterior."""

from typing import NamedTuple

import numpy as np

from vhmc.numerics.effective_size import bulk_ess
from vhmc.sampler.check import Check
from vhmc.sampler.delayed_acceptance import DelayedAcceptance
from vhmc.sampler.drawing import Frozen
from vhmc.surrogate.trainer import Learner

RUN = 10
"""Surrogate transitions between two exact draws, at least."""
MOST_RUN = 100
LEAST_EFFECTIVE = 20
"""Checked draws, counted by their weights, below which resampling is no choice."""


class Exact(NamedTuple):
    """Draws of the exact rung.

    theta: unconstrained, shape (chain, draw, dim).
    acceptance: by the true energies.
    """

    theta: np.ndarray
    acceptance: float


class Estimate(NamedTuple):
    """An expectation, its standard error and how it was estimated.

    kind: `draws` for the mean of the free draws, `control variate` for that mean
        moved by what the importance weights say of its bias, `exact draws` for the
        mean of those.
    """

    value: np.ndarray
    error: np.ndarray
    kind: np.ndarray


def importance_draws(
    rng: np.random.Generator, check: Check, shape: tuple[int, int]
) -> np.ndarray:
    """Checked points resampled by their weights, as chains of draws."""
    chosen = rng.choice(len(check.theta), shape, p=check.weights)
    return check.theta[chosen]


def exact_draws(
    rng: np.random.Generator,
    learner: Learner,
    frozen: Frozen,
    check: Check,
    num_evaluations: int,
    num_chains: int,
) -> Exact:
    """Chains of delayed acceptance from checked points, resampled by their weights."""
    chains = max(1, min(num_chains, num_evaluations // 10))
    chosen = rng.choice(len(check.theta), chains, p=check.weights)
    worth = frozen.ess / frozen.energy.size
    step_size, num_steps, between = frozen.pace
    length = int(np.clip(between * 2 / max(worth, 0.02), RUN, MOST_RUN))
    kernel = DelayedAcceptance(
        learner, learner.residual(), step_size, num_steps, length
    )
    state = kernel.init(check.theta[chosen], check.energy[chosen])
    kept, accepted = [], []
    for _ in range(num_evaluations // chains):
        state, accept_prob = kernel.step(rng, state)
        kept.append(state.theta)
        accepted.append(accept_prob)
    return Exact(np.stack(kept, axis=1), float(np.mean(accepted)))


def best_rung(check: Check, free: np.ndarray) -> str:
    """`none` or `importance`, whichever has the smaller estimated error.

    The weights show the bias of the free draws, up to their own noise; resampling
    removes it at the price of that noise and of far fewer draws. A handful of draws
    that carry all the weight shows nothing, its own noise least of all.
    """
    effective = 1 / np.sum(check.weights**2)
    if effective < LEAST_EFFECTIVE:
        return "none"
    scale = free.std(axis=0)
    scaled = (check.theta - free.mean(axis=0)) / np.where(scale > 0, scale, 1.0)
    values = np.concatenate([scaled, (scaled**2 - 1) / 2], axis=1)
    shift, noise = _shift(values, check.share, check.weights)
    bias = np.mean(np.maximum(shift**2 - noise**2, 0.0))
    weighted = check.weights @ values
    resampling = max(
        np.mean(check.weights**2 @ (values - weighted) ** 2),
        np.mean(values.var(axis=0)) / effective,
    )
    return "importance" if bias > resampling else "none"


def expect(
    free: np.ndarray,
    checked: np.ndarray,
    share: np.ndarray,
    weights: np.ndarray,
    ess: float,
) -> Estimate:
    """Means of quantities, with the free draws as a control variate where it pays.

    free, checked: values at the free and at the checked draws, one row a draw.
    share, weights: of the checked draws, for the surrogate and for the posterior.
    ess: effective number of the free draws.
    """
    shift, noise = _shift(checked, share, weights)
    mean, chance = free.mean(axis=0), free.std(axis=0) / np.sqrt(max(ess, 1.0))
    bias = np.sqrt(np.maximum(shift**2 - noise**2, 0.0))
    is_moved = bias > noise
    return Estimate(
        value=np.where(is_moved, mean + shift, mean),
        error=np.sqrt(chance**2 + np.where(is_moved, noise**2, bias**2)),
        kind=np.where(is_moved, "control variate", "draws"),
    )


def mean_of_chains(values: np.ndarray) -> Estimate:
    """Means of exact draws.

    values: shape (chain, draw, quantity).
    """
    ess = bulk_ess(values) if values.shape[1] >= 4 else np.ones(values.shape[-1])
    error = values.std(axis=(0, 1)) / np.sqrt(np.maximum(ess, 1.0))
    kind = np.full(error.shape, "exact draws")
    return Estimate(values.mean(axis=(0, 1)), error, kind)


def _shift(
    values: np.ndarray, share: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Posterior's less surrogate's mean, and the standard error of that difference."""
    weighted, plain = weights @ values, share @ values
    influence = weights[:, None] * (values - weighted) - share[:, None] * (
        values - plain
    )
    # One draw with all the weight has no spread of its own, and yet it is chance.
    unevenness = np.sum(weights**2) - np.sum(share**2)
    least = max(unevenness, 0.0) * (share @ (values - plain) ** 2)
    noise = np.sqrt(np.maximum(np.sum(influence**2, axis=0), least))
    return weighted - plain, noise

"""The methods that `vhmc.sample` is compared with, each under one budget of calls.

All start from `target.start`, or around it, and count every call of the model. Failure
is a value: draws of NaN, with a note that says why.
"""

from typing import NamedTuple

import numpy as np

from vhmc.evaluation.target import Target
from vhmc.lab.baselines.nuts import nuts as baseline_nuts
from vhmc.lab.baselines.pathfinder import LINE_SEARCH, PATHS, Weighted, pathfinder
from vhmc.numerics.importance import pareto_smooth
from vhmc.paper.laplace_guide import laplace

CHAINS, WARMUP = 4, 1000
NO_START = "no finite start was found"


class Rival(NamedTuple):
    """What a method handed back.

    draws: unconstrained, one row a draw.
    num_evaluations: calls of the model, everything included.
    note: what a reader of a table should know, or nothing.
    """

    draws: np.ndarray
    num_evaluations: int
    note: str


def laplace_only(
    target: Target, budget: int, seed: int, num_draws: int = 4000
) -> Rival:
    """Draws of the Gaussian at the mode, which cost nothing more."""
    before = target.num_evaluations
    try:
        drawn, note = _laplace_draws(target, budget, seed, num_draws)
    except ValueError as error:
        return _failed(target, before, num_draws, str(error))
    return Rival(drawn.draws, target.num_evaluations - before, note)


def laplace_psis(
    target: Target, budget: int, seed: int, num_draws: int = 4000
) -> Rival:
    """The Gaussian at the mode, reweighted with what is left of the budget."""
    before = target.num_evaluations
    try:
        drawn, note = _laplace_draws(target, budget, seed, budget)
    except ValueError as error:
        return _failed(target, before, num_draws, str(error))
    left = budget - (target.num_evaluations - before)
    drawn = Weighted(drawn.draws[:left], drawn.log_density[:left])
    return _resampled(target, before, drawn, seed, num_draws, note)


def pathfinder_psis(
    target: Target, budget: int, seed: int, num_draws: int = 4000
) -> Rival:
    """Multi-path Pathfinder, pooled draws reweighted with what the paths left."""
    before = target.num_evaluations
    drawn = pathfinder(target, np.random.default_rng(seed), budget)
    if not drawn:
        return _failed(target, before, num_draws, "no path has a finite ELBO")
    share = (budget - (target.num_evaluations - before)) // len(drawn)
    pooled = Weighted(
        np.concatenate([part.draws[:share] for part in drawn]),
        np.concatenate([part.log_density[:share] for part in drawn]),
    )
    note = "" if len(drawn) == PATHS else f"{PATHS - len(drawn)} paths failed"
    return _resampled(target, before, pooled, seed, num_draws, note)


def nuts(target: Target, budget: int, seed: int, num_draws: int = 4000) -> Rival:
    """BlackJAX's NUTS with a dense metric: what one pays without a budget."""
    del budget
    before = target.num_evaluations
    run = baseline_nuts(target, seed, num_draws, WARMUP, CHAINS)
    if run is None:
        return _failed(target, before, num_draws, NO_START)
    draws = run.draws.reshape(-1, target.dim)
    return Rival(draws, run.num_evaluations, "")


def _laplace_draws(
    target: Target, budget: int, seed: int, num_draws: int
) -> tuple[Weighted, str]:
    max_search = budget - target.hessian_price - LINE_SEARCH
    if max_search < 1:
        raise ValueError(f"a budget of {budget} is too small for Laplace")
    found = laplace(target, target.start, max_search)
    whiten = np.asarray(found.guide.whiten)
    white = np.random.default_rng(seed).standard_normal((num_draws, target.dim))
    draws = np.asarray(found.guide.mean) + np.linalg.solve(whiten, white.T).T
    note = "; ".join(found.warnings)
    return Weighted(draws, -0.5 * np.sum(white**2, axis=1)), note


def _resampled(
    target: Target,
    before: int,
    drawn: Weighted,
    seed: int,
    num_draws: int,
    note: str,
) -> Rival:
    """Spend a call on each draw, smooth the weights, draw again with replacement."""
    energy = target.evaluate(drawn.draws).energy
    log_ratios = -energy - drawn.log_density
    is_finite = np.isfinite(log_ratios)
    if not is_finite.any():
        return _failed(target, before, num_draws, "no weight is finite")
    log_weights, tail = pareto_smooth(log_ratios[is_finite])
    weights = np.exp(log_weights - log_weights.max())
    chosen = np.random.default_rng([seed, 1]).choice(
        np.flatnonzero(is_finite), num_draws, p=weights / weights.sum()
    )
    notes = [f"{len(drawn.draws)} weights, Pareto k {tail:.2f}", note]
    num_evaluations = target.num_evaluations - before
    return Rival(drawn.draws[chosen], num_evaluations, "; ".join(filter(None, notes)))


def _failed(target: Target, before: int, num_draws: int, note: str) -> Rival:
    draws = np.full((num_draws, target.dim), np.nan)
    return Rival(draws, target.num_evaluations - before, f"failed: {note}")

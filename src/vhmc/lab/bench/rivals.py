"""The methods that `vhmc.sample` is compared with, each within a budget of evaluations.

All start from `target.start`, or around it, and count every evaluation. A method that
fails returns draws of NaN and a note that says why.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from vhmc.evaluation.target import Target
from vhmc.lab.baselines.nutpie_nuts import nutpie_nuts
from vhmc.lab.baselines.nutpie_within import nutpie_within as short_nutpie
from vhmc.lab.baselines.nuts import NUTS
from vhmc.lab.baselines.nuts import nuts as baseline_nuts
from vhmc.lab.baselines.nuts_within import nuts_within as short_nuts
from vhmc.lab.baselines.pathfinder import LINE_SEARCH, PATHS, Weighted, pathfinder
from vhmc.numerics.importance import pareto_smooth
from vhmc.paper.laplace_guide import laplace

CHAINS, WARMUP = 4, 1000


class Outcome(NamedTuple):
    """What a method returned.

    draws: unconstrained, along the last axis.
    num_evaluations: of the model, the search for a start included.
    note: what a reader of a table should know, or empty.
    verdict, correction: of `vhmc.sample`.
    """

    draws: np.ndarray
    num_evaluations: int
    note: str = ""
    verdict: str = ""
    correction: str = ""


def pathfinder_psis(
    target: Target, budget: int, seed: int, num_draws: int = 4000
) -> Outcome:
    """Multi-path Pathfinder; its pooled draws are reweighted with the budget left."""
    before = target.num_evaluations
    drawn = pathfinder(target, np.random.default_rng(seed), budget)
    if not drawn:
        return _failed(target, before, num_draws, "no path has a finite ELBO")
    per_path = (budget - (target.num_evaluations - before)) // len(drawn)
    pooled = Weighted(
        np.concatenate([part.draws[:per_path] for part in drawn]),
        np.concatenate([part.log_density[:per_path] for part in drawn]),
    )
    note = "" if len(drawn) == PATHS else f"{PATHS - len(drawn)} paths failed"
    return _resampled(target, before, pooled, seed, num_draws, note)


def _exact(
    sampler: Callable[..., NUTS | None],
    target: Target,
    budget: int,
    seed: int,
    num_draws: int = 4000,
) -> Outcome:
    """A long run with as many evaluations as it takes; no draws if JAX cannot trace."""
    del budget
    before = target.num_evaluations
    if target.traced_energy is None:
        return Outcome(np.empty((0, target.dim)), 0, "NUTS needs a model of JAX")
    run = sampler(target, seed, num_draws, WARMUP, CHAINS)
    if run is None:
        return _failed(target, before, num_draws, "no finite start was found")
    return Outcome(run.draws.reshape(-1, target.dim), run.num_evaluations)


nuts = partial(_exact, baseline_nuts)
"""BlackJAX's NUTS with a dense metric."""
nutpie = partial(_exact, nutpie_nuts)
"""nutpie's NUTS with a diagonal metric."""


def _short(
    sampler: Callable[[Target, int, int], NUTS | None],
    target: Target,
    budget: int,
    seed: int,
) -> Outcome:
    """One chain with its warm-up in the budget; draws are as few as there are."""
    before = target.num_evaluations
    run = sampler(target, seed, budget)
    if run is None:
        return _failed(target, before, 1, "no finite start was found")
    draws = run.draws.reshape(-1, target.dim)
    if len(draws) < 2:
        return _failed(target, before, 1, "the budget is too small for two draws")
    return Outcome(draws, run.num_evaluations, f"{len(draws)} draws")


nuts_within = partial(_short, short_nuts)
"""BlackJAX's NUTS with a diagonal metric on few gradients."""
nutpie_within = partial(_short, short_nutpie)
"""nutpie's NUTS with a diagonal metric on few gradients."""


def _laplace(
    is_weighted: bool, target: Target, budget: int, seed: int, num_draws: int = 4000
) -> Outcome:
    before = target.num_evaluations
    max_search = budget - target.hessian_price - LINE_SEARCH
    try:
        if max_search < 1:
            raise ValueError(f"a budget of {budget} is too small for Laplace")
        found = laplace(target, target.start, max_search)
    except ValueError as error:
        return _failed(target, before, num_draws, str(error))
    number = budget if is_weighted else num_draws
    white = np.random.default_rng(seed).standard_normal((number, target.dim))
    whiten = np.asarray(found.guide.whiten)
    draws = np.asarray(found.guide.mean) + np.linalg.solve(whiten, white.T).T
    note, spent = "; ".join(found.warnings), target.num_evaluations - before
    if not is_weighted:
        return Outcome(draws, spent, note)
    log_density = -0.5 * np.sum(white**2, axis=1)
    drawn = Weighted(draws[: budget - spent], log_density[: budget - spent])
    return _resampled(target, before, drawn, seed, num_draws, note)


laplace_only = partial(_laplace, False)
"""Draws of the Gaussian at the mode, which take no further evaluations."""
laplace_psis = partial(_laplace, True)
"""The Gaussian at the mode, reweighted with what is left of the budget."""


def _resampled(
    target: Target, before: int, drawn: Weighted, seed: int, num_draws: int, note: str
) -> Outcome:
    """Evaluate each draw, smooth the importance weights, resample with replacement."""
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
    return Outcome(drawn.draws[chosen], num_evaluations, "; ".join(filter(None, notes)))


def _failed(target: Target, before: int, num_draws: int, note: str) -> Outcome:
    draws = np.full((num_draws, target.dim), np.nan)
    return Outcome(draws, target.num_evaluations - before, f"failed: {note}")

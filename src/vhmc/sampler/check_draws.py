"""`vhmc.check`: judge draws from anywhere by true gradients at some of them."""

import warnings
from typing import Any

import numpy as np

from vhmc._arguments import whole
from vhmc.evaluation.target import Target
from vhmc.models.model_target import Data, Model, model_target
from vhmc.numerics.effective_size import worst_ess, worst_rhat
from vhmc.numerics.stein import stein_errors_of, stein_p_value
from vhmc.sampler.draws_verdict import DrawsStatistics, judge_draws
from vhmc.sampler.model_graph import labels_of
from vhmc.sampler.posterior import Posterior
from vhmc.sampler.verdict import Verdict

MOST_DRAWS = 4000
"""Draws, evenly spaced, that means and covariances are taken of."""
FEWEST_PER_DIM = 5
"""Draws by dimension below which a covariance means little."""


def check(
    model: Model,
    draws: Any,
    budget: int = 200,
    *,
    data: Data = None,
    seed: int = 0,
) -> Verdict:
    """Judge draws of a posterior, whoever made them.

    At most `budget` draws are evaluated. Stein's identities, which hold for draws of
    the posterior and need no density of the draws, give the errors of means and sds to
    first order, with standard errors. Modes that no draw is near remain unknown.

    model, data: as in `sample`.
    draws: a posterior, an object of ArviZ with a group `posterior`, a dict of arrays of
        shape (draw, ...) or (chain, draw, ...) by parameter, or unconstrained points of
        shape (draw, dim) or (chain, draw, dim).
    budget: evaluations, at most.
    seed: of the choice of draws.
    """
    target = model_target(model, data)
    points = whole("budget", budget, 20 * target.price) // target.price
    chains = unconstrained_chains(target, draws)
    flat = chains.reshape(-1, target.dim)
    if len(flat) < max(FEWEST_PER_DIM * target.dim, 20):
        raise ValueError(
            f"{len(flat)} draws are too few to judge in {target.dim} dimensions: give "
            f"{max(FEWEST_PER_DIM * target.dim, 20)} or more"
        )
    rng = np.random.default_rng(seed)
    chosen = rng.choice(len(flat), min(points, len(flat)), replace=False)
    answer = target.evaluate(flat[chosen])
    known = np.isfinite(answer.energy)
    if known.sum() < 10:
        return Verdict("bad", (f"the model had an answer at {known.sum()} draws only",))
    theta, grad = flat[chosen][known], answer.grad[known]
    has_chains = len(chains) > 1 and chains.shape[1] >= 4
    statistics = DrawsStatistics(
        labels=labels_of(target.parameters),
        errors=stein_errors_of(flat, theta, grad),
        p_value=stein_p_value(rng, flat, theta, grad),
        rhat=worst_rhat(chains) if has_chains else 1.0,
        ess=worst_ess(chains) if has_chains else float(len(flat)),
        failed_fraction=float(np.mean(~known)),
        num_checks=int(known.sum()),
    )
    verdict = judge_draws(statistics)
    if verdict.status == "bad":
        warnings.warn(f"verdict bad: {verdict.reasons[0]}", stacklevel=2)
    return verdict


def unconstrained_chains(target: Target, draws: Any) -> np.ndarray:
    """Unconstrained draws, shape (chain, draw, dim), at most `MOST_DRAWS` in all."""
    if isinstance(draws, Posterior):
        draws = draws.unconstrained
    if hasattr(draws, "posterior"):
        group = draws.posterior
        draws = {name: np.asarray(group[name]) for name in target.parameters.names}
    if isinstance(draws, dict):
        return _from_names(target, draws)
    points = np.asarray(draws, dtype=float)
    points = points[None] if points.ndim == 2 else points
    if points.ndim != 3 or points.shape[-1] != target.dim:
        raise ValueError(
            f"points must have shape (draw, {target.dim}) or (chain, draw, "
            f"{target.dim}), got {np.shape(draws)}"
        )
    return points[:, :: _thinning(points.shape)]


def _from_names(target: Target, draws: dict[str, Any]) -> np.ndarray:
    """From draws in the user's space."""
    space = target.parameters
    if missing := [name for name in space.names if name not in draws]:
        raise ValueError(f"draws of {', '.join(missing)} are missing")
    arrays = {name: np.asarray(draws[name], dtype=float) for name in space.names}
    first = space.names[0]
    num_leading = arrays[first].ndim - len(space.shapes[first])
    leading = arrays[first].shape[:num_leading]
    for name, array in arrays.items():
        if num_leading not in (1, 2) or array.shape != leading + space.shapes[name]:
            raise ValueError(
                f"draws of {name} must have shape (draw, ...) or (chain, draw, ...) "
                f"with ... {space.shapes[name]}, got {array.shape}"
            )
        arrays[name] = array.reshape(-1, leading[-1], *space.shapes[name])
    num_chains = 1 if num_leading == 1 else leading[0]
    kept = range(0, leading[-1], _thinning((num_chains, leading[-1])))
    rows = [
        [
            space.flatten({name: array[chain, draw] for name, array in arrays.items()})
            for draw in kept
        ]
        for chain in range(num_chains)
    ]
    return np.array(rows)


def _thinning(shape: tuple[int, ...]) -> int:
    return max(1, shape[0] * shape[1] // MOST_DRAWS)

"""The methods that `vhmc.sample` is compared with, each under one budget of calls.

All start from `target.start`, or around it, and count every call of the model. Failure
is a value: draws of NaN, with a note that says why.
"""

import itertools
from types import ModuleType
from typing import NamedTuple

import jax
import numpy as np
import scipy.optimize

from vhmc._types import Potential
from vhmc.diagnostics.importance import pareto_smooth
from vhmc.methods.laplace import laplace
from vhmc.targets.from_jax import TracedTarget
from vhmc.targets.target import Target

LINE_SEARCH = 20
"""Calls by which SciPy's last line search may overrun what L-BFGS is allowed."""

SPREAD = 2.0
"""Half-width of the cube that random starts come from, as in Stan."""

ATTEMPTS = 10
"""Points tried for one random start before we give up."""

PATHS = 4
HISTORY = 6
ELBO_DRAWS = 5
"""Pathfinder's choices: paths as in Stan, the other two as in Zhang et al. (2022)."""

CHAINS, WARMUP = 4, 1000


class Rival(NamedTuple):
    """What a method handed back.

    draws: unconstrained, one row a draw.
    num_evaluations: calls of the model, everything included.
    note: what a reader of a table should know, or nothing.
    """

    draws: np.ndarray
    num_evaluations: int
    note: str


class Weighted(NamedTuple):
    """Draws from an approximation with the log of its density at each."""

    draws: np.ndarray
    log_density: np.ndarray


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
    """Multi-path Pathfinder (Zhang et al., 2022), pooled draws reweighted.

    At most half the budget goes to the paths and a quarter to their ELBOs; the rest is
    for the weights. The formulas are BlackJAX's; the paths are SciPy's, as BlackJAX
    calls the model twice a step and pays for ELBOs of steps that were never made.
    """
    before = target.num_evaluations
    rng = np.random.default_rng(seed)
    drawn = []
    for _ in range(PATHS):
        path = _path(target, rng, budget // (2 * PATHS))
        best = _best_fit(target, rng, _fits(path), budget // (4 * PATHS))
        if best is not None:
            drawn.append(_draw(best, rng, budget))
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
    """BlackJAX's NUTS with a dense metric: what one pays without a budget.

    Calls are counted from the lengths of the trajectories: chains that run in step
    would otherwise be charged for the longest.
    """
    del budget
    blackjax = load_blackjax()
    before = target.num_evaluations
    rng = np.random.default_rng(seed)
    found = [_random_start(target, rng, ATTEMPTS) for _ in range(CHAINS)]
    starts = [start for start in found if start is not None]
    if len(starts) < CHAINS:
        return _failed(target, before, num_draws, "no finite start was found")
    log_density = _log_density(target)

    def chain(key, start):
        key_warmup, key_sample = jax.random.split(key)
        warmup = blackjax.window_adaptation(
            blackjax.nuts, log_density, is_mass_matrix_diagonal=False
        )
        (state, tuned), warm = warmup.run(key_warmup, start, num_steps=WARMUP)
        kernel = blackjax.nuts(log_density, **tuned).step

        def step(state, key):
            state, info = kernel(key, state)
            return state, (state.position, info.num_integration_steps)

        keys = jax.random.split(key_sample, num_draws // CHAINS)
        _, (draws, num_steps) = jax.lax.scan(step, state, keys)
        return draws, warm.info.num_integration_steps.sum() + num_steps.sum()

    keys = jax.random.split(jax.random.key(seed), CHAINS)
    draws, num_steps = jax.jit(jax.vmap(chain))(keys, np.stack(starts))
    # One call more a chain, for the energy that its first step starts from.
    num_chains = int(num_steps.sum()) + CHAINS
    num_starts = target.num_evaluations - before
    return Rival(np.asarray(draws).reshape(-1, target.dim), num_starts + num_chains, "")


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


class _Point(NamedTuple):
    theta: np.ndarray
    grad: np.ndarray


class _Fit(NamedTuple):
    """A Gaussian along a path, in BlackJAX's factors of its covariance."""

    point: _Point
    alpha: np.ndarray
    beta: np.ndarray
    gamma: np.ndarray


class _SpentError(Exception):
    """A path has made the calls it was allowed."""


def _path(target: Target, rng: np.random.Generator, allowed: int) -> list[_Point]:
    """The iterates of L-BFGS from a random start, within `allowed` calls."""
    before = target.num_evaluations
    start = _random_start(target, rng, min(ATTEMPTS, allowed))
    if start is None:
        return []
    path: list[_Point] = []
    grads: dict[bytes, np.ndarray] = {}
    highest = -np.inf

    def objective(theta):
        nonlocal highest
        if target.num_evaluations - before >= allowed:
            raise _SpentError
        answer = target.evaluate(theta[None])
        energy, grad = float(answer.energy[0]), answer.grad[0]
        if not (np.isfinite(energy) and np.isfinite(grad).all()):
            # A low wall halves the step, where infinity would break the line search.
            return highest + 1.0, np.zeros_like(theta)
        highest = max(highest, energy)
        grads[theta.tobytes()] = grad
        if not path:
            path.append(_Point(theta.copy(), grad))
        return energy, grad

    def remember(theta):
        path.append(_Point(theta.copy(), grads[theta.tobytes()]))

    options = {"maxcor": HISTORY, "maxls": LINE_SEARCH, "ftol": 1e-9}
    try:
        scipy.optimize.minimize(
            objective,
            start,
            jac=True,
            method="L-BFGS-B",
            callback=remember,
            options=options,
        )
    except _SpentError:
        pass
    return path


def _fits(path: list[_Point]) -> list[_Fit]:
    """The Gaussian at each point of a path after its first."""
    if len(path) < 2:
        return []
    lbfgs = load_blackjax().optimizers.lbfgs
    factors = jax.jit(lbfgs.lbfgs_inverse_hessian_factors)
    recover = jax.jit(lbfgs.lbfgs_recover_alpha)
    dim = len(path[0].theta)
    alpha = np.ones(dim)
    # Columns of zeros until there are enough steps: one shape, one compilation.
    moves, turns = [np.zeros(dim)] * HISTORY, [np.zeros(dim)] * HISTORY
    fits = []
    for previous, point in itertools.pairwise(path):
        move, turn = point.theta - previous.theta, point.grad - previous.grad
        alpha, is_curved = recover(alpha, move, turn)
        if is_curved.all():
            moves, turns = [*moves[1:], move], [*turns[1:], turn]
        beta, gamma = factors(np.stack(moves, axis=1), np.stack(turns, axis=1), alpha)
        fits.append(_Fit(point, alpha, beta, gamma))
    return fits


def _best_fit(
    target: Target, rng: np.random.Generator, fits: list[_Fit], allowed: int
) -> _Fit | None:
    """The fit of the highest ELBO, if any is finite, within `allowed` calls."""
    # Where there are too many, take some of all the path: its end is not always best.
    number = min(len(fits), allowed // ELBO_DRAWS)
    best, highest = None, -np.inf
    for i in np.linspace(0, len(fits) - 1, number).round().astype(int):
        drawn = _draw(fits[i], rng, ELBO_DRAWS)
        if not np.isfinite(drawn.draws).all():
            continue
        energy = target.evaluate(drawn.draws).energy
        elbo = np.mean(-energy - drawn.log_density)
        if np.isfinite(elbo) and elbo > highest:
            best, highest = fits[i], elbo
    return best


def _draw(fit: _Fit, rng: np.random.Generator, number: int) -> Weighted:
    sample = jax.jit(load_blackjax().optimizers.lbfgs.bfgs_sample, static_argnums=1)
    key = jax.random.key(rng.integers(2**32))
    # BlackJAX adds where the paper adds a gradient of the log density: hence the minus.
    drawn = sample(
        key, number, fit.point.theta, -fit.point.grad, fit.alpha, fit.beta, fit.gamma
    )
    return Weighted(*map(np.asarray, drawn))


def _random_start(
    target: Target, rng: np.random.Generator, attempts: int
) -> np.ndarray | None:
    """A point around the start with a finite energy and gradient, as Stan finds it."""
    for _ in range(attempts):
        theta = target.start + rng.uniform(-SPREAD, SPREAD, target.dim)
        answer = target.evaluate(theta[None])
        if np.isfinite(answer.energy[0]) and np.isfinite(answer.grad).all():
            return theta
    return None


def _log_density(target: Target) -> Potential:
    """The log density without its count, whose host calls would slow the chains."""
    if not isinstance(target, TracedTarget):
        raise TypeError("nuts needs a target of from_jax")
    batched = target._batched

    @jax.custom_vjp
    def log_density(theta):
        return -batched(theta[None])[0][0]

    def forward(theta):
        energy, grad = batched(theta[None])
        return -energy[0], -grad[0]

    log_density.defvjp(forward, lambda grad, cotangent: (cotangent * grad,))
    return log_density


def load_blackjax() -> ModuleType:
    """BlackJAX, which only Pathfinder and NUTS need."""
    try:
        import blackjax
        import blackjax.optimizers.lbfgs
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "Pathfinder and NUTS need BlackJAX: pip install 'vhmc[bench]'"
        ) from error
    return blackjax

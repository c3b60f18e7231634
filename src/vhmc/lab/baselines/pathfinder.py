"""Multi-path Pathfinder (Zhang et al., 2022), every evaluation counted.

The formulas are BlackJAX's. The paths are SciPy's: BlackJAX evaluates the model twice
per step, and estimates ELBOs of steps that were never made.
"""

import contextlib
import itertools
from typing import NamedTuple

import jax
import numpy as np
import scipy.optimize

from vhmc.evaluation.target import Target
from vhmc.lab.baselines.nuts import ATTEMPTS, load_blackjax, random_start

LINE_SEARCH = 20
"""Evaluations by which SciPy's last line search may exceed the limit of L-BFGS."""

PATHS = 4
HISTORY = 6
ELBO_DRAWS = 5
"""Pathfinder's choices: paths as in Stan, the other two as in Zhang et al. (2022)."""


class Weighted(NamedTuple):
    """Draws from an approximation, with its log density at each."""

    draws: np.ndarray
    log_density: np.ndarray


def pathfinder(target: Target, rng: np.random.Generator, budget: int) -> list[Weighted]:
    """Draws of the best Gaussian of each path that has one.

    At most half the budget goes to the paths and a quarter to their ELBOs.
    """
    drawn = []
    for _ in range(PATHS):
        path = _path(target, rng, budget // (2 * PATHS))
        best = _best_fit(target, rng, _fits(path), budget // (4 * PATHS))
        if best is not None:
            drawn.append(_draw(best, rng, budget))
    return drawn


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
    """A path has used the evaluations it was allowed."""


def _path(target: Target, rng: np.random.Generator, allowed: int) -> list[_Point]:
    """The iterates of L-BFGS from a random start, within `allowed` evaluations."""
    before = target.num_evaluations
    start = random_start(target, rng, min(ATTEMPTS, allowed))
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
            # A bit higher, which halves the step; infinity would end the search.
            return highest + 1.0, np.zeros_like(theta)
        highest = max(highest, energy)
        grads[theta.tobytes()] = grad
        if not path:
            path.append(_Point(theta.copy(), grad))
        return energy, grad

    def remember(theta):
        path.append(_Point(theta.copy(), grads[theta.tobytes()]))

    how = {"jac": True, "method": "L-BFGS-B", "callback": remember}
    options = {"maxcor": HISTORY, "maxls": LINE_SEARCH, "ftol": 1e-9}
    with contextlib.suppress(_SpentError):
        scipy.optimize.minimize(objective, start, options=options, **how)
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
    # Columns of zeros until there are enough steps keep the shape: one compilation.
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
    """The fit of the highest ELBO, if any is finite, within `allowed` evaluations."""
    # If there are too many, spread over the path: its end is not always best.
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
    # BlackJAX expects the gradient of the log density.
    (theta, grad), *factors = fit
    return Weighted(*map(np.asarray, sample(key, number, theta, -grad, *factors)))

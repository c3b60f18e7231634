"""Locate the posterior: descents from several starts, and a first Gaussian."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.optimize

from vhmc.evaluation.evaluator import Evaluate, most_common
from vhmc.numerics.gaussian import positive_definite
from vhmc.sampler.descents import Descent, Evaluated, descend
from vhmc.transport.affine import Affine, affine_from_precision

MAX_STARTS = 8
FIRST_LEG = 20
"""Evaluations after which the two best descents go on alone."""
PATIENCE = 6
LEAST_FALL = 0.05
"""A descent that fell by less than this (nats) in the last accepted steps has ended."""
NUM_PLACES = 8
"""Points along a descent that may be better than its end."""
NEWTON_STEPS = 3
CLOSE = 0.01
"""Squared distance from the mode, in standard deviations, that is close enough."""
ARRIVED = 0.1
"""Squared distance from the mode, in standard deviations a dimension, of an arrival."""
HALF_WIDTH = 2.0
"""Of the box of random starts, as in Stan."""


class Modes(NamedTuple):
    """Where the descents ended.

    Those that were cut off count as well: they may have been on their way to a mode
    that no other descent found.

    ends: lowest point of every descent, one a row.
    energies: true energies there.
    grads: their true gradients there, zero along what was held.
    arrived: whether a descent has come to a mode, as far as its own curvature tells.
    has_mode: whether the energy curves upwards at the best end.
    held: coordinates that each descent held at the values of its start.
    """

    ends: np.ndarray
    energies: np.ndarray
    grads: np.ndarray
    arrived: np.ndarray
    has_mode: bool
    held: tuple[int, ...] = ()


class Located(NamedTuple):
    """Gaussians around the best end of the descents, and all ends.

    layer: Gaussian around the best point, as an affine layer.
    others: Gaussians around points on the way there.
    modes: ends of all descents.
    """

    layer: Affine
    others: list[Affine]
    modes: Modes


def locate(
    rng: np.random.Generator,
    evaluate: Evaluate,
    origin: np.ndarray,
    allowance: int,
    hessian: Callable[[np.ndarray], np.ndarray] | None = None,
) -> Located:
    """Descend from several starts and measure the curvature at the best end.

    origin: the first start, unconstrained.
    allowance: evaluations for the descents and Newton's steps after them.
    hessian: of the energy at a point; without one the descents' own curvature serves.
    """
    num_starts = int(np.clip(allowance // (2 * FIRST_LEG), 1, MAX_STARTS))
    descents = [Descent(start) for start in starts(rng, origin, num_starts)]
    left = allowance - (NEWTON_STEPS if hessian else 0)
    reasons: list[np.ndarray] = []

    def counted(thetas):
        nonlocal left
        left -= len(thetas)
        answer = evaluate(thetas, "search")
        reasons.append(answer.reason)
        return answer

    try:
        first = min(FIRST_LEG, max(1, left // num_starts))
        descend(descents, counted, first, is_finished)
        best = sorted(descents, key=lambda descent: descent.energy)[:2]
        if not np.isfinite(best[0].energy):
            raise no_start(origin, reasons)
        best = [descent for descent in best if np.isfinite(descent.energy)]
        descend(best, counted, max(left, 0) // len(best), is_finished)
        best.sort(key=lambda descent: descent.energy)
    finally:
        for descent in descents:
            descent.close()
    found = [descent for descent in descents if descent.path]
    layer, is_convex = first_layer(evaluate, best[0].path, hessian)
    modes = modes_of(found, len(origin), is_convex)
    return Located(layer, layers_on_path(best), modes)


def modes_of(
    descents: list[Descent],
    dim: int,
    has_mode: bool,
    held: tuple[int, ...] = (),
) -> Modes:
    """Where these descents ended; each has a path."""
    return Modes(
        np.array([descent.theta for descent in descents]).reshape(-1, dim),
        np.array([descent.energy for descent in descents]),
        np.array([descent.path[-1].grad for descent in descents]).reshape(-1, dim),
        np.array([has_arrived(descent.path) for descent in descents], dtype=bool),
        has_mode,
        held,
    )


def has_arrived(path: list[Evaluated]) -> bool:
    """Whether Newton's step at the end of a descent is short, in standard deviations.

    By the curvature that the descent saw: squared, the step is the gradient's length
    where that is one in every direction.
    """
    whitened = path_layer(path).factor.T @ path[-1].grad
    return bool(whitened @ whitened < ARRIVED * len(whitened))


def starts(
    rng: np.random.Generator, origin: np.ndarray, number: int
) -> list[np.ndarray]:
    """The user's start, then random ones: around zero and around it in turn."""
    boxes = rng.uniform(-HALF_WIDTH, HALF_WIDTH, (number, len(origin)))
    centers = [origin if i % 2 else np.zeros_like(origin) for i in range(number)]
    return [
        origin if i == 0 else center + box
        for i, (center, box) in enumerate(zip(centers, boxes, strict=True))
    ]


def no_start(origin: np.ndarray, reasons: list[np.ndarray]) -> ValueError:
    """The error where no descent can begin.

    reasons: why the model failed, by batch.
    """
    return ValueError(
        f"the log density or its gradient is not finite at the start {origin} and "
        f"around it ({most_common(np.concatenate(reasons))}): mend the model, or give "
        "other initial values"
    )


def is_finished(descent: Descent) -> bool:
    """Whether the last steps gained nothing that a sampler would notice."""
    path = descent.path
    if len(path) <= PATIENCE:
        return False
    return path[-1 - PATIENCE].energy - path[-1].energy < LEAST_FALL


def first_layer(
    evaluate: Evaluate,
    path: list[Evaluated],
    hessian: Callable[[np.ndarray], np.ndarray] | None,
) -> tuple[Affine, bool]:
    """Laplace's Gaussian at the end of a descent, and whether it is convex there."""
    theta, energy, grad = path[-1]
    if hessian is None:
        return path_layer(path), True
    matrix = hessian(theta)
    if not np.isfinite(matrix).all():
        # The model failed next to the end, which says nothing of the end itself.
        return path_layer(path), True
    if not np.abs(matrix).max() > 0:
        return path_layer(path), False
    precision, repairs = positive_definite(matrix)
    layer = affine_from_precision(theta, precision)
    for _ in range(NEWTON_STEPS):
        whitened = grad @ layer.factor
        if whitened @ whitened < CLOSE:
            break
        # A step of at most one standard deviation a dimension: the curvature is local.
        step = whitened * min(1.0, np.sqrt(len(theta)) / np.linalg.norm(whitened))
        trial = layer.forward(-step[None])
        answer = evaluate(trial, "search")
        if not answer.energy[0] < energy:
            break
        theta, energy, grad = trial[0], float(answer.energy[0]), answer.grad[0]
        layer = Affine(theta, layer.factor)
    return layer, not repairs


def layers_on_path(descents: list[Descent]) -> list[Affine]:
    """Gaussians on the way of descents.

    Where the energy falls without bound, or into a neck, the posterior has next to no
    volume: its mass is somewhere on the way (Pathfinder's idea, Zhang et al. 2022).
    """
    return [
        path_layer(descent.path[:end])
        for descent in descents
        for end in np.unique(np.linspace(2, len(descent.path), NUM_PLACES).astype(int))
        if len(descent.path) >= 2
    ]


def path_layer(path: list[Evaluated]) -> Affine:
    """Gaussian from the curvature that L-BFGS itself saw on its way."""
    theta = path[-1].theta
    points = np.array([point.theta for point in path])
    grads = np.array([point.grad for point in path])
    moves, turns = np.diff(points, axis=0)[-10:], np.diff(grads, axis=0)[-10:]
    is_convex = np.sum(moves * turns, axis=1) > 0
    moves, turns = moves[is_convex], turns[is_convex]
    if not len(moves):
        return Affine(theta, np.eye(len(theta)))
    scale = np.sqrt(np.sum(moves[-1] * turns[-1]) / np.sum(turns[-1] ** 2))
    inverse = scipy.optimize.LbfgsInvHessProduct(moves / scale, turns * scale)
    covariance = scale**2 * inverse.todense()
    return Affine(theta, np.linalg.cholesky((covariance + covariance.T) / 2))

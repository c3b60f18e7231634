"""Where the posterior is: descents from several starts, and a first Gaussian."""

from typing import NamedTuple

import numpy as np
import scipy.optimize

from vhmc.evaluation.evaluator import Account, most_common
from vhmc.numerics.gaussian import positive_definite
from vhmc.sampler.descents import Descent, descend
from vhmc.transport.affine import Frame, frame_from_precision

MOST_STARTS = 8
FIRST_LEG = 20
"""Evaluations after which the two best descents go on alone."""
LEG_PATIENCE = 6
LEAST_FALL = 0.05
"""A descent that fell by less than this (nats) in the last accepted steps is over."""
PLACES = 8
"""On the way of a descent that might be better than its end."""
NEWTON_STEPS = 3
CLOSE = 0.01
"""Squared distance from the mode, in standard deviations, that is close enough."""
SPREAD = 2.0
"""Half width of the box of random starts, as in Stan."""


class Located(NamedTuple):
    """A first frame, and where the descents ended.

    frame: Gaussian around the best point.
    others: Gaussians around places on the way there.
    ends: lowest point of every descent, one a row.
    energies: true energies there.
    is_finished: whether each had stopped falling.
    has_mode: whether the best end is one: the energy rests and curves upwards there.
    """

    frame: Frame
    others: list[Frame]
    ends: np.ndarray
    energies: np.ndarray
    is_finished: np.ndarray
    has_mode: bool


def locate(
    account: Account,
    rng: np.random.Generator,
    allowance: int,
    with_hessian: bool,
    origin: np.ndarray | None = None,
) -> Located:
    """Descend from several starts and measure the curvature at the best end.

    allowance: calls of the model for the descents.
    with_hessian: whether the curvature may be paid for, too.
    origin: the first start; the target's own unless given.
    """
    target = account.target
    origin = target.start if origin is None else origin
    num_starts = int(np.clip(allowance // (2 * FIRST_LEG), 1, MOST_STARTS))
    descents = [Descent(start) for start in starts(origin, num_starts, rng)]
    try:
        # Three calls are for Newton's steps after the Hessian.
        limit = account.left - allowance + (NEWTON_STEPS if with_hessian else 0)

        def evaluate(thetas):
            return account.evaluate(thetas, "search")

        first = min(FIRST_LEG, max(1, (account.left - limit) // num_starts))
        descend(descents, evaluate, first, is_finished)
        remaining = max(account.left - limit, 0)
        best = sorted(descents, key=lambda descent: descent.energy)[:2]
        if not np.isfinite(best[0].energy):
            raise ValueError(
                "the log density or its gradient is not finite at the start "
                f"{origin} and around it "
                f"({most_common(account.paid.reason)}): mend the model, or give other "
                "initial values"
            )
        best = [descent for descent in best if np.isfinite(descent.energy)]
        descend(best, evaluate, remaining // len(best), is_finished)
        best.sort(key=lambda descent: descent.energy)
    finally:
        for descent in descents:
            descent.close()
    found = [descent for descent in descents if descent.path]
    frame, is_convex = first_frame(account, best[0], with_hessian)
    return Located(
        frame,
        frames_on_path(best),
        np.stack([descent.theta for descent in found]),
        np.array([descent.energy for descent in found]),
        np.array([descent.is_done or is_finished(descent) for descent in found]),
        is_convex and (best[0].is_done or is_finished(best[0])),
    )


def starts(
    origin: np.ndarray, number: int, rng: np.random.Generator
) -> list[np.ndarray]:
    """The user's start, then random ones: around it and around zero in turn."""
    boxes = rng.uniform(-SPREAD, SPREAD, (number, len(origin)))
    centers = [origin if i % 2 else np.zeros_like(origin) for i in range(number)]
    return [
        origin if i == 0 else center + box
        for i, (center, box) in enumerate(zip(centers, boxes, strict=True))
    ]


def is_finished(descent: Descent) -> bool:
    """Whether the last steps gained nothing that a sampler would notice."""
    path = descent.path
    if len(path) <= LEG_PATIENCE:
        return False
    return path[-1 - LEG_PATIENCE][1] - path[-1][1] < LEAST_FALL


def first_frame(
    account: Account, descent: Descent, with_hessian: bool
) -> tuple[Frame, bool]:
    """Laplace's Gaussian at the end of a descent, and whether it is convex there."""
    theta, energy, grad = descent.path[-1]
    if not with_hessian:
        return path_frame(descent.path), True
    hessian = account.hessian(theta, "hessian")
    if not np.isfinite(hessian).all():
        # The model failed next to the end, which says nothing of the end itself.
        return path_frame(descent.path), True
    if not np.abs(hessian).max() > 0:
        return path_frame(descent.path), False
    precision, repairs = positive_definite(hessian)
    frame = frame_from_precision(theta, precision)
    for _ in range(min(NEWTON_STEPS, account.left)):
        whitened = grad @ frame.factor
        if whitened @ whitened < CLOSE:
            break
        # A step of at most one standard deviation a dimension: the curvature is local.
        step = whitened * min(1.0, np.sqrt(len(theta)) / np.linalg.norm(whitened))
        trial = frame.to_theta(-step[None])
        answer = account.evaluate(trial, "search")
        if not answer.energy[0] < energy:
            break
        theta, energy, grad = trial[0], float(answer.energy[0]), answer.grad[0]
        frame = Frame(theta, frame.factor)
    return frame, not repairs


def frames_on_path(descents: list[Descent]) -> list[Frame]:
    """Gaussians on the way of descents.

    Where the energy falls without end, or into a neck, the posterior has next to no
    volume: its mass is somewhere on the way (Pathfinder's idea, Zhang et al. 2022).
    """
    return [
        path_frame(descent.path[:end])
        for descent in descents
        for end in np.unique(np.linspace(2, len(descent.path), PLACES).astype(int))
        if len(descent.path) >= 2
    ]


def path_frame(path: list[tuple[np.ndarray, float, np.ndarray]]) -> Frame:
    """Gaussian from the curvature that L-BFGS itself saw on its way."""
    theta = path[-1][0]
    points, _, grads = (np.array(rows) for rows in zip(*path, strict=True))
    moves, turns = np.diff(points, axis=0)[-10:], np.diff(grads, axis=0)[-10:]
    is_convex = np.sum(moves * turns, axis=1) > 0
    moves, turns = moves[is_convex], turns[is_convex]
    if not len(moves):
        return Frame(theta, np.eye(len(theta)))
    scale = np.sqrt(np.sum(moves[-1] * turns[-1]) / np.sum(turns[-1] ** 2))
    inverse = scipy.optimize.LbfgsInvHessProduct(moves / scale, turns * scale)
    covariance = scale**2 * inverse.todense()
    return Frame(theta, np.linalg.cholesky((covariance + covariance.T) / 2))

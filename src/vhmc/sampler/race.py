"""A race of descents: the lowest go on first, and all of them until they are over."""

from collections.abc import Callable

import numpy as np

from vhmc.evaluation.target import Evaluations
from vhmc.sampler.descents import Descent, descend, is_copy

PATIENCE = 6
LEAST_FALL = 0.05
"""A descent that fell by less than this (nats) in the last accepted steps has ended."""
CLOSE = 0.01
"""Squared distance from the mode, in standard deviations, that is close enough."""
ARRIVED = 0.1
"""Squared distance from the mode, in standard deviations a dimension, of an arrival."""
BOTTOMLESS = -1e11
"""Energy at which a descent has fallen out of sight: a nat is lost in rounding."""


def height(descent: Descent) -> float:
    """Energy by which descents are compared: infinite where it fell out of sight."""
    is_lost = descent.energy < BOTTOMLESS or descent.is_rough
    return np.inf if is_lost else descent.energy


def race(
    descents: list[Descent],
    evaluate: Callable[[np.ndarray], Evaluations],
    leg: int,
    left: Callable[[], int],
) -> None:
    """Advance descents until all are over: all, then two, then the lowest alone.

    When it has ended the next lowest goes on. A third of the evaluations is not made
    if the lowest has arrived.

    left: evaluations, now.
    """

    def is_over(descent: Descent) -> bool:
        if descent.is_done or descent.energy < BOTTOMLESS:
            return True
        return is_finished(descent) or is_copy(descent, descents)

    most, enough = len(descents), left() // 3
    while left() > 0:
        lowest = min(descents, key=height)
        if left() < enough and np.isfinite(height(lowest)) and has_arrived(lowest):
            break  # other modes are looked for later, in better coordinates
        going = [one for one in descents if not is_over(one)]
        going = sorted(going, key=height)[: min(most, left())]
        if not going:
            break
        each = min(leg, left() // len(going))
        descend(going, evaluate, each, is_over)
        most = min(2, most) if most > 2 else 1


def is_finished(descent: Descent) -> bool:
    """Whether the last steps gained nothing that a sampler would notice."""
    path = descent.path
    if len(path) <= 1:
        return False
    is_known = descent.num_pairs >= len(descent.theta)
    if is_known and descent.decrement < CLOSE:
        return True
    if len(path) <= PATIENCE:
        return False
    return path[-1 - PATIENCE].energy - path[-1].energy < LEAST_FALL


def has_arrived(descent: Descent) -> bool:
    """Whether Newton's step at the end of a descent is short, in standard deviations.

    By the curvature that all descents saw.
    """
    grad = descent.path[-1].grad
    if not grad.any():
        return True
    curvature = descent.curvature()
    is_seen = curvature.num_pairs > 0
    return bool(is_seen and grad @ curvature.times(grad) < ARRIVED * len(grad))

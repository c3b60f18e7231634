"""Starts of methods that begin anywhere, as Stan does."""

import numpy as np

from vhmc.evaluation.target import Target

SPREAD = 2.0
"""Half-width of the cube that random starts come from, as in Stan."""

ATTEMPTS = 10
"""Points tried for one random start before we give up."""


def random_start(
    target: Target, rng: np.random.Generator, attempts: int
) -> np.ndarray | None:
    """A point around the start with a finite energy and gradient, as Stan finds it."""
    for _ in range(attempts):
        theta = target.start + rng.uniform(-SPREAD, SPREAD, target.dim)
        answer = target.evaluate(theta[None])
        if np.isfinite(answer.energy[0]) and np.isfinite(answer.grad).all():
            return theta
    return None

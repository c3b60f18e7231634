"""From the mode to the mass: the frame follows gradients at its own draws."""

import numpy as np

from vhmc.core.fisher_gaussian import refit
from vhmc.core.frame import Frame
from vhmc.methods.learner import INFLUENCE, divergence
from vhmc.targets.account import Account

STILL = 0.02
"""Divergence by dimension below which the frame has come to rest."""
WORSE = 2.0
"""Nats by which a frame may be worse than the best before we go back."""
FEWEST = 3
"""Batches before the frame may be said to rest, and finite points in a batch."""


def settle(
    account: Account,
    frame: Frame,
    rng: np.random.Generator,
    num_batches: int,
    batch_size: int,
) -> Frame:
    """Refit the frame to gradients at batches of its own draws, until it rests.

    A mode may be far from the mass, and its curvature that of another place. The points
    are spread as the surrogate will need them, so they serve training as well.
    """
    dim = len(frame.mean)
    best, kept = -np.inf, frame
    thetas, grads = [], []
    for count in range(1, num_batches + 1):
        theta = frame.to_theta(rng.standard_normal((batch_size, dim)))
        answer = account.evaluate(theta, "settling")
        known = np.isfinite(answer.energy)
        if known.sum() < FEWEST:
            frame = Frame(frame.mean, frame.factor / 2)
            continue
        # The median: a mean would be ruled by one draw that fell off a cliff.
        bound = frame.log_volume - float(np.median(answer.energy))
        if count > 2 and bound < best - WORSE - 0.1 * dim:
            return kept
        if bound > best:
            best, kept = bound, frame
        thetas.append(theta[known])
        grads.append(answer.grad[known])
        old = frame
        theta, grad = np.concatenate(thetas[-3:]), np.concatenate(grads[-3:])
        rest = old.grad_to_x(grad) - old.to_x(theta)
        cap = INFLUENCE * dim / np.maximum(np.sum(rest**2, axis=1), 1e-12)
        frame = refit(old, theta, grad, np.minimum(1.0, cap))
        if count >= FEWEST and divergence(old, frame) < STILL * dim:
            break
    return frame

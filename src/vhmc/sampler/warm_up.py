"""From the mode to the mass: a frame whose draws the model likes."""

import numpy as np

from vhmc.evaluation.evaluator import Account
from vhmc.sampler.locate import Located
from vhmc.transport.affine import Frame, divergence
from vhmc.transport.affine_fit import refit
from vhmc.transport.coupling_fit import influence

STILL = 0.02
"""Divergence by dimension below which the frame has come to rest."""
WORSE = 2.0
"""Nats by which a frame may be worse than the best before we go back."""
FEWEST = 3
"""Batches before the frame may be said to rest, and finite points in a batch."""
DRAWS = 6
"""At each of several frames, to choose one."""
DOUBTFUL = 2.0
"""Nats a root dimension by which log weights vary where a frame is doubtful."""


def settle(
    account: Account,
    located: Located,
    rng: np.random.Generator,
    allowance: int,
    batch_size: int,
) -> Frame:
    """Refit the frame to gradients at batches of its own draws, until it rests.

    A mode may be far from the mass, and its curvature that of another place. The points
    are spread as the surrogate will need them, so they serve training as well.

    Where there is no mode, or the log weights of draws around it vary too much, places
    on the way there are tried as well.

    allowance: calls of the model.
    """
    dim = len(located.frame.mean)
    if allowance < 2 * batch_size:
        return located.frame
    limit = account.left - allowance
    frame = _first(account, located, rng, batch_size, allowance // 2 // DRAWS)
    best, kept = -np.inf, frame
    thetas, grads = [], []
    for count in range(1, (account.left - limit) // batch_size + 1):
        theta = frame.to_theta(rng.standard_normal((batch_size, dim)))
        answer = account.evaluate(theta, "settling")
        known = np.isfinite(answer.energy)
        if known.sum() < FEWEST:
            frame = Frame(frame.mean, frame.factor / 2)
            continue
        # The median: a mean would be ruled by one draw that fell off a cliff.
        bound = float(frame.log_volume - np.median(answer.energy))
        if count > 2 and bound < best - WORSE - 0.1 * dim:
            return kept
        if bound > best:
            best, kept = bound, frame
        thetas.append(theta[known])
        grads.append(answer.grad[known])
        theta, grad = np.concatenate(thetas[-3:]), np.concatenate(grads[-3:])
        x = frame.to_x(theta)
        grad = frame.grad_to_x(x, grad)
        change = _not_narrower(refit(x, grad, influence(x, grad)))
        frame = frame.then(change)
        if count >= FEWEST and divergence(change) < STILL * dim:
            break
    return frame


def _first(
    account: Account,
    located: Located,
    rng: np.random.Generator,
    batch_size: int,
    most: int,
) -> Frame:
    """The frame at the mode, or a better one on the way there if that is doubtful.

    The draws may be far from the posterior's mass, in a neck of it.

    most: frames on the way that may be tried.
    """
    frame = located.frame
    x = rng.standard_normal((batch_size, len(frame.mean)))
    energy = account.evaluate(frame.to_theta(x), "scouting").energy
    if located.has_mode and not _is_doubtful(x, energy):
        return frame
    others = located.others[:most]
    bound = float(frame.log_volume - np.median(energy))
    return _best(account, rng, others, bound) or frame


def _is_doubtful(x: np.ndarray, energy: np.ndarray) -> bool:
    low, high = np.quantile(0.5 * np.sum(x**2, axis=1) - energy, (0.16, 0.84))
    return not high - low < 2 * DOUBTFUL * np.sqrt(x.shape[1])


def _best(
    account: Account, rng: np.random.Generator, frames: list[Frame], least: float
) -> Frame | None:
    """The frame of the largest evidence bound, if it is above the least wanted."""
    if not frames:
        return None
    white = rng.standard_normal((len(frames), DRAWS, len(frames[0].mean)))
    thetas = [frame.to_theta(x) for frame, x in zip(frames, white, strict=True)]
    energy = account.evaluate(np.concatenate(thetas), "scouting").energy
    middle = np.median(energy.reshape(len(frames), DRAWS), axis=1)
    bounds = np.array([float(frame.log_volume) for frame in frames]) - middle
    bounds = np.nan_to_num(bounds, nan=-np.inf)
    return frames[int(np.argmax(bounds))] if bounds.max() > least else None


def _not_narrower(frame: Frame) -> Frame:
    """Widths of one at least.

    Where the posterior is stiff on one side, gradients at a frame's own draws make it
    too narrow to leave; a network can take back what is too wide.
    """
    values, vectors = np.linalg.eigh(frame.factor @ frame.factor.T)
    covariance = (vectors * np.maximum(values, 1.0)) @ vectors.T
    return Frame(frame.mean, np.linalg.cholesky(covariance))

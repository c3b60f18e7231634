r"""Errors of the draws, number by number: means in posterior sd, sds relative.

Every number of the user's space has sources of error, which the check of the run shows:
what the importance weights put mean and sd off by, the noise of that, what score errors
put them off by, and the chance of so many effective draws. With $s_j$ the sources and
weights $a_j \ge 0$ that are fitted to true errors of posteriors with known moments,

$$b^2 = \sum_j a_j s_j^2$$

is a bound that nine of ten true errors keep (benchmarks/fit_verdict.py).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from vhmc.evaluation.space import Space
from vhmc.sampler.check import Check, Values
from vhmc.sampler.correction import EXACT, IMPORTANCE

SOURCES = ("weighted", "noise", "stein", "chance", "uneven", "one")
"""Fields of `Sources`, in the order of the weights."""


class Sources(NamedTuple):
    """Sources of error of means, or of sds, one entry a number.

    weighted: what the importance weights put it off by, with its sign.
    noise: standard error of that.
    stein: what score errors put it off by, to first order; zero where no parameter
        corresponds to the number.
    chance: standard error of so many effective draws.
    uneven: standard deviation of the log weights.
    one: one, for a constant.
    """

    weighted: np.ndarray
    noise: np.ndarray
    stein: np.ndarray
    chance: np.ndarray
    uneven: np.ndarray
    one: np.ndarray


def error_sources(
    check: Check, values: Values, space: Space, correction: str, ess: float
) -> tuple[Sources, Sources]:
    """Sources of the errors of means, and of sds.

    values: in the user's space, or scores of those without moments.
    ess: effective size of the draws.
    """
    at = values(check.theta)
    part, weights = check.probability, check.weights
    kept = weights if correction in (IMPORTANCE, EXACT) else part
    centre, width = _moments(at, weights)
    x = np.nan_to_num((at - centre) / width, nan=0.0, posinf=0.0, neginf=0.0)
    squares = 0.5 * (x**2 - 1)
    stein_mean, stein_sd = (
        _by_value(space, errors)
        for errors in (check.stein_mean_errors, check.stein_sd_errors)
    )
    mean, sd = _moments(x, kept)
    if correction == IMPORTANCE:
        ess = min(ess, check.effective_size)
    found = []
    for influence, weighted, stein in (
        (x, mean, stein_mean),
        (squares, sd - 1, stein_sd),
    ):
        spread = np.sqrt(weights @ influence**2)
        noise = np.sqrt(np.sum(((weights - part)[:, None] * influence) ** 2, axis=0))
        shape = np.ones(at.shape[1])
        found.append(
            Sources(
                weighted=weighted,
                noise=noise,
                stein=stein if kept is part else 0.0 * stein,
                chance=spread / np.sqrt(max(ess, 1.0)),
                uneven=check.log_weight_sd * shape,
                one=shape,
            )
        )
    return found[0], found[1]


def _moments(at: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    mean = weights @ at
    return mean, np.sqrt(weights @ (at - mean) ** 2)


def _by_value(space: Space, errors: np.ndarray) -> np.ndarray:
    """Errors of unconstrained parameters for the numbers that correspond to them."""
    found, start = [], 0
    for name, size in zip(space.names, space.unconstrained_sizes, strict=True):
        number = int(np.prod(space.shapes[name]))
        own = errors[start : start + size]
        # Where they do not correspond, as in a simplex, the worst stands for all.
        worst = own[np.argmax(np.abs(own))] if size else 0.0
        found.append(own if size == number else np.full(number, worst))
        start += size
    return np.concatenate(found)

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
from vhmc.sampler.correction import IMPORTANCE, NONE
from vhmc.sampler.verdict import RANKS, ParameterError, Verdict

OF_MEANS = 2.0, 4.0, 1.0, 4.0, 0.02, 0.0
"""Weights of the sources of errors of means, by benchmarks/fit_verdict.py."""
OF_SDS = 2.0, 4.0, 1.0, 4.0, 0.02, 0.0
"""Weights of the sources of errors of sds, by benchmarks/fit_verdict.py."""
DOUBTFUL, BAD = 0.25, 1.0
"""Bounds of an error beyond which a number is doubtful, and bad."""


class Sources(NamedTuple):
    """Sources of error of means, or of sds, one entry a number.

    weighted: what the importance weights put it off by, with its sign.
    noise: standard error of that.
    stein: what score errors put it off by, to first order; where several parameters
        make the number, the worst of theirs.
    chance: standard error of so many effective draws.
    uneven: standard deviation of the log weights.
    tempered: root of the loss of importance efficiency that tempered draws see.
    """

    weighted: np.ndarray
    noise: np.ndarray
    stein: np.ndarray
    chance: np.ndarray
    uneven: np.ndarray
    tempered: np.ndarray


def error_sources(
    check: Check, values: Values, space: Space, correction: str, ess: float
) -> tuple[Sources, Sources]:
    """Sources of the errors of means, and of sds.

    values: in the user's space, or scores of those without moments.
    correction: of the draws.
    ess: effective size of the draws.
    """
    at = values(check.theta)
    part, weights = check.probability, check.weights
    kept = part if correction == NONE else weights
    if correction == IMPORTANCE:
        ess = min(ess, check.effective_size)
    with np.errstate(all="ignore"):
        centre, width = _moments(at, weights)
        x = np.nan_to_num((at - centre) / width, nan=0.0, posinf=0.0, neginf=0.0)
    squares = 0.5 * (x**2 - 1)
    mean, sd = _moments(x, kept)
    rows = (
        (x, mean, check.stein_mean_errors),
        (squares, sd - 1, check.stein_sd_errors),
    )
    ones = np.ones(at.shape[1])
    lost = 1 - np.clip(check.tempered_efficiency, 0, 1)
    pair = [
        Sources(
            weighted=weighted,
            noise=np.sqrt(((weights - part) ** 2) @ influence**2),
            stein=(kept is part) * _by_value(space, stein),
            chance=np.sqrt(weights @ influence**2 / max(ess, 1.0)),
            uneven=check.log_weight_sd * ones,
            tempered=np.sqrt(lost) * ones,
        )
        for influence, weighted, stein in rows
    ]
    return pair[0], pair[1]


def bounds(sources: Sources, weights: Sequence[float]) -> np.ndarray:
    """Bounds of errors, with the weights of their sources."""
    pairs = zip(weights, sources, strict=True)
    squares = np.sum([weight * source**2 for weight, source in pairs], axis=0)
    return np.sqrt(squares)


def parameter_errors(
    check: Check, values: Values, space: Space, correction: str, verdict: Verdict
) -> tuple[ParameterError, ...]:
    """Errors of all numbers of the user's space, in the order of the summary.

    A number is no better than what speaks against the draws beside the checks, such as
    a mode that no draw visited.

    values: in the user's space, or scores of those without moments.
    """
    assert verdict.statistics is not None
    if verdict.exact_statistics is None:
        ess = verdict.statistics.ess
    else:
        ess = verdict.exact_statistics.exact_ess
    of_means, of_sds = error_sources(check, values, space, correction, ess)
    shapes = space.shapes
    names = [label for name in shapes for label in space.labels(name, shapes[name])]
    mean_bounds, sd_bounds = bounds(of_means, OF_MEANS), bounds(of_sds, OF_SDS)
    least = max((RANKS.index(status) for status, _ in verdict.concerns), default=0)
    return tuple(
        ParameterError(
            name=names[i],
            mean_error=float(of_means.weighted[i]),
            mean_bound=float(mean_bounds[i]),
            sd_error=float(of_sds.weighted[i]),
            sd_bound=float(sd_bounds[i]),
            status=_status(np.maximum(mean_bounds[i], sd_bounds[i]), least),
        )
        for i in range(len(names))
    )


def _status(bound: float, least: int) -> str:
    """A word by the larger bound; one that is not a number is bad.

    least: the place of the word in `RANKS` at least.
    """
    rank = 2 if not bound <= BAD else 0 if bound <= DOUBTFUL else 1
    return RANKS[max(rank, least)]


def _moments(at: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    mean = weights @ at
    return mean, np.sqrt(weights @ (at - mean) ** 2)


def _by_value(space: Space, errors: np.ndarray) -> np.ndarray:
    """Errors of unconstrained parameters for the numbers that they make."""
    found, start = [], 0
    for name, size in zip(space.names, space.unconstrained_sizes, strict=True):
        number = int(np.prod(space.shapes[name]))
        own = errors[start : start + size]
        # Where they do not correspond, as in a simplex, the worst stands for all.
        worst = own[np.argmax(np.abs(own))] if size else 0.0
        found.append(own if size == number else np.full(number, worst))
        start += size
    return np.concatenate(found)

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
from vhmc.sampler.check import Check
from vhmc.sampler.reasons import RANKS, Concern
from vhmc.sampler.verdict import ParameterError

OF_MEANS = 0.6, 0.0, 0.27, 3.6, 0.0
"""Weights of the sources of errors of means, by benchmarks/fit_verdict.py."""
OF_SDS = 5.6, 0.0, 0.0, 5.8, 0.00021
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
    tempered: root of the loss of importance efficiency that tempered draws see.
    """

    weighted: np.ndarray
    noise: np.ndarray
    stein: np.ndarray
    chance: np.ndarray
    tempered: np.ndarray


def error_sources(
    check: Check, space: Space, ess: float, is_corrected: bool = False
) -> tuple[Sources, Sources]:
    """Sources of the errors of means, and of sds.

    ess: effective size of the draws.
    is_corrected: whether the draws are weighted by the checks, which makes up for what
        the surrogate is off by.
    """
    rows = (
        (
            *(check.weighted_mean_errors, check.mean_noises),
            *(check.stein_mean_errors, check.mean_spreads),
        ),
        (
            *(check.weighted_sd_errors, check.sd_noises),
            *(check.stein_sd_errors, check.sd_spreads),
        ),
    )
    lost = 1 - np.clip(check.tempered_efficiency, 0, 1)
    kept = 0.0 if is_corrected else 1.0
    pair = [
        Sources(
            weighted=kept * weighted,
            noise=noise,
            stein=kept * _by_value(space, stein),
            chance=spread / np.sqrt(max(ess, 1.0)),
            tempered=np.full(len(noise), np.sqrt(lost)),
        )
        for weighted, noise, stein, spread in rows
    ]
    return pair[0], pair[1]


def error_bound(check: Check, space: Space, ess: float) -> float:
    """The largest bound of all numbers: of means in sd, of sds relative."""
    of_means, of_sds = error_sources(check, space, ess)
    largest = np.max(bounds(of_means, OF_MEANS)), np.max(bounds(of_sds, OF_SDS))
    return float(np.max(largest))


def bounds(sources: Sources, weights: Sequence[float]) -> np.ndarray:
    """Bounds of errors, with the weights of their sources."""
    pairs = zip(weights, sources, strict=True)
    squares = np.sum([weight * source**2 for weight, source in pairs], axis=0)
    return np.sqrt(squares)


def parameter_errors(
    check: Check,
    space: Space,
    ess: float,
    is_corrected: bool,
    concerns: Sequence[Concern],
) -> tuple[ParameterError, ...]:
    """Errors of all numbers of the user's space, in the order of the summary.

    A number is no better than what speaks against the draws beside the checks, such as
    a mode that no draw visited.

    ess, is_corrected: as in `error_sources`.
    concerns: those of the verdict.
    """
    of_means, of_sds = error_sources(check, space, ess, is_corrected)
    names = _names(space)
    mean_bounds, sd_bounds = bounds(of_means, OF_MEANS), bounds(of_sds, OF_SDS)
    least = max((RANKS.index(one.status) for one in concerns), default=0)
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


def long_tail(check: Check, space: Space, ess: float) -> str:
    """The number with the largest bound, if that is the chance of its draws' tail.

    The sd of a quantity with a long tail rests on a few draws; more of them cost no
    evaluation. Empty if something else makes the largest bound.
    """
    of_means, of_sds = error_sources(check, space, ess)
    of_mean, of_sd = bounds(of_means, OF_MEANS), bounds(of_sds, OF_SDS)
    worst = int(np.argmax(np.maximum(of_mean, of_sd)))
    by_chance = np.sqrt(OF_SDS[Sources._fields.index("chance")]) * of_sds.chance[worst]
    is_chance = of_sd[worst] > of_mean[worst] and 2 * by_chance**2 > of_sd[worst] ** 2
    return _names(space)[worst] if is_chance else ""


def _names(space: Space) -> list[str]:
    shapes = space.shapes
    return [label for name in shapes for label in space.labels(name, shapes[name])]


def _status(bound: float, least: int) -> str:
    """A word by the larger bound; one that is not a number is bad.

    least: the place of the word in `RANKS` at least.
    """
    rank = 2 if not bound <= BAD else 0 if bound <= DOUBTFUL else 1
    return RANKS[max(rank, least)]


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

"""A posterior of the set: its target, its exact draws, and what is compared."""

import zlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from vhmc.evaluation.target import Target
from vhmc.models.from_jax import from_jax
from vhmc.numerics.constraints import AbstractConstraint
from vhmc.numerics.tails import normal_scores

Draw = Callable[[np.random.Generator, int], np.ndarray]
"""Exact draws of all values in the user's space, one row a draw."""

BATCHES, BATCH = 4, 250_000
"""Exact draws that a reference is made of."""


class Case(NamedTuple):
    """A posterior with its reference.

    make: a fresh target, so that its count of evaluations starts at zero.
    draw: exact draws; without, the moments are on file.
    by_rank: whether normal scores of ranks among exact draws are compared, as of values
        without moments.
    """

    make: Callable[[], Target]
    draw: Draw | None = None
    by_rank: bool = False

    def comparison(self) -> Callable[[np.ndarray], np.ndarray]:
        """What is compared, as a function of all values, one row a draw."""
        if not self.by_rank:
            return np.asarray
        assert self.draw is not None
        known = self.draw(np.random.default_rng(1), BATCH).T

        def scores(values: np.ndarray) -> np.ndarray:
            pairs = zip(values.T, known, strict=True)
            return np.stack([normal_scores(*pair) for pair in pairs], axis=1)

        return scores


class Moments(NamedTuple):
    """Means and standard deviations of what is compared, in the order of the values."""

    mean: np.ndarray
    sd: np.ndarray


def traced(
    log_density: Callable[[Any], Any],
    init: Any,
    draw: Draw | None = None,
    constraints: Mapping[str, AbstractConstraint] | None = None,
    by_rank: bool = False,
) -> Case:
    """The case of a log density in JAX."""
    return Case(partial(from_jax, log_density, init, constraints), draw, by_rank)


def exact_moments(case: Case) -> Moments:
    """Those of a million exact draws."""
    assert case.draw is not None
    rng, compared = np.random.default_rng(0), case.comparison()
    batches = (compared(case.draw(rng, BATCH)) for _ in range(BATCHES))
    mean, square = np.mean(
        [(rows.mean(axis=0), np.mean(rows**2, axis=0)) for rows in batches], axis=0
    )
    return Moments(mean, np.sqrt(square - mean**2))


def errors(
    case: Case, truth: Moments, values: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Errors of means in reference sd, and relative ones of sds, of every value.

    values: of draws, one row a draw. Not finite ones have infinite errors.
    """
    compared = case.comparison()(values)
    with np.errstate(all="ignore"):
        mean_errors = (compared.mean(axis=0) - truth.mean) / truth.sd
        sd_errors = compared.std(axis=0) / truth.sd - 1
    known = np.isfinite(compared).all(axis=0)
    return np.where(known, mean_errors, np.inf), np.where(known, sd_errors, np.inf)


def is_held_out(name: str) -> bool:
    """Whether a posterior is of the half that no rule is fitted on."""
    return zlib.crc32(name.encode()) % 2 == 1


def generator(family: str, seed: int) -> np.random.Generator:
    """The random numbers of one posterior's data and sizes."""
    return np.random.default_rng([zlib.crc32(family.encode()), seed])


def rotation(rng: np.random.Generator, dim: int) -> np.ndarray:
    """A random orthogonal matrix."""
    axes, triangle = np.linalg.qr(rng.standard_normal((dim, dim)))
    return axes * np.sign(np.diag(triangle))

"""The families, the posteriors by name, and their moments."""

import json
from collections.abc import Callable
from functools import cache, partial
from importlib import resources
from typing import Any, NamedTuple

import numpy as np

from vhmc.lab.bench.verdict import (
    conjugate,
    edges,
    faulty,
    mixtures,
    processes,
    regressions,
    shapes,
)
from vhmc.lab.bench.verdict.case import Case, Moments, exact_moments, generator

REFERENCE = "reference.json"
"""Moments without a closed form, made by benchmarks/verdict_reference.py."""


class Family(NamedTuple):
    """A way to make posteriors.

    make: one of them from random numbers.
    number: how many there are in the set.
    """

    make: Callable[[np.random.Generator], Case]
    number: int


FAMILIES: dict[str, Family] = {
    "gaussian": Family(shapes.gaussian, 6),
    "badly-scaled": Family(shapes.badly_scaled, 6),
    "banana": Family(shapes.banana, 8),
    "sinusoid": Family(shapes.sinusoid, 7),
    "two-regimes": Family(shapes.two_regimes, 7),
    "funnel": Family(shapes.funnel, 6),
    "ring": Family(shapes.ring, 5),
    "separated-modes": Family(mixtures.separated, 9),
    "overlapping-modes": Family(mixtures.overlapping, 8),
    "three-modes": Family(mixtures.three_modes, 8),
    "spike-and-slab": Family(mixtures.spike_and_slab, 10),
    "contaminated": Family(mixtures.contaminated, 6),
    "needle": Family(mixtures.needle, 6),
    "heavy-tails": Family(edges.heavy_tails, 8),
    "box": Family(edges.box, 7),
    "half-space": Family(edges.half_space, 6),
    "positive": Family(edges.positive_values, 5),
    "shares": Family(edges.shares, 4),
    "linear": Family(conjugate.linear, 5),
    "autoregression": Family(conjugate.autoregression, 5),
    "groups-centred": Family(conjugate.groups_centred, 6),
    "groups-noncentred": Family(conjugate.groups_noncentred, 6),
    "local-level": Family(conjugate.local_level, 5),
    "noisy-values": Family(faulty.noisy_values, 6),
    "noisy-gradients": Family(faulty.noisy_gradients, 6),
    "wrong-gradients": Family(faulty.wrong_gradients, 6),
    "logistic": Family(regressions.logistic, 6),
    "poisson": Family(regressions.poisson, 5),
    "negative-binomial": Family(regressions.negative_binomials, 4),
    "robust": Family(regressions.robust, 4),
    "logit-centred": Family(regressions.logit_centred, 3),
    "logit-noncentred": Family(regressions.logit_noncentred, 3),
    "counts-centred": Family(regressions.counts_centred, 3),
    "counts-noncentred": Family(regressions.counts_noncentred, 3),
    "decay": Family(processes.decay, 4),
    "epidemic": Family(processes.epidemic, 3),
    "predators": Family(processes.predators, 3),
    "gaussian-process": Family(processes.gaussian_process, 4),
    "latent-process": Family(processes.latent_process, 3),
    "volatility": Family(processes.volatility, 3),
}


def _case(family: str, seed: int) -> Case:
    return FAMILIES[family].make(generator(family, seed))


CASES: dict[str, Callable[[], Case]] = {
    f"{family}-{seed + 1}": partial(_case, family, seed)
    for family, (_, number) in FAMILIES.items()
    for seed in range(number)
}


def family_of(name: str) -> str:
    """The family of a posterior."""
    return name.rpartition("-")[0]


def moments(name: str) -> Moments:
    """Reference moments of one of `CASES`."""
    case = CASES[name]()
    if case.draw is not None:
        return exact_moments(case)
    entry = stored()[name]
    return Moments(np.array(entry["mean"]), np.array(entry["sd"]))


@cache
def stored() -> dict[str, Any]:
    """Moments on file, with how they were made."""
    path = resources.files(__package__).joinpath(REFERENCE)
    return json.loads(path.read_text()) if path.is_file() else {}

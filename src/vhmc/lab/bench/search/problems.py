"""The posteriors by name, with their stored moments."""

import json
from collections.abc import Callable
from functools import cache
from importlib import resources
from typing import Any

import numpy as np

from vhmc.lab.bench.search import processes, regressions, shapes
from vhmc.lab.bench.search.quest import Moments, Quest
from vhmc.lab.bench.search.scaled import SCALED

REFERENCE = "reference.json"
"""Means and factors of covariances, made by benchmarks/search_reference.py."""

QUESTS: dict[str, Callable[[], Quest]] = {
    "gaussian-rotated": shapes.gaussian_rotated,
    "gaussian-50": shapes.gaussian_50,
    "gaussian-units": shapes.gaussian_units,
    "gaussian-far": shapes.gaussian_far,
    "gamma-walls": shapes.gamma_walls,
    "box-walls": shapes.box_walls,
    "rosenbrock-far": shapes.rosenbrock_far,
    "cauchy-far": shapes.cauchy_far,
    "softmax-counts": shapes.softmax_counts,
    "linear-years": regressions.linear_years,
    "linear-units": regressions.linear_units,
    "linear-quartic": regressions.linear_quartic,
    "linear-wide": regressions.linear_wide,
    "logistic-units": regressions.logistic_units,
    "logistic-years": regressions.logistic_years,
    "poisson-huge": regressions.poisson_huge,
    "poisson-overflow": regressions.poisson_overflow,
    "negative-binomial-raw": regressions.negative_binomial_raw,
    "gamma-regression": regressions.gamma_regression,
    "student-far": regressions.student_far,
    "decay-raw": regressions.decay_raw,
    "weibull-hours": regressions.weibull_hours,
    "arma": processes.arma,
    "garch": processes.garch,
    "autoregression": processes.autoregression,
    "lotka-volterra-raw": processes.lotka_volterra_raw,
    "sir-raw": processes.sir_raw,
    "walk-filtered": processes.walk_filtered,
    "walk-noncentred": processes.walk_noncentred,
} | SCALED


@cache
def _stored() -> dict[str, Any]:
    return json.loads(resources.files(__package__).joinpath(REFERENCE).read_text())


def moments(name: str) -> Moments:
    """Those of one of `QUESTS`."""
    entry = _stored()[name]
    mean = np.array(entry["mean"])
    factor = np.zeros((len(mean), len(mean)))
    factor[np.tril_indices(len(mean))] = entry["factor"]
    return Moments(mean, factor)

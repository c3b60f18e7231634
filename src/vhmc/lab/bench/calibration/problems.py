"""The table of calibration problems, with their stored moments."""

import json
from collections.abc import Callable
from functools import partial
from importlib import resources

import numpy as np

from vhmc.lab.bench.calibration import curves, processes, regressions, shapes
from vhmc.lab.bench.calibration.model import Model, quantities, quantity_names
from vhmc.lab.bench.problem import Problem
from vhmc.models.from_jax import from_jax

REFERENCE = "reference.json"
"""Moments by problem and quantity, made by benchmarks/calibration_reference.py."""

MODELS: dict[str, Callable[[], Model]] = {
    "logistic-a9a": regressions.logistic_a9a,
    "negative-binomial-flights": regressions.negative_binomial_flights,
    "robust-regression": regressions.robust_regression,
    "lotka-volterra": processes.lotka_volterra,
    "sir-epidemic": processes.sir_epidemic,
    "michaelis-menten": curves.michaelis_menten,
    "stochastic-volatility": processes.stochastic_volatility,
    "hidden-markov": processes.hidden_markov,
    "horseshoe": regressions.horseshoe,
    "funnel": shapes.funnel,
    "two-modes-2d": partial(shapes.two_modes, shapes.FAR_MODES),
    "two-modes-5d": partial(shapes.two_modes, shapes.NEAR_MODES),
    "ring": shapes.ring,
    "gamma-scales": shapes.gamma_scales,
    "heavy-tails": shapes.heavy_tails,
    "dirichlet": shapes.dirichlet,
    "truncated-gaussian": shapes.truncated_gaussian,
    "rosenbrock": shapes.rosenbrock,
    "hierarchical-normal": regressions.hierarchical_normal,
    "item-response": regressions.item_response,
    "plateau": curves.plateau,
    "two-exponentials": curves.two_exponentials,
    "change-point": processes.change_point,
    "weibull-survival": regressions.weibull_survival,
    "gaussian-process": curves.gaussian_process,
}


def problem(name: str) -> Problem:
    """One of `MODELS` with its stored moments."""
    model = MODELS[name]()
    text = resources.files(__package__).joinpath(REFERENCE).read_text()
    moments = json.loads(text)[name]["quantities"]
    names = quantity_names(model)
    return Problem(
        name,
        lambda: from_jax(model.log_density, model.init, model.constraints),
        partial(quantities, model),
        names,
        np.array([moments[name]["mean"] for name in names]),
        np.array([moments[name]["sd"] for name in names]),
        model.is_gaussian,
    )


CALIBRATION: dict[str, Callable[[], Problem]] = {
    name: partial(problem, name) for name in MODELS
}

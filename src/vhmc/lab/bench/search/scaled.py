"""The calibration set with every unconstrained coordinate in another unit."""

from collections.abc import Callable
from functools import partial

import numpy as np

from vhmc.lab.bench.calibration.run import MODELS
from vhmc.lab.bench.search.quest import Quest
from vhmc.models.traced import TracedTarget

ORDERS = 3.0
"""Units are ten to the power of up to this, up or down."""
NAMES = (
    *("robust-regression", "lotka-volterra", "sir-epidemic", "hidden-markov"),
    *("gamma-scales", "heavy-tails", "dirichlet", "hierarchical-normal"),
    *("item-response", "weibull-survival", "gaussian-process", "rosenbrock"),
    "stochastic-volatility",
)
"""Those with one mode and simulated data."""


def scaled(name: str) -> Quest:
    """A model of the calibration set in random units, from its usual start."""
    target = MODELS[name]().make()
    assert isinstance(target, TracedTarget)
    energy = target.energy
    rng = np.random.default_rng(NAMES.index(name))
    units = 10.0 ** rng.uniform(-ORDERS, ORDERS, target.dim)
    start = target.start * units

    def log_density(theta):
        return -energy(theta / units)

    return Quest(log_density, start, start, spread=0.0)


SCALED: dict[str, Callable[[], Quest]] = {
    f"{name}-scaled": partial(scaled, name) for name in NAMES
}

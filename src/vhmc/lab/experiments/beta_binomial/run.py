r"""Experiment 1: the surrogate approaches a skewed posterior as its nodes grow.

The beta-binomial model of cancer mortality in $x_1 = \mathrm{logit}(m)$,
$x_2 = \log K$; $\mu_t = 1 - \exp(-t / 200)$ and about 85 % acceptance, as in the paper.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from vhmc._types import Vector
from vhmc.evaluation.target import Target
from vhmc.lab.diagnostics import quadrature
from vhmc.lab.experiments.beta_binomial.measure import Exact, exact_posterior, measure
from vhmc.lab.experiments.parts import Part, Progress, inputs, run_parts
from vhmc.lab.models.beta_binomial import beta_binomial
from vhmc.numerics.bases import additive
from vhmc.numerics.gaussian import Gaussian
from vhmc.paper.algorithm2 import VHMC, Ramp
from vhmc.paper.laplace_guide import laplace
from vhmc.paper.sample import initial_kernel
from vhmc.paper.training import train

NODES = partial(additive, scale=1.5)
QUICK: dict[str, Any] = {"nodes": (10, 40, 160), "repetitions": 3, "num_train": 1000}
"""What `--quick` changes."""


@dataclass(frozen=True)
class Settings:
    r"""Everything that can be chosen; the defaults are the figures in the README.

    nodes: numbers of hidden nodes $s$, growing.
    repetitions: independent runs for each number of nodes.
    num_train: training iterations $t_0$.
    ridge: regularisation of the weights.
    timescale: of the schedule $\mu_t$.
    acceptance: wanted acceptance of the HMC.
    draws: draws of each of 4 chains on the frozen surrogate.
    start: where the search for the mode and the chains begin, as `(m, K)`; unless given
        the search begins at (0.001, 1000) and the chains at the mode.
    trained_inputs: whether the form whose input weights are trained runs as well.
    seed: of all random numbers.
    """

    nodes: tuple[int, ...] = (10, 20, 40, 80, 160)
    repetitions: int = 10
    num_train: int = 5000
    ridge: float = 0.1
    timescale: float = 200.0
    acceptance: float = 0.85
    draws: int = 1000
    start: tuple[float, float] | None = None
    trained_inputs: bool = False
    seed: int = 0

    def __post_init__(self):
        if not self.nodes or list(self.nodes) != sorted(set(self.nodes)):
            raise ValueError(f"numbers of nodes must grow, got {list(self.nodes)}")
        if self.repetitions < 1:
            raise ValueError(f"repetitions must be at least 1, got {self.repetitions}")
        if self.draws < 1:
            raise ValueError(f"draws must be at least 1, got {self.draws}")

    def method(self, num_features: int, trains_inputs: bool = False) -> VHMC:
        """The algorithm at one number of nodes."""
        return VHMC(
            num_features=num_features,
            ridge=self.ridge,
            schedule=Ramp(self.timescale),
            num_train=self.num_train,
            acceptance=self.acceptance,
            nodes=NODES,
            trains_inputs=trains_inputs,
        )


class Results(NamedTuple):
    """Numbers, and what the figures show.

    panels: number of nodes, divergence and log probabilities on the grid of the
        repetition of median divergence.
    trained_rows: numbers of the form whose input weights are trained, if it ran.
    """

    rows: list[dict[str, Any]]
    panels: list[tuple[int, float, np.ndarray]]
    exact: Exact
    costs: dict[str, int]
    seconds: float
    trained_rows: list[dict[str, Any]]


def run(folder: Path, settings: Settings, progress: Progress) -> Results:
    """Train and measure all repetitions; an interrupted run is resumed."""
    forms = (False, True) if settings.trained_inputs else (False,)
    methods = [
        settings.method(number, form) for form in forms for number in settings.nodes
    ]
    target = beta_binomial()
    start = target.start
    if settings.start is not None:
        start = target.parameters.flatten(
            dict(zip(target.parameters.names, settings.start, strict=True))
        )
    fitted = laplace(target, start)
    theta = fitted.guide.mean if settings.start is None else jnp.asarray(start)
    exact = exact_posterior()
    parts = [
        Part(
            f"{method.num_features} nodes" + ", trained" * method.trains_inputs,
            0.0005 * settings.repetitions * settings.num_train + 8,
            partial(_part, settings, method, target, fitted.guide, theta, exact),
        )
        for method in methods
    ]
    done = list(run_parts(folder, inputs(settings), parts, progress).values())
    rows, trained_rows = (
        [row for one in some for row in json.loads(str(one["rows"]))]
        for some in (done[: len(settings.nodes)], done[len(settings.nodes) :])
    )
    panels = [
        (int(one["nodes"]), float(one["panel_kl"]), one["log_q"])
        for one in done[: len(settings.nodes)]
    ]
    costs = {
        "search": fitted.num_search,
        "hessian": fitted.num_hessian,
        "training": sum(int(row["evaluations"]) for row in rows + trained_rows),
    }
    seconds = sum(float(one["part_seconds"]) for one in done)
    return Results(rows, panels, exact, costs, seconds, trained_rows)


def _part(
    settings: Settings,
    method: VHMC,
    target: Target,
    guide: Gaussian,
    theta: Vector,
    exact: Exact,
    on_progress: Callable[[float], None],
) -> Mapping[str, Any]:
    """All repetitions at one number of nodes, trained in one batch.

    Only their first step size is shared.
    """
    number = settings.repetitions
    key = jax.random.fold_in(jax.random.key(settings.seed), method.num_features)
    key, *keys_draw = jax.random.split(key, number + 1)
    key_tune, key_nodes, key_train = jax.random.split(key, 3)
    kernel = initial_kernel(key_tune, method, guide)
    states = jax.jit(jax.vmap(method.init, in_axes=(0, None, None, None)))(
        jax.random.split(key_nodes, number), theta, guide, kernel
    )
    replicas = train(jax.random.split(key_train, number), method, target, states)
    on_progress(0.7)
    measured = [
        measure(key_draw, method, replica, exact, settings.draws)
        for key_draw, replica in zip(keys_draw, replicas, strict=True)
    ]
    # The figure shows the repetition of (lower) median divergence.
    order = np.argsort([numbers["kl"] for numbers in measured])
    middle = order[(number - 1) // 2]
    surrogate = replicas[middle].state.surrogate
    rows = [
        {"nodes": method.num_features, "repetition": repetition, **numbers}
        for repetition, numbers in enumerate(measured)
    ]
    return {
        "rows": json.dumps(rows),
        "nodes": method.num_features,
        "panel_kl": measured[middle]["kl"],
        "log_q": quadrature.log_probabilities(surrogate, exact.box),
    }

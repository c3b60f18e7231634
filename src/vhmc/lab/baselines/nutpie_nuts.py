"""NUTS with a diagonal metric, by nutpie, from random starts as in Stan."""

from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

import jax
import numpy as np

from vhmc._imports import load_extra
from vhmc._types import Scalar, Vector
from vhmc.evaluation.target import Target
from vhmc.lab.baselines.nuts import NUTS, random_starts
from vhmc.models.traced import TracedTarget


class Program(NamedTuple):
    """A model for nutpie, and how many gradients it was asked for so far."""

    model: Any
    num_gradients: Callable[[], int]


def nutpie_nuts(
    target: Target, seed: int, num_draws: int, num_warmup: int, num_chains: int = 4
) -> NUTS | None:
    """Run chains one after another; none if no start has a finite density.

    num_draws: of all chains together.
    """
    if not isinstance(target, TracedTarget):
        raise TypeError("nutpie_nuts needs a target of from_jax")
    nutpie = load_nutpie()
    before = target.num_evaluations
    starts = random_starts(target, seed, num_chains)
    if starts is None:
        return None
    waiting = iter(starts)
    program = compiled(
        lambda theta: -target.energy(theta), target.dim, lambda _: next(waiting)
    )
    trace = nutpie.sample(
        program.model,
        draws=num_draws // num_chains,
        tune=num_warmup,
        chains=num_chains,
        cores=1,
        seed=seed,
        progress_bar=False,
    )
    target.charge(program.num_gradients())
    draws = trace.posterior["theta"].to_numpy()
    return NUTS(draws, target.num_evaluations - before)


def compiled(
    log_density: Callable[[Vector], Scalar],
    dim: int,
    start: Callable[[int], np.ndarray] | None = None,
) -> Program:
    """A density of one vector `theta`.

    start: takes a seed, and is called once a chain; nutpie's own unless given.
    """
    load_nutpie()
    from nutpie.compiled_pyfunc import from_pyfunc

    value_and_grad = jax.jit(jax.value_and_grad(log_density))
    count = 0

    def counted(theta):
        nonlocal count
        count += 1
        value, grad = value_and_grad(theta)
        return float(value), np.asarray(grad)

    model = from_pyfunc(
        *(dim, lambda: counted, lambda *seeds: lambda theta: {"theta": theta}),
        *([np.dtype("float64")], [(dim,)], ["theta"]),
        make_initial_point_fn=start,
    )
    return Program(model, lambda: count)


def load_nutpie() -> ModuleType:
    """Import nutpie, or say in one line what to install."""
    return load_extra("nutpie", "nutpie's NUTS", "test")

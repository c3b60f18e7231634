"""nutpie's NUTS on few gradients, from a random start as in Stan."""

from collections.abc import Callable
from functools import partial

import jax
import numpy as np

from vhmc.evaluation.target import Target
from vhmc.lab.baselines.nutpie_nuts import load_nutpie
from vhmc.lab.baselines.nuts import NUTS
from vhmc.lab.baselines.short_chain import DEPTH, Path, short_chain

NOWHERE = -1e100
"""Log density once the gradients are spent: nutpie cannot be told to stop."""

Density = Callable[[np.ndarray], tuple[float, np.ndarray]]


def nutpie_within(target: Target, seed: int, budget: int) -> NUTS | None:
    """Draws of a `short_chain` with a diagonal metric; none without a finite start.

    The gradients that nutpie takes to find a first step size count, too.
    """
    load_nutpie()  # if it is missing, say so before the model is evaluated
    return short_chain(_walk, target, seed, budget)


def _walk(
    target: Target, start: np.ndarray, seed: int, num_warmup: int, allowed: int
) -> Path:
    nutpie = load_nutpie()
    from nutpie.compiled_pyfunc import from_pyfunc

    log_density = _log_density(target)
    spent, costs = 0, []

    def counted(theta):
        nonlocal spent
        spent += 1
        if spent > allowed:
            return NOWHERE, np.ones_like(theta)
        return log_density(theta)

    def finished(theta):
        costs.append(spent)
        return {"theta": theta}

    model = from_pyfunc(
        *(target.dim, lambda: counted, lambda *seeds: finished),
        *([np.dtype("float64")], [(target.dim,)], ["theta"]),
        make_initial_point_fn=lambda _: start,
    )
    trace = nutpie.sample(
        model,
        draws=allowed,
        tune=num_warmup,
        chains=1,
        cores=1,
        seed=seed,
        maxdepth=DEPTH,
        progress_bar=False,
    )
    parts = trace.warmup_posterior, trace.posterior
    points = [part["theta"].to_numpy()[0] for part in parts]
    return Path(np.concatenate(points), np.array(costs))


def _log_density(target: Target) -> Density:
    """Value and gradient; -inf where the model has no answer."""
    energy = target.traced_energy

    def traced(theta: np.ndarray) -> tuple[float, np.ndarray]:
        value, grad = _value_and_grad(energy, theta)
        return -float(value), -np.asarray(grad)

    def asked(theta: np.ndarray) -> tuple[float, np.ndarray]:
        answer = target.evaluate(theta[None])
        return -float(answer.energy[0]), -answer.grad[0]

    return asked if energy is None else traced


@partial(jax.jit, static_argnums=0)
def _value_and_grad(energy, theta):
    """Compiled once for a model, not once for a chain."""
    return jax.value_and_grad(energy)(theta)

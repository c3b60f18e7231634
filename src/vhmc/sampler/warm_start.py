"""A related run's surrogate as the place to begin, once the model has confirmed it."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from vhmc._arguments import shown
from vhmc.evaluation.evaluator import Account, Paid
from vhmc.evaluation.space import in_words
from vhmc.evaluation.target import Target
from vhmc.numerics.importance import efficiency
from vhmc.sampler.drawing import some_draws
from vhmc.sampler.locate import Located
from vhmc.sampler.posterior import Posterior
from vhmc.surrogate.log_density import LogDensity
from vhmc.surrogate.residual import Charted
from vhmc.transport.transport_map import Chart

CHAINS = 8
LEAST = 0.1
"""Importance efficiency at which an old surrogate still covers the posterior."""


def old_surrogate(warm_start: Posterior | LogDensity, target: Target) -> Charted:
    """The surrogate to begin with, if it can be one of this model at all."""
    density: Any = warm_start
    if isinstance(warm_start, Posterior):
        density = warm_start.surrogate
        shapes = warm_start.parameters.shapes
        if shapes != target.parameters.shapes:
            raise ValueError(
                f"warm_start is of a model with parameters {in_words(shapes)}, "
                f"this one has {in_words(target.parameters.shapes)}"
            )
    potential = getattr(density, "potential", None)
    if not isinstance(potential, Charted):
        raise ValueError(
            f"warm_start must be a posterior of vhmc.sample, got {shown(warm_start)}"
        )
    dim = len(potential.chart.first.mean)
    if dim != target.dim:
        raise ValueError(f"warm_start has dimension {dim}, the model {target.dim}")
    return potential


def try_old(
    account: Account, rng: np.random.Generator, old: Charted, number: int
) -> tuple[Chart | None, np.ndarray]:
    """Ask the model at draws of an old surrogate whether the posterior is there.

    Returns the old coordinates if it is, and the draws, unconstrained.
    """
    chart = jax.tree.map(np.asarray, old.chart)
    dim = account.target.dim
    starts = rng.standard_normal((CHAINS, dim))
    pool = some_draws(rng, old.residual, starts, dim**-0.25)
    x = pool[rng.choice(len(pool), number, replace=False)]
    thetas = chart.to_theta(x)
    answer = account.evaluate(thetas, "warm start")
    if not np.isfinite(answer.energy).any():
        return None, thetas
    guessed = np.asarray(jax.vmap(old)(jnp.asarray(thetas)))
    share = np.full(number, 1 / number)
    covers = efficiency(guessed - answer.energy, share) > LEAST
    return (chart if covers else None), thetas


def located_at(paid: Paid, chart: Chart) -> Located:
    """The best point that was paid for, in place of where descents ended."""
    best = int(np.argmin(paid.energy))
    return Located(
        frame=chart.first,
        others=[],
        ends=paid.theta[best : best + 1],
        energies=paid.energy[best : best + 1],
        is_finished=np.zeros(1, dtype=bool),
        has_mode=True,
    )

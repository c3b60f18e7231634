"""Warm start: begin with a related run's surrogate, once the model has confirmed it."""

from pathlib import Path
from typing import Any

import numpy as np

from vhmc._arguments import shown
from vhmc.evaluation.evaluator import Evaluate, Evaluator
from vhmc.evaluation.ledger import LedgerError, LedgerFile
from vhmc.evaluation.replay import Replay
from vhmc.evaluation.resume import shapes_of
from vhmc.evaluation.space import in_words
from vhmc.evaluation.target import Target
from vhmc.numerics.importance import efficiency
from vhmc.sampler.drawing import some_draws
from vhmc.sampler.posterior import Posterior
from vhmc.surrogate.mixture import MixturePotential
from vhmc.surrogate.near_mass import affine_map
from vhmc.surrogate.surrogate import LogDensity, Surrogate, SurrogatePotential
from vhmc.surrogate.trainer import Trainer, default_num_features
from vhmc.transport.transport_map import TransportMap

CHAINS = 8
LEAST_EFFICIENCY = 0.1
"""Importance efficiency at which an old surrogate still covers the posterior."""
FEWEST_POINTS = 20
"""Points on file below which there is no surrogate to fit."""

WarmStart = Posterior | LogDensity | str | Path | None


def old_surrogate(warm_start: WarmStart, target: Target) -> Surrogate | None:
    """The surrogate to begin with, if it can be one of this model at all."""
    if warm_start is None:
        return None
    if isinstance(warm_start, str | Path):
        return surrogate_on_file(warm_start, target)
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
    if not isinstance(potential, SurrogatePotential | MixturePotential):
        raise ValueError(
            f"warm_start must be a posterior of vhmc.sample, got {shown(warm_start)}"
        )
    surrogate = potential.on_host()
    if surrogate.dim != target.dim:
        raise ValueError(
            f"warm_start has dimension {surrogate.dim}, the model {target.dim}"
        )
    return surrogate


def surrogate_on_file(path: str | Path, target: Target) -> Surrogate:
    """A surrogate fitted to all that the ledger of a related run has on file."""
    file = LedgerFile(path, is_read_only=True)
    try:
        shapes, own = file.facts().get("shapes", {}), shapes_of(target)
        if shapes != own:
            raise LedgerError(
                f"{file.path} is of a model with parameters {in_words(shapes)}, this "
                f"one has {in_words(own)}"
            )
        evaluator = Evaluator(target, 0, Replay(file))
        evaluator.absorb()
    finally:
        file.close()
    log = evaluator.log
    if log.is_finite.sum() < FEWEST_POINTS:
        raise LedgerError(f"{file.path} has too few points to begin with")
    rng = np.random.default_rng(0)
    trainer = Trainer(
        affine_map(log),
        default_num_features(target.dim),
        rng,
        observable=target.observable,
    )
    trainer.start(log)
    recent = slice(-max(len(log.energy) // 3, FEWEST_POINTS), None)
    known = log.is_finite[recent]
    return trainer.refit(log, log.theta[recent][known], log.grad[recent][known])


def confirm(
    rng: np.random.Generator, evaluate: Evaluate, old: Surrogate, number: int
) -> tuple[TransportMap | None, np.ndarray]:
    """Evaluate draws of an old surrogate to see whether the posterior is there.

    Returns the old map if it is, and the draws, unconstrained.
    """
    starts = rng.standard_normal((CHAINS, old.dim))
    pool = some_draws(rng, old, starts, old.dim**-0.25)
    thetas = old.transport.forward(pool[rng.choice(len(pool), number, replace=False)])
    answer = evaluate(thetas, "warm start")
    if not np.isfinite(answer.energy).any():
        return None, thetas
    log_weights = old.energies(thetas) - answer.energy
    covers = efficiency(log_weights, np.full(number, 1 / number)) > LEAST_EFFICIENCY
    return (old.transport if covers else None), thetas

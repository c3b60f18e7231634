"""What a run tells of the modes of a posterior."""

from typing import NamedTuple

import numpy as np

from vhmc.evaluation.space import Space
from vhmc.sampler.check import Check
from vhmc.sampler.modes.copies import copies_among
from vhmc.surrogate.mixture import Mixture
from vhmc.surrogate.surrogate import Surrogate

NUM_DRAWS = 200
"""Of a mode, which tell how wide it is."""


class Mode(NamedTuple):
    """A separate mode of the posterior.

    mass: its share of the posterior.
    error: standard error of that.
    center: a point in its middle, unconstrained.
    copy_of: place among the modes of the one that this is a copy of, with the labels of
        some parameters in another order; None for a mode of its own.
    """

    mass: float
    error: float
    center: np.ndarray
    copy_of: int | None = None


def modes_of(
    surrogate: Surrogate | Mixture, check: Check | None, space: Space
) -> tuple[Mode, ...]:
    """The modes, the heaviest first, with masses by the checked draws' weights."""
    if isinstance(surrogate, Surrogate):
        return (Mode(1.0, 0.0, _center(surrogate)),)
    masses, errors = np.exp(surrogate.log_masses), np.full(len(surrogate.parts), np.nan)
    if check is not None:
        share = surrogate.responsibilities(check.theta)
        masses = check.weights @ share
        errors = _errors(share, check, surrogate.errors)
    modes = [
        Mode(float(mass), float(error), _center(part))
        for part, mass, error in zip(surrogate.parts, masses, errors, strict=True)
    ]
    modes.sort(key=lambda mode: -mode.mass)
    origins = copies_among(
        space, np.stack([mode.center for mode in modes]), _spread(surrogate)
    )
    return tuple(
        mode._replace(copy_of=origin)
        for mode, origin in zip(modes, origins, strict=True)
    )


def _spread(mixture: Mixture) -> np.ndarray:
    """Unconstrained draws of the heaviest mode, about."""
    transport = mixture.heaviest.transport
    rng = np.random.default_rng(0)
    return transport.forward(rng.standard_normal((NUM_DRAWS, transport.dim)))


def _errors(share: np.ndarray, check: Check, own: np.ndarray) -> np.ndarray:
    """Standard errors of masses, whose draws were chosen by mode.

    share: of every checked draw, by mode.
    own: relative errors of the surrogates' normalising constants.
    """
    parts = check.weights[:, None] * share, check.probability[:, None] * share
    masses = parts[0].sum(axis=0)
    true, drawn = (rows / np.maximum(rows.sum(axis=0), 1e-300) for rows in parts)
    relative = np.sum((true - drawn) ** 2, axis=0) + own**2
    others = (masses**2 * relative).sum() - masses**2 * relative
    return masses * np.sqrt((1 - masses) ** 2 * relative + others)


def _center(surrogate: Surrogate) -> np.ndarray:
    return surrogate.transport.forward(np.zeros((1, surrogate.dim)))[0]

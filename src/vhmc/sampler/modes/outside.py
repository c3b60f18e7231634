r"""Mass far outside of a surrogate, as points of the widened posterior show it.

With $r$ the density of these points, and $p$ and $q$ those of posterior and surrogate,
all normalised,

$$\int_{p > e^2 q} p \approx \frac1n \sum_{p(\theta_i) > e^2 q(\theta_i)}
  \frac{p(\theta_i)}{r(\theta_i)}.$$

Few points make a rough number of it. But a spike in a wide slab, or normals with a
share of wider ones, show at once: out there $p$ is larger than $q$ by many nats.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from vhmc.sampler.attempt import Attempt
from vhmc.sampler.evidence import log_mean_weight, normaliser
from vhmc.sampler.modes.look import Wide

HUGE_LOG = 700.0
"""Logarithm of the largest number that is still one."""
MISSED = 2.0
"""Nats by which the surrogate's density is too low where it counts as missing mass."""


class Outside(NamedTuple):
    """Points where the posterior has mass that the surrogate has not.

    theta: the points, unconstrained.
    mass: that each of them stands for; together, of the whole posterior's.
    """

    theta: np.ndarray
    mass: np.ndarray


def outside(attempt: Attempt, wide: Sequence[Wide]) -> Outside:
    """Where the surrogate has next to no mass, but the posterior has."""
    assert attempt.check is not None
    theta = np.concatenate([one.theta for one in wide] or [np.zeros((0, 1))])
    if not len(theta):
        return Outside(theta, np.zeros(0))
    energy, log_density = (
        np.concatenate([part[i] for part in wide]) for i in range(1, 3)
    )
    surrogate, drawn = attempt.surrogate, attempt.drawn
    # With numbers of its own, so that a run that goes on has the same draws.
    own = normaliser(np.random.default_rng(0), surrogate, drawn).value
    weight = log_mean_weight(surrogate, attempt.check, drawn.ess).value
    known = np.isfinite(energy) & np.isfinite(log_density)
    with np.errstate(all="ignore"):
        log_q = -surrogate.energies(theta[known]) - own
    log_p = -energy[known] - own - weight
    is_missed = ~(log_p < np.nan_to_num(log_q, nan=-np.inf) + MISSED)
    log_ratio = (log_p - log_density[known])[is_missed] - np.log(len(theta))
    return Outside(theta[known][is_missed], np.exp(np.minimum(log_ratio, HUGE_LOG)))

"""Refuse new maps whose draws would be of no use, before a round is spent on them."""

import numpy as np

from vhmc.surrogate.surrogate import Surrogate
from vhmc.transport.map_fit import EvaluatedPoints
from vhmc.transport.structured_fit import is_sane
from vhmc.transport.transport_map import TransportMap

FARTHEST = 100.0
"""Distance of draws from the chains' states, in ranges of these, that is absurd."""
ABSURD = 50.0
"""Nats by dimension by which draws of a new map may be above those of the old one."""
NUM_DRAWS = 100
"""By which this is seen."""


def is_plausible(
    transport: TransportMap, old: Surrogate, thetas: np.ndarray, grads: np.ndarray
) -> bool:
    """Whether draws of a map are near the chains, and not absurd to the old surrogate.

    A map that fits all points well may have draws where no point is.

    thetas, grads: states of the chains, with gradients.
    """
    points = EvaluatedPoints(thetas, np.zeros(len(thetas)), grads)
    # With numbers of its own, so that other maps' draws stay the same.
    rng, weights = np.random.default_rng(0), np.ones(len(thetas))
    if not is_sane(rng, transport, points, weights, FARTHEST):
        return False
    rng = np.random.default_rng(0)
    medians = []
    with np.errstate(all="ignore"):
        for one in (transport, old.transport):
            draws = one.forward(rng.standard_normal((NUM_DRAWS, one.dim)))
            medians.append(np.median(old.energies(draws)))
        return bool(medians[0] - medians[1] < ABSURD * transport.dim)

"""Points at which constrained parameters are lost in rounding, where no wall is."""

from collections.abc import Mapping

import numpy as np

from vhmc.transport.hub_functions import Link

FARTHEST = {"exp": 300.0, "logit": 30.0}
"""Size of an unconstrained coordinate beyond which its parameter, its square or its
distance from a bound may be rounded to zero or be too large for a number."""


def is_rounded(thetas: np.ndarray, links: Mapping[int, Link]) -> np.ndarray:
    """Whether a constrained parameter of each point is lost in rounding.

    A scale of zero has no density, and next to it there is none. But it is reached
    nowhere: a descent that falls along a funnel sees the end of the numbers.

    thetas: unconstrained, of shape (n, dim).
    links: of the parameters that are constrained.
    """
    limits = np.full(thetas.shape[1], np.inf)
    for place, link in links.items():
        limits[place] = FARTHEST.get(link.kind, np.inf)
    return np.asarray((np.abs(thetas) > limits).any(axis=1))

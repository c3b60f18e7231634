"""The least ridge of a network: raised where draws show that a lower one left holes."""

import numpy as np

HOLE_DEPTH = 4.0
"""Nats by which the surrogate is too low where it is said to have a hole."""
MAX_IN_HOLES = 0.1
"""Fraction of a round's draws in holes above which the bound is raised."""
MAX_OF_CHECKED = 0.02
"""The same of checked draws, which are many."""
LEAST_RIDGE = 1e-8, 1e-4, 1e-1
"""Smallest, first and largest bound."""
FALL, RISE = 0.8, 10.0
"""Factors of the bound after draws without and with holes."""


class RidgeBound:
    """Follows the draws of the surrogates so far.

    value: the bound now.
    """

    def __init__(self) -> None:
        self._smallest, self.value, _ = LEAST_RIDGE

    def adapt(self, log_weights: np.ndarray) -> None:
        """Lower the bound while the draws of a round are in no holes, else raise it.

        log_weights: surrogate's less true energies at draws of the surrogate.
        """
        if len(log_weights):
            factor = RISE if _in_holes(log_weights) > MAX_IN_HOLES else FALL
            value = float(np.clip(self.value * factor, None, LEAST_RIDGE[-1]))
            self.value = max(value, self._smallest)

    def keep(self, log_weights: np.ndarray) -> None:
        """Never go below what has left holes for the chains of the drawing.

        The trajectories of a round are too short to find the holes of a low ridge.

        log_weights: as above, of checked draws.
        """
        if len(log_weights) and _in_holes(log_weights) > MAX_OF_CHECKED:
            _, first, largest = LEAST_RIDGE
            self._smallest = min(max(first, RISE * self.value), largest)
            self.value = self._smallest


def _in_holes(log_weights: np.ndarray) -> float:
    """Fraction of the draws where the surrogate is too low."""
    depth = np.median(log_weights) - log_weights
    return float(np.mean(~(depth < HOLE_DEPTH)))

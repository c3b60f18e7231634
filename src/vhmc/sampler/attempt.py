"""One attempt of a run: a surrogate, its draws, and what the model says of them."""

from typing import NamedTuple

import numpy as np

from vhmc.sampler.check import Check
from vhmc.sampler.drawing import Drawn, Mixed
from vhmc.sampler.rounds import RoundReport
from vhmc.sampler.verdict import RANKS, Verdict
from vhmc.surrogate.mixture import Mixture
from vhmc.surrogate.surrogate import Surrogate


class Attempt(NamedTuple):
    """A surrogate with its draws and what the model says of them.

    last: reports of the last rounds of training.
    """

    surrogate: Surrogate | Mixture
    drawn: Drawn | Mixed
    check: Check | None
    verdict: Verdict
    last: tuple[RoundReport, ...] = ()

    @property
    def theta(self) -> np.ndarray:
        """The draws, unconstrained, shape (chain, draw, dim)."""
        return self.drawn.theta(self.surrogate)

    @property
    def badness(self) -> tuple[int, float]:
        """Smaller is better."""
        efficiency = self.check.importance_efficiency if self.check else 0.0
        return RANKS.index(self.verdict.status), -efficiency

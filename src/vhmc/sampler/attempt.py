"""One attempt of a run: a surrogate, its draws, and what the model says of them."""

from typing import NamedTuple

import numpy as np

from vhmc.sampler.check import Check
from vhmc.sampler.drawing import Drawn
from vhmc.sampler.verdict import RANKS, Verdict
from vhmc.surrogate.surrogate import Surrogate


class Attempt(NamedTuple):
    """A surrogate with its draws and what the model says of them."""

    surrogate: Surrogate
    drawn: Drawn
    check: Check | None
    verdict: Verdict

    @property
    def theta(self) -> np.ndarray:
        """The draws, unconstrained, shape (chain, draw, dim)."""
        x = self.drawn.x
        flat = self.surrogate.transport.forward(x.reshape(-1, x.shape[-1]))
        return flat.reshape(x.shape)

    @property
    def badness(self) -> tuple[int, float]:
        """Smaller is better."""
        efficiency = self.check.importance_efficiency if self.check else 0.0
        return RANKS.index(self.verdict.status), -efficiency

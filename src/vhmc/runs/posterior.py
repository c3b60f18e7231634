"""What a run hands back."""

import functools
import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from vhmc import _arviz
from vhmc.core.potentials import Surrogate
from vhmc.runs.arviz_export import to_arviz
from vhmc.runs.training import Trained
from vhmc.targets.parameters import Parameters


@dataclass(frozen=True)
class Posterior:
    """Draws in the user's space, what they cost, and what to know of them.

    parameters: names, shapes and constraints.
    unconstrained: draws as the method sees them, shape (chain, draw, dim).
    stats: statistics of the transitions, shape (chain, draw).
    costs: calls of the model by phase.
    seconds: time by phase, compilation included.
    trained: the state after training, with every exact gradient that was paid for.
    warnings: sentences that were also issued as warnings.
    """

    parameters: Parameters
    unconstrained: np.ndarray
    stats: dict[str, np.ndarray]
    costs: dict[str, int]
    seconds: dict[str, float]
    trained: Trained
    warnings: tuple[str, ...]

    @functools.cached_property
    def draws(self) -> dict[str, np.ndarray]:
        """Draws by name, shape (chain, draw, ...)."""
        return self.parameters.constrain(self.unconstrained)

    @property
    def num_evaluations(self) -> int:
        """Calls of the model, everything included."""
        return sum(self.costs.values())

    @property
    def surrogate(self) -> Surrogate:
        """The frozen network, a potential on the unconstrained space."""
        return self.trained.state.surrogate

    def to_arviz(self) -> Any:
        """InferenceData (ArviZ 0) or DataTree (ArviZ 1), with costs as attributes."""
        attributes = {
            "inference_library": "vhmc",
            "num_evaluations": self.num_evaluations,
            "costs": json.dumps(self.costs),
            "seconds": json.dumps(self.seconds),
            "warnings": json.dumps(self.warnings),
        }
        return to_arviz(self.draws, self.stats, attributes)

    def summary(self, **options: Any) -> Any:
        """ArviZ's table of means, intervals, effective sizes and R-hat, all digits.

        options: those of `arviz.summary`.
        """
        # ArviZ's own rounding shows a parameter of size 0.001 as 0.001 with sd 0.000.
        options = {"round_to": "none", **options}
        return _arviz.load().summary(self.to_arviz(), **options)

    def __repr__(self) -> str:
        chains, draws, _ = self.unconstrained.shape
        sizes = (
            f"{name}{list(s) if s else ''}"
            for name, s in self.parameters.shapes.items()
        )
        return (
            f"Posterior({', '.join(sizes)}: {chains} chains x {draws} draws, "
            f"{self.num_evaluations} evaluations)"
        )

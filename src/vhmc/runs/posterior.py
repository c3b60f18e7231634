"""What a run hands back."""

import functools
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from vhmc import _arviz
from vhmc._types import Potential
from vhmc.diagnostics.effective_size import bulk_ess
from vhmc.runs.arviz_export import to_arviz
from vhmc.runs.check import Check
from vhmc.runs.corrections import Estimate, expect
from vhmc.runs.training import Trained
from vhmc.runs.verdict import Verdict
from vhmc.targets.account import Paid
from vhmc.targets.parameters import Parameters


@dataclass(frozen=True)
class Posterior:
    """Draws in the user's space, what they cost, and what to know of them.

    parameters: names, shapes and constraints.
    unconstrained: draws as the method sees them, shape (chain, draw, dim).
    stats: statistics of the transitions, shape (chain, draw).
    costs: calls of the model by phase.
    seconds: time by phase, compilation included.
    surrogate: the frozen potential on the unconstrained space.
    warnings: what to know before trusting the draws.
    trained: of the paper's algorithm: the state after training, with every exact
        gradient that was paid for.
    verdict, correction: of the default sampler: how far to trust the draws, and the
        rung of the ladder they are from.
    check: true values at fresh draws of the surrogate, which the verdict rests on.
    free: uncorrected draws of the surrogate, unconstrained.
    paid: every point at which the model was asked.
    """

    parameters: Parameters
    unconstrained: np.ndarray
    stats: dict[str, np.ndarray]
    costs: dict[str, int]
    seconds: dict[str, float]
    surrogate: Potential
    warnings: tuple[str, ...]
    trained: Trained | None = None
    verdict: Verdict | None = None
    correction: str = "none"
    check: Check | None = None
    free: np.ndarray | None = None
    paid: Paid | None = None

    @functools.cached_property
    def draws(self) -> dict[str, np.ndarray]:
        """Draws by name, shape (chain, draw, ...)."""
        return self.parameters.constrain(self.unconstrained)

    @property
    def num_evaluations(self) -> int:
        """Calls of the model, everything included."""
        return sum(self.costs.values())

    def expect(self, function: Callable[[Any], Any] | None = None) -> Estimate:
        """Expectations with standard errors, corrected where that lowers the error.

        function: from named draws, with two leading axes (chain, draw), to values of
            the same leading shape; all parameters, flat, unless given. The free draws
            of the surrogate serve as a control variate for the checked ones.
        """
        if self.check is None or self.free is None:
            raise ValueError("only draws of vhmc.sample know how far they are off")

        def values(thetas: np.ndarray) -> np.ndarray:
            if function is None:
                return self.parameters.values(thetas)
            answer = np.asarray(function(self.parameters.constrain(thetas)))
            return answer.reshape(*thetas.shape[:2], -1)

        free = values(self.free)
        checked = values(self.check.theta[None])[0]
        ess = np.min(bulk_ess(free)) if self.free.shape[1] >= 4 else 1.0
        flat = free.reshape(-1, free.shape[-1])
        return expect(flat, checked, self.check.share, self.check.weights, float(ess))

    def to_arviz(self) -> Any:
        """InferenceData (ArviZ 0) or DataTree (ArviZ 1), with costs as attributes."""
        attributes = {
            "inference_library": "vhmc",
            "num_evaluations": self.num_evaluations,
            "costs": json.dumps(self.costs),
            "seconds": json.dumps(self.seconds),
            "warnings": json.dumps(self.warnings),
        }
        if self.verdict is not None:
            attributes["verdict"] = self.verdict.status
            attributes["reasons"] = json.dumps(self.verdict.reasons)
            attributes["correction"] = self.correction
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
        verdict = f", verdict {self.verdict.status}" if self.verdict else ""
        return (
            f"Posterior({', '.join(sizes)}: {chains} chains x {draws} draws, "
            f"{self.num_evaluations} evaluations{verdict})"
        )

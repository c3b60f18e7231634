"""What a run hands back."""

import functools
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from vhmc import _arviz
from vhmc.evaluation.evaluator import Paid
from vhmc.evaluation.space import Space, in_words
from vhmc.numerics.effective_size import bulk_ess
from vhmc.report.cards import posterior_card
from vhmc.report.facts import facts_of, save
from vhmc.report.status import Moment
from vhmc.sampler.arviz_export import to_arviz
from vhmc.sampler.check import Check
from vhmc.sampler.correction import Estimate, expect, mean_of_chains
from vhmc.sampler.verdict import Verdict
from vhmc.surrogate.log_density import LogDensity


class Failure(NamedTuple):
    """A point at which the model had no answer.

    number: its place among all points that were paid for.
    theta: the point, unconstrained.
    """

    number: int
    theta: np.ndarray
    phase: str
    reason: str


@dataclass(frozen=True)
class Posterior:
    """Draws in the user's space, what they cost, and what to know of them.

    parameters: names, shapes and constraints.
    unconstrained: draws as the method sees them, shape (chain, draw, dim).
    stats: statistics of the transitions, shape (chain, draw).
    costs: calls of the model by phase.
    seconds: time by phase, compilation included.
    surrogate: its log density on the unconstrained space, for other samplers and for
        the `warm_start` of another run.
    warnings: what to know before trusting the draws.
    trained: of the paper's algorithm: the state after training, with every exact
        gradient that was paid for.
    verdict, correction: of the default sampler: how far to trust the draws, and the
        rung of the ladder they are from.
    check: true values at fresh draws of the surrogate, which the verdict rests on.
    free: uncorrected draws of the surrogate, unconstrained.
    paid: every point at which the model was asked.
    history: what each round of training saw, before it was learnt from.
    settings: with which `sample` makes it again.
    """

    parameters: Space
    unconstrained: np.ndarray
    stats: dict[str, np.ndarray]
    costs: dict[str, int]
    seconds: dict[str, float]
    surrogate: LogDensity
    warnings: tuple[str, ...]
    trained: Any = None
    verdict: Verdict | None = None
    correction: str = "none"
    check: Check | None = None
    free: np.ndarray | None = None
    paid: Paid | None = None
    history: tuple[Moment, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)

    @functools.cached_property
    def draws(self) -> dict[str, np.ndarray]:
        """Draws by name, shape (chain, draw, ...).

        Whatever the model derives from its parameters is there as well, computed once
        for each draw when first asked for.
        """
        return self.parameters.expand(self.unconstrained)

    @property
    def failures(self) -> list[Failure]:
        """Points at which the model raised, took too long or was not finite."""
        if self.paid is None:
            return []
        failed = np.flatnonzero(~self.paid.is_finite)
        return [
            Failure(int(i), self.paid.theta[i], *map(str, (phase, reason)))
            for i, phase, reason in zip(
                failed, self.paid.phase[failed], self.paid.reason[failed], strict=True
            )
        ]

    @property
    def num_evaluations(self) -> int:
        """Calls of the model, everything included."""
        return sum(self.costs.values())

    def expect(self, function: Callable[[Any], Any] | None = None) -> Estimate:
        """Expectations with standard errors, corrected where that lowers the error.

        function: from named draws, with two leading axes (chain, draw), to values of
            the same leading shape; all parameters, flat, unless given. The free draws
            of the surrogate serve as a control variate for the checked ones; exact
            draws speak for themselves.
        """
        if self.verdict is None:
            raise ValueError("only draws of vhmc.sample know how far they are off")
        if self.check is None or self.free is None:
            raise ValueError(
                "none of these draws was checked: give a larger budget, or go on with "
                "the run that was interrupted"
            )

        def values(thetas: np.ndarray) -> np.ndarray:
            if function is None:
                return self.parameters.values(thetas)
            answer = np.asarray(function(self.parameters.expand(thetas)))
            return answer.reshape(*thetas.shape[:2], -1)

        if self.correction == "exact":
            return mean_of_chains(values(self.unconstrained))
        free = values(self.free)
        checked = values(self.check.theta[None])[0]
        ess = np.nanmin(bulk_ess(free)) if self.free.shape[1] >= 4 else 1.0
        flat = free.reshape(-1, free.shape[-1])
        return expect(flat, checked, self.check.share, self.check.weights, float(ess))

    def to_arviz(self, log_likelihood: bool = False) -> Any:
        """InferenceData (ArviZ 0) or DataTree (ArviZ 1), with costs as attributes.

        log_likelihood: whether to add those of single observations, as ArviZ's `loo`
            needs them; it runs the model's likelihood once for each draw.
        """
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
        groups = {"posterior": self.draws, "sample_stats": self.stats}
        if log_likelihood:
            groups["log_likelihood"] = self.parameters.log_likelihood(
                self.unconstrained
            )
            if not groups["log_likelihood"]:
                raise ValueError("the model does not say the likelihood of single data")
        space = self.parameters
        return to_arviz(groups, attributes, space.dims, space.coords)

    def summary(self, **options: Any) -> Any:
        """ArviZ's table of means, intervals, effective sizes and R-hat, all digits.

        options: those of `arviz.summary`.
        """
        # ArviZ's own rounding shows a parameter of size 0.001 as 0.001 with sd 0.000.
        options = {"round_to": "none", **options}
        table = _arviz.load().summary(self.to_arviz(), **options)
        for name in {"ess_bulk", "ess_tail"} & set(table.columns):
            table[name] = table[name].clip(upper=self.most_effective)
        return table

    @property
    def most_effective(self) -> float:
        """Bound of the effective draws: resampling makes no new ones."""
        if self.correction != "importance" or self.check is None:
            return np.inf
        return float(1 / np.sum(self.check.weights**2))

    def report(self, path: str | Path) -> Path:
        """Write a page to look at: one file, for any browser, without a network."""
        from vhmc.report.page import write_page  # Matplotlib is not for everybody

        return write_page(facts_of(self), path)

    def save(self, path: str | Path) -> Path:
        """Write what the report shows, draws included; `vhmc report` makes the page.

        It is NumPy's format: `numpy.load(path)["values"]` are the draws.
        """
        return save(facts_of(self), path)

    def _repr_html_(self) -> str:
        return posterior_card(self)

    def __repr__(self) -> str:
        chains, draws, _ = self.unconstrained.shape
        verdict = f", verdict {self.verdict.status}" if self.verdict else ""
        names = in_words(self.parameters.shapes)
        return (
            f"Posterior({names}: {chains} chains x {draws} draws, "
            f"{self.num_evaluations} evaluations{verdict})"
        )

"""`Posterior`: draws, verdict, costs and surrogate, as `sample` returns them."""

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from vhmc.evaluation.evaluator import EvaluationLog
from vhmc.evaluation.space import Space, in_words
from vhmc.evaluation.user_code import NO_DENSITY
from vhmc.numerics.effective_size import FEWEST_DRAWS, bulk_ess
from vhmc.numerics.tails import num_moments
from vhmc.report.cards import posterior_card
from vhmc.report.facts import facts_of, save
from vhmc.report.status import Moment
from vhmc.sampler.check import Check
from vhmc.sampler.container import to_arviz
from vhmc.sampler.correction import (
    CORRECTIONS,
    NONE,
    Estimate,
    expect,
    mean_of_chains,
    quantile_at,
    without_moments,
)
from vhmc.sampler.evidence import Evidence
from vhmc.sampler.modes.copies import matched_draws
from vhmc.sampler.modes.record import Mode
from vhmc.sampler.summary import summary
from vhmc.sampler.verdict import Verdict
from vhmc.sampler.walls.wall import Wall
from vhmc.structure.record import Structure
from vhmc.surrogate.surrogate import LogDensity

NOT_CHECKED = (
    "none of these draws was checked: give a larger budget, or go on with the run that "
    "was interrupted"
)


class Failure(NamedTuple):
    """A point at which the model had no answer.

    number: its place in the evaluation log.
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
    costs: evaluations by phase.
    seconds: time by phase, compilation included.
    surrogate: its log density on the unconstrained space, for other samplers and for
        the `warm_start` of another run.
    warnings: what to know before trusting the draws.
    trained: of the paper's algorithm: the state after training, with every exact
        gradient.
    verdict, correction: of the default sampler: how far to trust the draws, and how
        they were corrected.
    check: true energies at fresh draws of the surrogate, which the verdict rests on.
    uncorrected: draws of the surrogate, unconstrained.
    evaluation_log: every evaluation of the model.
    history: what each round of training saw, before the surrogate was fitted to it.
    settings: arguments of `sample` that reproduce the run.
    structure: conditional independence of the parameters that the run has used.
    evidence: log of the integral of the density as the model gives it, with its
        standard error; `log_evidence` is the same where that means something.
    constants: why it means nothing, in a sentence; empty where it does.
    modes: separate modes that were found, with their masses, the heaviest first.
    walls: that were found, beyond which the density is zero.
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
    uncorrected: np.ndarray | None = None
    evaluation_log: EvaluationLog | None = None
    history: tuple[Moment, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)
    structure: Structure | None = None
    evidence: Evidence | None = None
    constants: str = ""
    modes: tuple[Mode, ...] = ()
    walls: tuple[Wall, ...] = ()

    @functools.cached_property
    def draws(self) -> dict[str, np.ndarray]:
        """Draws by name, shape (chain, draw, ...).

        Whatever the model derives from its parameters is there as well, computed once
        for each draw when first asked for.
        """
        return self.parameters.expand(self.unconstrained)

    @property
    def failures(self) -> list[Failure]:
        """Points at which the model raised, took too long or was not finite.

        A log density of minus infinity is an answer.
        """
        log = self.evaluation_log
        if log is None:
            return []
        return [
            Failure(int(i), log.theta[i], str(log.phase[i]), str(log.reason[i]))
            for i in np.flatnonzero(~log.is_finite & (log.reason != NO_DENSITY))
        ]

    @property
    def num_evaluations(self) -> int:
        """Evaluations, everything included."""
        return sum(self.costs.values())

    @functools.cached_property
    def moments(self) -> np.ndarray:
        """How many of mean and sd exist, of every number in `draws`: 2, 1 or 0.

        As far as the draws can tell; those of the surrogate, which are the most, are
        asked where there are any.
        """
        draws = self.draws
        if self.uncorrected is not None and self.correction != NONE:
            draws = self.parameters.expand(self.uncorrected)
        leading = next(iter(draws.values())).shape[:2]
        flat = [value.reshape(*leading, -1) for value in draws.values()]
        return num_moments(np.concatenate(flat, axis=-1))

    @property
    def names(self) -> list[str]:
        """Of all single numbers in `draws`, as `theta[3]`."""
        labels = self.parameters.labels
        shapes = {name: value.shape[2:] for name, value in self.draws.items()}
        return [label for name in shapes for label in labels(name, shapes[name])]

    @property
    def error_bounds(self) -> np.ndarray:
        """Of the errors of means, in sd, and of sds, relative, of every number.

        Shape (2, number); not a number for what the model derives from its parameters.
        """
        rows = () if self.verdict is None else self.verdict.parameters
        known = {row.name: (row.mean_bound, row.sd_bound) for row in rows}
        pairs = [known.get(name, (np.nan, np.nan)) for name in self.names]
        return np.array(pairs).reshape(-1, 2).T

    def expect(self, function: Callable[[Any], Any] | None = None) -> Estimate:
        """Expectations with standard errors, corrected where that lowers the error.

        function: from named draws, with two leading axes (chain, draw), to values of
            the same leading shape; all parameters, flat, unless given. The uncorrected
            draws serve as a control variate for the checked ones; of exact draws the
            mean is taken. Where the tail of the draws says that there is no mean the
            value is not a number and its kind `no mean`: ask for `quantiles`.
        """
        values = self._values(function)
        estimate = self._mean(values)
        return without_moments(estimate, num_moments(values(self.uncorrected)))

    def relabelled(self) -> dict[str, np.ndarray]:
        """Draws of the parameters, by name, with labels as in the heaviest mode.

        The components of a mixture model can be numbered in any order, and the
        posterior has a copy for each. This keeps one: parameters with an axis of the
        same length are reordered together, every draw for itself.
        """
        space = self.parameters
        values = {name: self.draws[name] for name in space.shapes}
        if not self.modes:
            raise ValueError("only a run of vhmc.sample knows its modes")
        return matched_draws(space, values, self.modes[0].center)

    def quantiles(
        self,
        probabilities: ArrayLike = (0.05, 0.5, 0.95),
        function: Callable[[Any], Any] | None = None,
    ) -> Estimate:
        """Quantiles with standard errors, one row a probability.

        They exist whatever the tails. The probability up to a quantile is corrected as
        a mean is by `expect`.

        function: as that of `expect`.
        """
        values = self._values(function)
        drawn = values(self.unconstrained if self.is_exact else self.uncorrected)
        drawn = drawn.reshape(-1, drawn.shape[-1])
        found = []
        for probability in np.ravel(probabilities):
            cut = np.quantile(drawn, probability, axis=0)
            below = self._mean(functools.partial(_is_below, values, cut))
            found.append((*quantile_at(drawn, probability, below), below.kind))
        return Estimate(*(np.stack(part) for part in zip(*found, strict=True)))

    def _values(
        self, function: Callable[[Any], Any] | None
    ) -> Callable[[Any], np.ndarray]:
        """A function of points, shape (chain, draw, dim), to flat values."""
        if self.verdict is None:
            raise ValueError("only draws of vhmc.sample have estimates of their errors")
        if self.check is None or self.uncorrected is None:
            raise ValueError(NOT_CHECKED)

        def values(thetas: np.ndarray) -> np.ndarray:
            if function is None:
                return self.parameters.values(thetas)
            answer = np.asarray(function(self.parameters.expand(thetas)))
            return answer.reshape(*thetas.shape[:2], -1)

        return values

    def _mean(self, values: Callable[[Any], np.ndarray]) -> Estimate:
        """Means of values, whether they exist or not."""
        assert self.check is not None
        if self.is_exact:
            return mean_of_chains(values(self.unconstrained))
        check, uncorrected = self.check, values(self.uncorrected)
        checked = values(check.theta[None])[0]
        is_long = uncorrected.shape[1] >= FEWEST_DRAWS
        ess = float(np.nanmin(bulk_ess(uncorrected))) if is_long else 1.0
        flat = uncorrected.reshape(-1, uncorrected.shape[-1])
        return expect(flat, checked, check.probability, check.weights, ess)

    @property
    def log_evidence(self) -> Evidence:
        """Log of the integral of prior times likelihood, and its standard error.

        It is the evidence of the model, for Bayes factors, if the density has all its
        constants: those of the likelihood, and a prior that integrates to one on the
        support of its parameters. The models of NumPyro and PyMC do, and those of Stan
        but for bounds that cut a prior (half a normal takes `log 2` more). A density
        that is written by hand counts as it is given. It takes no evaluation and rests
        on the checked draws, whatever the correction: trust it as far as the verdict.
        """
        if self.verdict is None:
            raise ValueError("only a run of vhmc.sample has an evidence")
        if self.constants:
            raise ValueError(self.constants)
        if self.evidence is None:
            raise ValueError(NOT_CHECKED)
        return self.evidence

    def to_arviz(self, log_likelihood: bool = False) -> Any:
        """InferenceData (ArviZ 0) or DataTree (ArviZ 1), with costs as attributes.

        log_likelihood: whether to add those of single observations, as ArviZ's `loo`
            needs them; it runs the model's likelihood once for each draw.
        """
        return to_arviz(self, log_likelihood)

    def summary(self, **options: Any) -> Any:
        """ArviZ's table of means, intervals, effective sizes and R-hat, all digits.

        Beside them, `mean_within` and `sd_within` bound the errors of means, in sd, and
        of sds, relative: nine of ten keep them (`verdict.parameters` has more).

        If some quantity has no mean or no sd these are not numbers, nor are their
        errors, and the table has `5%`, `median`, `95%` and `moments` as well.

        options: those of `arviz.summary`.
        """
        return summary(self, options)

    @property
    def is_exact(self) -> bool:
        """Whether the law of the draws is the posterior, whatever the surrogate."""
        return CORRECTIONS[self.correction].is_exact

    @property
    def max_ess(self) -> float:
        """Bound of the effective sample size: resampling makes no new draws."""
        if self.check is None:
            return np.inf
        return CORRECTIONS[self.correction].max_ess(self.check)

    def report(self, path: str | Path) -> Path:
        """Write an HTML report: one file that needs no network."""
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


def _is_below(
    values: Callable[[Any], np.ndarray], cut: np.ndarray, theta: np.ndarray
) -> np.ndarray:
    return (values(theta) <= cut).astype(float)

"""One run as a row: true errors, the verdict, and all that it rested on."""

import json
import time
import warnings
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from vhmc.evaluation.user_code import Guarded
from vhmc.lab.bench.verdict.case import errors, is_held_out
from vhmc.lab.bench.verdict.cases import CASES, family_of, moments
from vhmc.sampler.correction import NONE
from vhmc.sampler.parameter_errors import error_sources
from vhmc.sampler.posterior import Posterior
from vhmc.sampler.sample import sample
from vhmc.sampler.verdict import RANKS


class VerdictRow(NamedTuple):
    """A run of the default sampler on a posterior of the set.

    mean_error, sd_error: the worst, in reference sd and relative; infinite if the run
        failed.
    concern: the worst status of the doubts that are not among the statistics.
    note: reasons of the verdict, or the message of a run that failed.
    numbers: all statistics of the verdict by name, as JSON.
    parameters: lists by name, as JSON: true errors of means and sds, and the sources of
        error of both (`vhmc.sampler.parameter_errors`).
    """

    problem: str
    dim: int
    budget: int
    seed: int
    mean_error: float
    sd_error: float
    num_evaluations: int
    seconds: float
    verdict: str
    concern: str
    correction: str
    note: str
    numbers: str
    parameters: str

    @property
    def key(self) -> tuple[str, int, int]:
        """What identifies a run."""
        return self.problem, self.budget, self.seed

    @property
    def error(self) -> float:
        """The larger of the two."""
        return max(self.mean_error, self.sd_error)

    @property
    def family(self) -> str:
        """Of the posterior."""
        return family_of(self.problem)

    @property
    def is_held_out(self) -> bool:
        """Whether no rule was fitted on it."""
        return is_held_out(self.problem)

    def __str__(self) -> str:
        return (
            f"{self.problem} at {self.budget}, seed {self.seed}: mean error "
            f"{self.mean_error:.2g}, sd error {self.sd_error:.2g}, {self.verdict}, "
            f"{self.num_evaluations} evaluations, {self.seconds:.1f} s"
        )


def measure(problem: str, budget: int, seed: int) -> VerdictRow:
    """Sample a posterior of the set and compare the draws with its reference."""
    target = CASES[problem]().make()
    began = time.perf_counter()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        # A bad verdict warns; here it is a column.
        warnings.simplefilter("ignore")
        run = Guarded(partial(sample, seed=seed, progress=False))
        posterior, failure = run(target, budget)
        seconds = time.perf_counter() - began
        found = {} if failure else _compared(problem, posterior)
    row = VerdictRow(
        problem=problem,
        dim=target.dim,
        budget=budget,
        seed=seed,
        mean_error=np.inf,
        sd_error=np.inf,
        num_evaluations=target.num_evaluations,
        seconds=round(seconds, 2),
        verdict="failed",
        concern="",
        correction="",
        note=" ".join(failure.split()),
        numbers="{}",
        parameters="{}",
    )
    return row._replace(**found)


def _compared(problem: str, posterior: Posterior) -> dict[str, Any]:
    case, verdict, values = CASES[problem](), posterior.verdict, posterior.parameters
    assert verdict is not None
    drawn = values.values(posterior.unconstrained)
    flat = drawn.reshape(-1, drawn.shape[-1])
    mean_errors, sd_errors = errors(case, moments(problem), flat)
    concerns = [RANKS.index(one.status) for one in verdict.concerns]
    return {
        "mean_error": float(np.max(np.abs(mean_errors))),
        "sd_error": float(np.max(np.abs(sd_errors))),
        "num_evaluations": posterior.num_evaluations,
        "verdict": verdict.status,
        "concern": RANKS[max(concerns, default=0)],
        "correction": posterior.correction,
        "note": " ".join(" | ".join(posterior.warnings).split()),
        "numbers": _json(verdict.numbers()),
        "parameters": _json(
            {"true_mean": mean_errors, "true_sd": sd_errors}
            | _sources(posterior, case.by_rank)
        ),
    }


def _sources(posterior: Posterior, by_rank: bool) -> dict[str, np.ndarray]:
    """By name; nothing if no draw was checked, or if the errors cannot be compared."""
    check, verdict, space = posterior.check, posterior.verdict, posterior.parameters
    if check is None or verdict is None or verdict.statistics is None:
        return {}
    is_compared = (posterior.moments == 2) ^ by_rank
    is_corrected = posterior.correction != NONE
    ess = min(verdict.statistics.ess, posterior.max_ess)
    pair = error_sources(check, space, ess, is_corrected)
    return {
        f"{name}_{kind}": np.where(is_compared, source, np.nan)
        for kind, sources in zip(("mean", "sd"), pair, strict=True)
        for name, source in sources._asdict().items()
    }


def _json(numbers: dict[str, Any]) -> str:
    """Four digits of every number."""
    short = {
        name: [float(f"{entry:.4g}") for entry in np.atleast_1d(value)]
        for name, value in numbers.items()
    }
    return json.dumps(
        {n: v[0] if np.ndim(numbers[n]) == 0 else v for n, v in short.items()}
    )

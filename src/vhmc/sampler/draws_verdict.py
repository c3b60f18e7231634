"""The verdict on draws from anywhere: its statistics, limits and sentences."""

from dataclasses import dataclass

import numpy as np

from vhmc.numerics.stein import SteinErrors
from vhmc.sampler.verdict import RANKS, Verdict

CAUTION, BAD = 0.12, 0.2
"""Errors of a mean, in sd, or relative ones of an sd, that are doubtful, and bad."""
CERTAIN = 2.0
"""Standard errors by which an error is above a limit before it counts."""
UNSURE = 0.12
"""Standard errors above which an error that is doubtful would not be seen."""
LEAST_P_VALUE = 1e-3
"""Of the Stein discrepancy, below which draws have another shape."""
RHAT = 1.05, 1.2
"""R-hat of the draws' own chains that is doubtful, and bad."""
FAILED = 0.02
"""Fraction of draws without an answer that is doubtful."""


@dataclass(frozen=True, kw_only=True)
class DrawsStatistics:
    """What the verdict on draws from anywhere rests on.

    labels: of the parameters, unconstrained.
    errors: of means and sds by parameter, with standard errors.
    p_value: that draws of the posterior have as large a Stein discrepancy.
    rhat, ess: of the worst parameter in the draws' own chains.
    failed_fraction: of checked draws at which the model had no answer.
    num_checks: draws that were evaluated.
    """

    labels: tuple[str, ...]
    errors: SteinErrors
    p_value: float
    rhat: float
    ess: float
    failed_fraction: float
    num_checks: int

    def __repr__(self) -> str:
        width = max(9, *(len(label) for label in self.labels))
        head = f"{'parameter':{width}}  mean error (sd)    sd error (relative)"
        rows = [
            f"{label:{width}}  {mean:+.3f} +- {mean_se:.3f}   {sd:+.3f} +- {sd_se:.3f}"
            for label, mean, mean_se, sd, sd_se in zip(
                self.labels, *self.errors, strict=True
            )
        ]
        more = f"Stein discrepancy: p = {self.p_value:.2g}; R-hat {self.rhat:.3g}"
        return "\n".join([head, *rows, more, f"{self.num_checks} draws checked"])


def judge_draws(statistics: DrawsStatistics) -> Verdict:
    """Compare the statistics with their limits."""
    found = _doubts(statistics)
    found.sort(key=lambda row: -row[0])
    rank = found[0][0] if found else 0
    reasons = tuple(sentence for _, sentence in found)
    return Verdict(RANKS[rank], reasons, draws_statistics=statistics)


def _doubts(statistics: DrawsStatistics) -> list[tuple[int, str]]:
    errors, labels = statistics.errors, statistics.labels
    found = []
    for what, unit, error, se in (
        ("mean", "sd", errors.mean, errors.mean_se),
        ("sd", "of it", errors.sd, errors.sd_se),
    ):
        certain = np.abs(error) - CERTAIN * se
        worst = int(np.argmax(certain))
        is_certain = bool(certain[worst] > CAUTION)
        rank = int(is_certain) + int(is_certain and abs(error[worst]) > BAD)
        if rank:
            found.append(
                (
                    rank,
                    f"gradients at the draws put the {what} of {labels[worst]} off by "
                    f"{error[worst]:+.2f} {unit} (+- {se[worst]:.2f})",
                )
            )
        elif se.max() > UNSURE:
            widest = int(np.argmax(se))
            found.append(
                (
                    1,
                    f"the error of the {what} of {labels[widest]} is known to "
                    f"+- {se[widest]:.2f} {unit} only: raise the budget",
                )
            )
    if statistics.p_value < LEAST_P_VALUE:
        found.append(
            (
                1,
                "the gradients at the draws are not those of their law: Stein "
                f"discrepancy with p = {statistics.p_value:.1g}",
            )
        )
    if not statistics.rhat <= RHAT[0]:
        rank = 1 if statistics.rhat <= RHAT[1] else 2
        found.append((rank, f"R-hat {statistics.rhat:.3g}: the chains disagree"))
    if statistics.failed_fraction > FAILED:
        found.append(
            (
                1,
                "the model had no finite answer at "
                f"{statistics.failed_fraction:.1%} of the draws",
            )
        )
    return found

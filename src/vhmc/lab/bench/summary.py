r"""Summarise rows, problem by problem at one budget.

The cost of NUTS *for the same accuracy* follows from its default run of $n$ evaluations
with worst mean error $e$, while ours took $n'$ evaluations and has error $e'$. A Monte
Carlo error falls like $1 / \sqrt{n}$, so NUTS reaches $e'$ after $n (e / e')^2$
evaluations. If we are less accurate than its default run, NUTS may thus stop early, and
even its warm-up, which it cannot shorten, is scaled down. If we are more accurate, we
do not extrapolate but count the run as it is, and the ratio is a lower bound:

$$\mathrm{ratio} = \frac{n}{n'} \min\{1, (e / e')^2\}.$$
"""

import statistics
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np

from vhmc.lab.bench.measure import METHODS, UNBUDGETED
from vhmc.lab.bench.posteriordb import POSTERIORDB
from vhmc.lab.bench.rows import Row

OURS = "vhmc"
TOLERANCE = 0.10
"""Errors that we want: of a mean in sd, of an sd relative to itself."""
WANTED_FRACTION = 0.8
"""Of the seeds that must be within the tolerance: four of five."""
FAILURE = 0.25
"""Errors beyond which a good verdict is a silent failure."""
AHEAD = 0.8
"""Of our larger error: a rival with a smaller part of it is ahead of us."""
SMALL = 0.05
"""Our larger error up to which no rival counts as ahead: it is mostly noise."""


def summarise(rows: Sequence[Row], main_budget: int) -> list[dict[str, Any]]:
    """One line per problem, with medians over seeds at the main budget."""
    names = dict.fromkeys(row.problem for row in rows)
    return [
        _line([row for row in rows if row.problem == name], main_budget)
        for name in names
    ]


def is_silent_failure(row: Row) -> bool:
    """Whether the verdict was good though an error is large."""
    return row.verdict == "good" and not row.is_within(FAILURE)


def is_false_alarm(row: Row) -> bool:
    """Whether the verdict was not good though both errors are small."""
    return row.verdict != "good" and row.is_within(TOLERANCE)


def nuts_ratio(
    cost: float, error: float, nuts_cost: float, nuts_error: float
) -> tuple[float, bool]:
    """Evaluations of NUTS to ours at equal accuracy, and whether that is a bound."""
    if np.isnan([cost, error, nuts_cost, nuts_error]).any():
        return np.nan, False
    if np.isinf(error):
        return 0.0, False
    if error <= nuts_error:
        return nuts_cost / cost, True
    return nuts_cost / cost * (nuts_error / error) ** 2, False


def meets_target(line: dict[str, Any]) -> bool:
    """Whether enough seeds are within the tolerance."""
    return line["runs"] > 0 and line["within"] >= WANTED_FRACTION * line["runs"]


def larger_error(line: dict[str, Any], method: str) -> float:
    """The larger of the two median errors of a method; NaN if it did not run."""
    prefix = "" if method == OURS else f"{method}_"
    return max(line[f"{prefix}{kind}_error"] for kind in ("mean", "sd"))


def is_ahead(line: dict[str, Any], rival: str) -> bool:
    """Whether a rival's larger error is below ours by more than noise."""
    ours = larger_error(line, OURS)
    return bool(ours > SMALL and larger_error(line, rival) < AHEAD * ours)


def headline(
    rows: Sequence[Row],
    lines: Sequence[dict[str, Any]],
    goals: Collection[str] = POSTERIORDB,
    goals_are: str = "posteriors of posteriordb",
) -> str:
    """The benchmark in one sentence.

    goals: problems that are counted if enough seeds are within the tolerance.
    goals_are: what to call them.
    """
    known = [line for line in lines if line["problem"] in goals]
    ours = [row for row in rows if row.method == OURS]
    silent = sum(map(is_silent_failure, ours))
    ratios = [line["nuts_ratio"] for line in lines]
    parts = [f"{silent} silent failures in {len(ours)} runs of vhmc at all budgets"]
    if known:
        met = sum(map(meets_target, known))
        parts.insert(
            0,
            f"{met} of {len(known)} {goals_are} within {TOLERANCE:.2f} sd and "
            f"{TOLERANCE:.0%} on {WANTED_FRACTION:.0%} of the seeds",
        )
    if not np.isnan(ratios).all():
        parts.append(
            f"NUTS takes {np.nanmedian(ratios):.1f} times the evaluations for the same "
            "accuracy (median over problems)"
        )
    return "; ".join(parts) + "."


def _line(rows: list[Row], main_budget: int) -> dict[str, Any]:
    def middle(name: str, some: Iterable[Row]) -> float:
        return median(getattr(row, name) for row in some)

    main: dict[str, list[Row]] = {name: [] for name in METHODS}
    for row in rows:
        if np.isnan(row.mean_error):  # the method cannot take the model
            continue
        if row.budget == main_budget or row.method in UNBUDGETED:
            main[row.method].append(row)
    ours = main.pop(OURS)
    line: dict[str, Any] = {
        "problem": rows[0].problem,
        "dim": rows[0].dim,
        "budget": main_budget,
        "mean_error": middle("mean_error", ours),
        "sd_error": middle("sd_error", ours),
        "runs": len(ours),
        "within": sum(row.is_within(TOLERANCE) for row in ours),
        "evaluations": middle("num_evaluations", ours),
        "verdicts": verdicts(ours),
        "silent_failures": sum(map(is_silent_failure, ours)),
        "seconds_outside_first": middle(
            "seconds_outside", [row for row in ours if row.is_first]
        ),
        "seconds_outside": middle(
            "seconds_outside", [row for row in ours if not row.is_first]
        ),
    }
    for method, some in main.items():
        line[f"{method}_mean_error"] = middle("mean_error", some)
        line[f"{method}_sd_error"] = middle("sd_error", some)
        line[f"{method}_within"] = sum(row.is_within(TOLERANCE) for row in some)
        line[f"{method}_runs"] = len(some)
    for method in UNBUDGETED:
        line[f"{method}_evaluations"] = middle("num_evaluations", main[method])
        line[f"{method}_ratio"], line[f"{method}_ratio_is_bound"] = nuts_ratio(
            *(line[name] for name in ("evaluations", "mean_error")),
            *(line[f"{method}_{name}"] for name in ("evaluations", "mean_error")),
        )
    return line


def verdicts(rows: Iterable[Row]) -> str:
    """Counts of the verdicts, as `good 4, caution 1`."""
    given = [row.verdict or "failed" for row in rows]
    order = ("good", "caution", "bad", "failed")
    return ", ".join(f"{name} {given.count(name)}" for name in order if name in given)


def median(values: Iterable[float]) -> float:
    """The median, infinite values included; NaN if there are none."""
    known = list(values)
    return statistics.median(known) if known else np.nan

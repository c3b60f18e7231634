"""Write the results of experiment 2, and tell them as a story."""

from pathlib import Path
from typing import Any

import numpy as np

from vhmc.lab.experiments import output
from vhmc.lab.experiments.output import Claim, Panel, Story, judge
from vhmc.lab.experiments.parts import Numbers, total_seconds
from vhmc.lab.experiments.probit.run import Settings
from vhmc.lab.plots import Axes, Curve, curve_panels

NAMES = {
    "vbem": "VBEM",
    "fixed_form": "FF-Minibatch",
    "vhmc": "VHMC",
    "default": "vhmc.sample",
    "hmc": "HMC, Laplace mass",
    "laplace": "Laplace",
    "pathfinder": "Pathfinder",
}
FLOOR, FLOOR_DRAWS = "1,000 independent draws", 1000
AGAINST = {"truth": "the true parameter", "exact": "the exact posterior mean"}


def write(folder: Path, settings: Settings, runs: list[Numbers], quick: bool) -> Story:
    """Write figure, numbers and settings; return the story for the page."""
    rows = [row for number, one in enumerate(runs) for row in _rows(number, one)]
    output.save_table(folder, "numbers", rows)
    table = summarise(rows, settings.passes)
    output.save_table(folder, "summary", table)
    axes = [
        Axes(
            f"Against {label}",
            f"passes over the data (of {settings.num_rows} rows)",
            "RMSE of the estimated mean",
            [_curve(table, name, kind) for name in NAMES],
            {FLOOR: floor(runs)} if kind == "exact" else {},
        )
        for kind, label in AGAINST.items()
    ]
    figure = curve_panels([axes], 5.4, "quick version" if quick else "")
    panel = Panel(
        "Error of the posterior mean by passes over the data",
        output.save_figure(folder, "rmse", figure),
        "Root mean squared error of each method's posterior mean against passes over "
        "the data, on two logarithmic axes: left against the parameter that made the "
        "data, right against the exact posterior mean.",
        _claims(rows, settings),
        _remarks(table, settings),
    )
    story = Story(
        "Experiment 2: probit regression",
        f"{settings.num_runs} data sets of {settings.num_rows} rows in {settings.dim} "
        "dimensions, each from a parameter of its own. One pass is one likelihood of "
        "all rows, its gradient or a Hessian's column; minibatches count in "
        "proportion. Lines are medians over the data sets, bands quartiles.",
        (panel,),
        tuple(
            {
                "method": NAMES[line["method"]],
                "passes": f"{line['passes']:.0f}",
                "RMSE to truth": f"{line['truth_median']:.4f}",
                "RMSE to exact mean": f"{line['exact_median']:.2e}",
            }
            for line in table
        ),
        {},
        quick,
    )
    return output.save_run(
        *(folder, "probit", settings, total_seconds(runs), story),
        data="simulated from the model, as in the paper",
        passes_by_method={
            name: float(sum(one[f"{name}_passes"].max() for one in runs))
            for name in NAMES
        },
        evaluations_of_the_reference=sum(int(one["nuts_evaluations"]) for one in runs),
    )


def floor(runs: list[Numbers]) -> float:
    """Error of the mean of independent draws, by Laplace's standard deviations."""
    sds = [np.sqrt(np.mean(one["sd"] ** 2)) for one in runs]
    return float(np.median(sds)) / FLOOR_DRAWS**0.5


def _rows(number: int, one: Numbers) -> list[dict[str, Any]]:
    return [
        {
            "run": number,
            "method": method,
            "passes": float(passes),
            **{
                f"rmse_{kind}": float(np.sqrt(np.mean((mean - one[kind]) ** 2)))
                for kind in AGAINST
            },
        }
        for method in NAMES
        for passes, mean in zip(
            one[f"{method}_passes"], one[f"{method}_means"], strict=True
        )
    ]


def summarise(
    rows: list[dict[str, Any]], marks: tuple[int, ...]
) -> list[dict[str, Any]]:
    """Medians and quartiles over runs, by method and place in its sequence."""
    table = []
    for method in NAMES:
        for place in _places([row for row in rows if row["method"] == method], marks):
            line: dict[str, Any] = {
                "method": method,
                "passes": float(np.median([row["passes"] for row in place])),
                "num_runs": len(place),
            }
            for kind in AGAINST:
                values = [row[f"rmse_{kind}"] for row in place]
                names = (f"{kind}_{name}" for name in ("lower", "median", "upper"))
                quartiles = np.quantile(values, (0.25, 0.5, 0.75))
                line |= zip(names, quartiles, strict=True)
            table.append(line)
    return table


def _places(
    rows: list[dict[str, Any]], marks: tuple[int, ...]
) -> list[list[dict[str, Any]]]:
    """Estimates of different runs that belong together.

    VHMC's by the mark that they were made for: a run whose search took long has none
    for the first. The others' by their number.
    """
    groups: dict[int, list[dict[str, Any]]] = {}
    counts: dict[int, int] = {}
    for row in rows:
        if not np.isfinite(row["rmse_exact"]):
            continue
        place = counts.get(row["run"], 0)
        counts[row["run"]] = place + 1
        if row["method"] == "vhmc":
            place = int(np.searchsorted(marks, row["passes"]))
        groups.setdefault(place, []).append(row)
    most = max((len(group) for group in groups.values()), default=0)
    return [groups[place] for place in sorted(groups) if len(groups[place]) > most / 2]


def _curve(table: list[dict[str, Any]], method: str, kind: str) -> Curve:
    lines = [line for line in table if line["method"] == method and line["passes"] > 0]
    x, y, lower, upper = (
        np.array([line[name] for line in lines])
        for name in ("passes", f"{kind}_median", f"{kind}_lower", f"{kind}_upper")
    )
    return Curve(NAMES[method], x, y, lower, upper)


def compare(
    rows: list[dict[str, Any]], one: str, other: str, passes: float, kind: str
) -> tuple[bool, str]:
    """Whether one method's error is below another's, in the same runs, and how often.

    Runs are counted, not averaged: a surrogate that fails in one of them would decide
    a mean.

    passes: over the data, by which each run's last estimate is taken.
    """
    first, second = (
        {
            row["run"]: row[f"rmse_{kind}"]
            for row in rows
            if row["method"] == method and row["passes"] <= passes
        }
        for method in (one, other)
    )
    both = first.keys() & second.keys()
    differences = np.array([first[run] - second[run] for run in both])
    median = np.median(differences) if both else np.nan
    wins, number = (differences < 0).sum(), len(both)
    # More often than chance: two standard deviations above one half.
    holds = bool(wins > number / 2 + number**0.5)
    return holds, f"in {wins} of {number} runs (median {median:+.1e})"


def _claims(rows: list[dict[str, Any]], settings: Settings) -> tuple[Claim, ...]:
    last = settings.passes[-1]
    # Half way through, before slow methods have caught up as well.
    early = settings.passes[len(settings.passes) // 2]
    below = [
        (
            f"{NAMES[one]} after {passes} passes",
            compare(rows, one, "vbem", passes, "truth"),
        )
        for one in ("fixed_form", "vhmc")
        for passes in (early, last)
    ]
    lowest = [
        (
            f"below {NAMES[other]} against {label}",
            compare(rows, "vhmc", other, last, kind),
        )
        for kind, label in AGAINST.items()
        for other in ("fixed_form", "vbem")
    ]

    def judged(sentence: str, lead: str, found: list) -> Claim:
        words = "; ".join(f"{what} {numbers}" for what, (_, numbers) in found)
        return Claim(
            sentence, judge([holds for _, (holds, _) in found]), lead + words + "."
        )

    return (
        judged(
            "VHMC and FF-Minibatch reach a lower error than VBEM.",
            "Lower RMSE against the true parameter, with the median difference: ",
            below,
        ),
        judged(
            "VHMC has the lowest error of all, thanks to its flexible form.",
            f"After {last} passes, VHMC is ",
            lowest,
        ),
    )


def _remarks(table: list[dict[str, Any]], settings: Settings) -> tuple[str, ...]:
    def last(method: str, kind: str) -> float:
        lines = [line for line in table if line["method"] == method]
        return lines[-1][f"{kind}_median"]

    return (
        "What it can show: against the true parameter every method that finds the "
        f"posterior mean ends near {last('laplace', 'truth'):.2g}, the chance of the "
        "data themselves; differences between methods are visible only against the "
        "exact posterior mean (right).",
        f"Laplace alone is {last('laplace', 'exact'):.1e} from the exact mean. That "
        f"mean rests on {settings.nuts_draws} draws of NUTS with their gradients as "
        "control variates.",
        "VHMC is trained once by the printed update; at each mark its surrogate is "
        "frozen with the gradients seen by then, and chains on it cost no pass. "
        "The paper gives neither ridge nor number of leapfrog steps.",
    )

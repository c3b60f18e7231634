"""Write the results of the benchmark, and make the tables that it prints."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.table import Table

from vhmc.lab.bench.figure import error_panels
from vhmc.lab.bench.measure import BUDGETED, NUTPIE, NUTS, VARIANTS
from vhmc.lab.bench.rivals import CHAINS, WARMUP
from vhmc.lab.bench.rows import Row
from vhmc.lab.bench.run import Settings
from vhmc.lab.bench.summary import (
    AHEAD,
    FAILURE,
    OURS,
    SMALL,
    TOLERANCE,
    headline,
    is_ahead,
    larger_error,
    summarise,
)
from vhmc.lab.experiments import output

FIGURES = {
    "mean_error": "worst error of a mean  [sd]",
    "sd_error": "worst relative error of an sd",
}
TEXTS = ("problem", "method", "verdict", "verdicts", "first reason")
"""Columns aligned to the left."""
NAMES = {NUTS: "NUTS of BlackJAX", NUTPIE: "NUTS of nutpie"}


def write(
    folder: Path, settings: Settings, rows: Sequence[Row]
) -> tuple[list[Table], str]:
    """Write figures, the summary and the settings; return tables and the headline."""
    main = summarise(rows, settings.main_budget)
    sentence = headline(rows, main, settings.goals, settings.goals_are)
    by_budget = [summarise(rows, budget) for budget in settings.shown_budgets()]
    output.save_table(
        folder, "summary", [line for lines in by_budget for line in lines]
    )
    for name, label in FIGURES.items():
        output.save_figure(folder, name, error_panels(rows, name, label))
    save_record(folder, settings.benchmark, settings, sentence, rows)
    tables = []
    for lines in by_budget:
        tables += [_errors(lines), _verdicts(lines), _rivals(lines, settings.methods)]
        tables += [_exact(lines, method) for method in settings.unbudgeted()]
    return tables, sentence


def save_record(
    folder: Path, benchmark: str, settings: Any, headline: str, rows: Sequence[Row]
) -> None:
    """Write the settings, the headline, and the evaluations and seconds of all runs."""
    record = {
        "benchmark": benchmark,
        "settings": asdict(settings),
        "headline": headline,
        "evaluations": sum(row.num_evaluations for row in rows),
        "seconds": round(sum(row.seconds for row in rows), 1),
    }
    output.save_record(folder, "record", record)


def _errors(lines: Sequence[dict[str, Any]]) -> Table:
    return plain_table(
        f"vhmc at {lines[0]['budget']} evaluations",
        ("problem", "d", "mean error", "sd error", "within", "evals"),
        (
            (
                line["problem"],
                f"{line['dim']}",
                _number(line["mean_error"], ".3f"),
                _number(line["sd_error"], ".3f"),
                _within(line, ""),
                _number(line["evaluations"], ".0f"),
            )
            for line in lines
        ),
        "Medians over seeds of the worst error of a mean (in sd) and of an sd "
        f"(relative). within: seeds with both at most {TOLERANCE:.2f}.",
    )


def _verdicts(lines: Sequence[dict[str, Any]]) -> Table:
    return plain_table(
        f"vhmc at {lines[0]['budget']} evaluations: verdicts and seconds",
        ("problem", "verdicts", "silent", "s first", "s"),
        (
            (
                line["problem"],
                line["verdicts"],
                f"{line['silent_failures']}",
                *(_number(line[f"seconds_outside{k}"], ".1f") for k in ("_first", "")),
            )
            for line in lines
        ),
        f"silent: verdict good, but an error above {FAILURE}. s: seconds outside the "
        "model, in the first run with compilation, and in later ones.",
    )


def _rivals(lines: Sequence[dict[str, Any]], methods: Sequence[str]) -> Table:
    shown = [method for method in BUDGETED if method in methods]
    headers = [_broken(method) for method in shown]
    caption = (
        "The larger of the medians over seeds of the two errors, and seeds with both "
        f"errors at most {TOLERANCE:.2f}."
    )
    return plain_table(
        f"Larger error at {lines[0]['budget']} evaluations",
        ("problem", *headers),
        ((line["problem"], *(_scores(line, m) for m in shown)) for line in lines),
        " ".join([caption, *_leads(lines, shown)]),
    )


def _broken(method: str) -> str:
    """A narrow header: five methods fit into 80 columns."""
    for part, apart in {
        "-": "-\n",
        "+": "\n+",
        "unstructured": "un-\nstructured",
        "pathfinder": "path-\nfinder",
    }.items():
        method = method.replace(part, apart)
    return method


def _leads(lines: Sequence[dict[str, Any]], methods: Sequence[str]) -> list[str]:
    """In how many problems each rival is ahead of us, if both ran."""
    counts = []
    for rival in (method for method in methods if method not in VARIANTS):
        both = [line for line in lines if line["runs"] and line[f"{rival}_runs"]]
        if both:
            ahead = sum(is_ahead(line, rival) for line in both)
            counts.append(f"{rival} in {ahead} of {len(both)} problems")
    if not counts:
        return []
    return [
        f"Ahead of {OURS}, with less than {AHEAD:g} of its error where that is above "
        f"{SMALL:g}: {', '.join(counts)}."
    ]


def _exact(lines: Sequence[dict[str, Any]], method: str) -> Table:
    return plain_table(
        f"{NAMES[method]}, {CHAINS} chains, {WARMUP} steps of warm-up",
        (
            *("problem", "mean and sd error", "within", "evals"),
            "evals of vhmc",
            "ratio",
        ),
        (
            (
                line["problem"],
                _pair(line, f"{method}_"),
                _within(line, f"{method}_"),
                _number(line[f"{method}_evaluations"], ".0f"),
                _number(line["evaluations"], ".0f"),
                ("≥ " if line[f"{method}_ratio_is_bound"] else "")
                + _number(line[f"{method}_ratio"], ".1f"),
            )
            for line in lines
        ),
        "ratio: evaluations of NUTS to ours for our worst mean error, if its error "
        "falls like one over the root of their number; ≥ where its full run is less "
        "accurate than ours.",
    )


def plain_table(
    title: str,
    headers: Sequence[str],
    rows: Iterable[Sequence[str]],
    caption: str | None = None,
) -> Table:
    """A narrow table: numbers to the right, names never cut."""
    table = Table(
        title=f"\n{title}",
        caption=caption,
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
        min_width=60,
    )
    for header in headers:
        table.add_column(
            header,
            justify="left" if header in TEXTS else "right",
            no_wrap=header in ("problem", "method"),
            overflow="fold",
        )
    for row in rows:
        table.add_row(*row)
    return table


def _pair(line: dict[str, Any], prefix: str) -> str:
    errors = line[f"{prefix}mean_error"], line[f"{prefix}sd_error"]
    if np.isnan(errors).any():
        return "-"
    return " ".join(f"{error:.2f}" for error in errors)


def _scores(line: dict[str, Any], method: str) -> str:
    prefix = "" if method == OURS else f"{method}_"
    if not line[f"{prefix}runs"]:
        return "-"
    error = larger_error(line, method)
    return f"{error:{'.2f' if error < 10 else '.0f'}} {_within(line, prefix)}"


def _within(line: dict[str, Any], prefix: str) -> str:
    runs = line[f"{prefix}runs"]
    return f"{line[f'{prefix}within']}/{runs}" if runs else "-"


def _number(value: float, form: str) -> str:
    return "-" if np.isnan(value) else format(value, form)

"""The folder that the benchmark leaves behind, and the tables it prints."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from vhmc.lab.bench.figure import error_panels
from vhmc.lab.bench.measure import BUDGETED
from vhmc.lab.bench.rivals import CHAINS, WARMUP
from vhmc.lab.bench.rows import Row, totals
from vhmc.lab.bench.run import Settings
from vhmc.lab.bench.summary import FAILURE, OURS, TOLERANCE, headline, summarise
from vhmc.lab.bench.table import plain_table
from vhmc.lab.experiments import output

FIGURES = {
    "mean_error": "worst error of a mean  [sd]",
    "sd_error": "worst relative error of an sd",
}


def write(
    folder: Path, settings: Settings, rows: Sequence[Row]
) -> tuple[list[Table], str]:
    """Write figures, the summary and the settings; return tables and the headline."""
    lines = summarise(rows, settings.main_budget)
    sentence = headline(rows, lines)
    output.save_table(folder, "summary", lines)
    for name, label in FIGURES.items():
        output.save_figure(folder, name, error_panels(rows, name, label))
    record = {
        "benchmark": "posteriors",
        "settings": asdict(settings),
        "headline": sentence,
        **totals(rows),
    }
    output.save_record(folder, "record", record)
    tables = [_errors(lines), _verdicts(lines), _rivals(lines, settings.methods)]
    if settings.with_nuts:
        tables.append(_nuts(lines))
    return tables, sentence


def _errors(lines: Sequence[dict[str, Any]]) -> Table:
    table = plain_table(
        f"vhmc at {lines[0]['budget']} evaluations",
        *("problem", "d", "mean error", "sd error", "within", "evals"),
    )
    for line in lines:
        table.add_row(
            line["problem"],
            f"{line['dim']}",
            _number(line["mean_error"], ".3f"),
            _number(line["sd_error"], ".3f"),
            f"{line['within']}/{line['runs']}",
            _number(line["evaluations"], ".0f"),
        )
    table.caption = (
        "Medians over seeds of the worst error of a mean (in sd) and of an sd "
        f"(relative). within: seeds with both at most {TOLERANCE:.2f}."
    )
    return table


def _verdicts(lines: Sequence[dict[str, Any]]) -> Table:
    table = plain_table(
        f"vhmc at {lines[0]['budget']} evaluations: verdicts and seconds",
        *("problem", "verdicts", "silent", "s first", "s"),
    )
    for line in lines:
        table.add_row(
            line["problem"],
            line["verdicts"],
            f"{line['silent_failures']}",
            _number(line["seconds_outside_first"], ".1f"),
            _number(line["seconds_outside"], ".1f"),
        )
    table.caption = (
        f"silent: verdict good, but an error above {FAILURE}. s: seconds outside the "
        "model, in the first run with compilation, and in later ones."
    )
    return table


def _rivals(lines: Sequence[dict[str, Any]], methods: Sequence[str]) -> Table:
    shown = [method for method in BUDGETED if method in methods]
    headers = [method.replace("+", "\n+").replace("-", "-\n") for method in shown]
    title = f"Mean and sd error at {lines[0]['budget']} evaluations"
    table = plain_table(title, "problem", *headers)
    for line in lines:
        prefixes = ["" if method == OURS else f"{method}_" for method in shown]
        table.add_row(line["problem"], *(_pair(line, prefix) for prefix in prefixes))
    return table


def _nuts(lines: Sequence[dict[str, Any]]) -> Table:
    table = plain_table(
        f"NUTS, {CHAINS} chains, {WARMUP} steps of warm-up",
        *("problem", "mean and sd error", "evals", "evals of vhmc", "ratio"),
    )
    for line in lines:
        sign = "≥ " if line["nuts_ratio_is_bound"] else ""
        table.add_row(
            line["problem"],
            _pair(line, "nuts_"),
            _number(line["nuts_evaluations"], ".0f"),
            _number(line["evaluations"], ".0f"),
            sign + _number(line["nuts_ratio"], ".1f"),
        )
    table.caption = (
        "ratio: evaluations of NUTS to ours for our worst mean error, its own falling "
        "like one over their root; ≥ where its full run is less accurate than ours."
    )
    return table


def _pair(line: dict[str, Any], prefix: str) -> str:
    errors = line[f"{prefix}mean_error"], line[f"{prefix}sd_error"]
    if np.isnan(errors).any():
        return "-"
    return " ".join(f"{error:.2f}" for error in errors)


def _number(value: float, form: str) -> str:
    return "-" if np.isnan(value) else format(value, form)

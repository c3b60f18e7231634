"""The figure of time against rows, and the tables that the command prints."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter
from rich.console import Group
from rich.table import Table

from vhmc.lab.bench.tall.problems import REC, REM
from vhmc.lab.bench.tall.race import Finish
from vhmc.lab.bench.tall.run import OURS, Settings
from vhmc.lab.bench.write import plain_table
from vhmc.lab.experiments import output
from vhmc.lab.plots import BLUE, GREY, ORANGE, STYLE, blank_figure

COLORS = {
    OURS: BLUE,
    "blackjax-nuts": ORANGE,
    "numpyro-nuts": "#b2182b",
    "nutpie": "#7b3294",
    "hmcecs": "#1b7837",
    "sgld": GREY,
    "pathfinder": "#444444",
}
ENDING = ("pathfinder",)
"""Methods that run out of draws, and so may never arrive."""


def write(folder: Path, settings: Settings, rows: Sequence[Finish]) -> Group:
    """Write figure and record; return a table for each problem."""
    output.save_figure(folder, "seconds", time_against_rows(rows))
    record = {"benchmark": "tall", "settings": asdict(settings), "rem": REM, "rec": REC}
    output.save_record(folder, "record", record)
    names = dict.fromkeys(row.problem for row in rows)
    return Group(*(_table([row for row in rows if row.problem == n]) for n in names))


@rc_context(STYLE)
def time_against_rows(rows: Sequence[Finish]) -> Figure:
    """One line per method; hollow marks where it did not arrive in time."""
    figure = blank_figure(7.5, 5.0)
    axis = figure.subplots()
    for number, (method, color) in enumerate(COLORS.items()):
        apart = 1.05 ** (number - len(COLORS) // 2)  # or marks would hide each other
        some = [row for row in rows if row.method == method and not row.note]
        some.sort(key=lambda row: row.rows)
        if not some:
            continue
        # Only simulated problems differ in nothing but their rows.
        alike = [row for row in some if row.problem.startswith("simulated")]
        axis.plot(
            [apart * row.rows for row in alike],
            [min(row.seconds, row.elapsed) for row in alike],
            color=color,
            linewidth=1.2,
            label=method,
        )
        for row in some:
            is_there = np.isfinite(row.seconds)
            stopped = "x" if row.method in ENDING else "^"
            axis.plot(
                *(apart * row.rows, min(row.seconds, row.elapsed)),
                marker="o" if is_there else stopped,
                color=color,
                markerfacecolor=color if is_there else "white",
            )
    axis.set(xscale="log", yscale="log", xlabel="rows", ylabel="seconds")
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.set_title(
        f"Time to REM {REM:g} and REC {REC:g}, compilation included\n"
        "(triangles: stopped before; crosses: ended without)",
        fontsize=10,
    )
    axis.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


def _table(rows: Sequence[Finish]) -> Table:
    ours = {row.method: row.seconds for row in rows}.get(OURS, np.inf)
    return plain_table(
        f"{rows[0].problem}, {rows[0].rows:,} x {rows[0].dim}: "
        f"time to REM {REM:g} and REC {REC:g}",
        (
            *("method", "seconds", "compiling", "passes", "draws", "REM", "REC"),
            "times ours",
        ),
        (_cells(row, ours) for row in rows),
    )


def _cells(row: Finish, ours: float) -> list[str]:
    is_there = np.isfinite(row.seconds)
    seconds, mark = (row.seconds, "") if is_there else (row.elapsed, "> ")
    times = [f"{mark}{seconds:.1f}", f"{mark}{seconds / ours:.1f}"]
    if not is_there and row.method in ENDING:
        times = ["never", "never"]
    return [
        *(row.method, times[0], f"{row.compiling:.1f}", f"{row.passes:,.0f}"),
        *(f"{row.num_draws:,}", f"{row.rem:.2g}", f"{row.rec:.2g}"),
        "" if row.method == OURS else times[1],
    ]

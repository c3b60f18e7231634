"""Errors against evaluations: a panel for each problem, a line for each method."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from vhmc.lab.bench.measure import NUTPIE, NUTPIE_WITHIN, NUTS, NUTS_WITHIN, UNBUDGETED
from vhmc.lab.bench.rows import Row
from vhmc.lab.bench.summary import OURS, TOLERANCE, median
from vhmc.lab.plots import BLUE, GREY, ORANGE, STYLE, blank_figure

COLUMNS = 4
LONG = 25
"""Letters of a name beside which a panel has no room for the dimension."""
HEADROOM = 1.6
"""Factor between the worst error in a panel and its upper edge."""
CEILING = 5.0
"""Errors beyond this, and infinite ones, sit on the edge: they are all useless."""


LOOKS: dict[str, dict[str, Any]] = {
    "vhmc": dict(color=BLUE, marker="o", linestyle="-"),
    "fisher-gaussian": dict(color="#56b4e9", marker="s", linestyle="--"),
    "laplace": dict(color=GREY, marker="v", linestyle=":"),
    "laplace+psis": dict(color="#444444", marker="^", linestyle="-."),
    "pathfinder+psis": dict(color=ORANGE, marker="D", linestyle="--"),
    "vhmc-unstructured": dict(color="#0b8a6f", marker="P", linestyle="--"),
    NUTS_WITHIN: dict(color="#7b3294", marker="<", linestyle=":"),
    NUTPIE_WITHIN: dict(color="#c2185b", marker=">", linestyle=":"),
    NUTS: dict(color="#7b3294", marker="*", linestyle="none"),
    NUTPIE: dict(color="#c2185b", marker="*", linestyle="none"),
}


@rc_context({**STYLE, "figure.constrained_layout.h_pad": 0.1})
def error_panels(rows: Sequence[Row], measure: str, label: str) -> Figure:
    """Every run as a faint dot, and medians over seeds joined from budget to budget.

    measure: `mean_error` or `sd_error`.
    """
    problems = {row.problem: row.dim for row in rows}
    # A run that failed before its first evaluation has no place on the axis.
    rows = [row for row in rows if row.num_evaluations > 0]
    columns = min(COLUMNS, len(problems))
    lines = -(-len(problems) // columns)
    figure = blank_figure(max(4.3 * columns, 8.0), 3.7 * lines + 1.2)
    axes = figure.subplots(lines, columns, squeeze=False, sharex=True).ravel()
    costs = [row.num_evaluations for row in rows] or [1]
    for axis, (problem, dim) in zip(axes, problems.items(), strict=False):
        _panel(axis, [row for row in rows if row.problem == problem], measure)
        # Room for the markers on the edge.
        apart = "\n" if len(problem) > LONG else "  "
        axis.set_title(f"{problem}{apart}(d = {dim})", pad=12)
        axis.tick_params(labelbottom=True)
        _label(axis.xaxis, min(costs), max(costs))
        _label(axis.yaxis, *axis.get_ylim())
    for axis in axes[len(problems) :]:
        axis.set_visible(False)
    figure.supxlabel("evaluations of the model")
    figure.supylabel(label)
    methods = {row.method for row in rows}
    handles = [
        Line2D([], [], label=method, markersize=8, **look)
        for method, look in LOOKS.items()
        if method in methods
    ]
    label = f"{TOLERANCE:g}, wanted"
    handles.append(Line2D([], [], color="black", linewidth=0.8, label=label))
    ncols = 4 if columns > 2 else 3
    figure.legend(handles=handles, loc="outside upper center", ncols=ncols)
    return figure


def _panel(axis, rows: list[Row], measure: str) -> None:
    errors = np.array([getattr(row, measure) for row in rows])
    worst = np.max(errors, where=np.isfinite(errors), initial=TOLERANCE)
    top = min(HEADROOM * worst, CEILING)
    axis.axhline(TOLERANCE, color="black", linewidth=0.8)
    for method, look in LOOKS.items():
        mine = [row for row in rows if row.method == method]
        if not mine:  # Matplotlib cannot lay out an empty scatter
            continue
        axis.scatter(
            [row.num_evaluations for row in mine],
            [min(getattr(row, measure), top) for row in mine],
            s=14,
            color=look["color"],
            alpha=0.3,
            linewidths=0,
            clip_on=False,
        )
        budgets = sorted({row.budget for row in mine})
        groups = [[row for row in mine if row.budget == budget] for budget in budgets]
        axis.plot(
            [median(row.num_evaluations for row in some) for some in groups],
            [min(median(getattr(r, measure) for r in some), top) for some in groups],
            markersize=14 if method in UNBUDGETED else 7,
            clip_on=False,
            zorder=4 if method == OURS else 3,
            **look,
        )
    axis.set(xscale="log", yscale="log")
    axis.set_ylim(top=top)
    axis.grid(alpha=0.3)


def _label(axis: Axis, low: float, high: float) -> None:
    """Plain numbers: at powers of ten, and at 2 and 5 where there are few of them."""
    is_wide = high > 30 * low
    axis.set_major_locator(LogLocator(subs=(1.0,) if is_wide else (1.0, 2.0, 5.0)))
    axis.set_major_formatter(
        FuncFormatter(lambda x, _: f"{x / 1000:g}k" if x >= 1000 else f"{x:g}")
    )
    axis.set_minor_formatter(NullFormatter())

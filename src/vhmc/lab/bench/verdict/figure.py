"""Bounds of errors by parameter against true errors, number by number."""

from collections.abc import Sequence

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

from vhmc.lab.bench.verdict.reliability import WEIGHTS, compared
from vhmc.lab.bench.verdict.rows import VerdictRow
from vhmc.lab.plots import BLUE, DARK, GREY, ORANGE, STYLE, blank_figure

LABELS = {"mean": "error of a mean  [sd]", "sd": "relative error of an sd"}
COLOURS = {"good": BLUE, "caution": ORANGE, "bad": GREY}
LEAST, MOST = 1e-4, 10.0
"""Of the axes; what lies beyond is on the edge."""


@rc_context(STYLE)
def reliability(rows: Sequence[VerdictRow]) -> Figure:
    """True errors against their bounds; nine in ten are to lie below the line."""
    figure = blank_figure(12.0, 5.4)
    axes = figure.subplots(1, len(WEIGHTS), squeeze=False)[0]
    for axis, kind in zip(axes, WEIGHTS, strict=True):
        for status, colour in COLOURS.items():
            some = [row for row in rows if row.verdict == status]
            bound, true = (np.clip(x, LEAST, MOST) for x in compared(some, kind))
            if len(bound):
                look = {"s": 8, "alpha": 0.5, "linewidths": 0, "color": colour}
                axis.scatter(bound, true, label=status, **look)
        axis.plot([LEAST, MOST], [LEAST, MOST], color=DARK, linewidth=1)
        bound, true = compared(rows, kind)
        share = f"{np.mean(true <= bound):.0%} below the line" if len(true) else ""
        axis.set(xscale="log", yscale="log", title=share)
        axis.set(xlim=(LEAST, MOST), ylim=(LEAST, MOST))
        axis.set(xlabel=f"bound of the {LABELS[kind]}", ylabel=f"true {LABELS[kind]}")
        axis.grid(alpha=0.3)
    axes[0].legend(title="verdict", loc="upper left", markerscale=3)
    return figure

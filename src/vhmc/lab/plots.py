"""Figures of the experiments, drawn with Matplotlib and without a screen."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from vhmc.lab.diagnostics.quadrature import Grid

SHARES_OF_PEAK = (0.001, 0.01, 0.1, 0.5)
STYLE: dict[Any, Any] = {
    "font.size": 14,
    "axes.titlesize": 15,
}  # legible at half the size
BLUE, ORANGE, GREY = "#1f5a99", "#d1660a", "#8a8a8a"


@rc_context(STYLE)
def contour_panels(
    box: Grid,
    panels: Sequence[tuple[str, np.ndarray]],
    exact: np.ndarray,
    labels: tuple[str, str],
    limits: tuple[tuple[float, float], tuple[float, float]],
) -> Figure:
    """One panel for each approximation and, at the bottom right, the exact density.

    panels: titles and log probabilities on the grid.
    exact: log probabilities of the exact density, dashed in every other panel.
    limits: of the two axes.
    """
    columns = 2 if len(panels) <= 3 else 3
    rows = -(-(len(panels) + 1) // columns)
    figure = blank_figure(4.2 * columns, 3.9 * rows)
    axes = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    cells = list(axes.ravel())
    for cell in cells[len(panels) : -1]:
        cell.set_visible(False)
    shown = [*zip(cells, panels, strict=False), (cells[-1], ("Exact posterior", exact))]
    for axis, (title, log_density) in shown:
        is_exact = log_density is exact
        _contours(axis, box, log_density, filled=True)
        if not is_exact:
            _contours(axis, box, exact, filled=False)
        axis.set_title(title)
        axis.set_xlim(*limits[0])
        axis.set_ylim(*limits[1])
    for axis in axes[-1]:
        axis.set_xlabel(labels[0])
    for axis in axes[:, 0]:
        axis.set_ylabel(labels[1])
    dashed = Line2D([], [], color=ORANGE, linestyle="--", label="exact")
    solid = Line2D([], [], color=BLUE, label="surrogate: 50, 10, 1, 0.1 % of the peak")
    figure.legend(handles=[solid, dashed], loc="outside lower center", ncols=2)
    return figure


@rc_context(STYLE)
def divergence_curves(
    rows: Sequence[Mapping[str, Any]],
    table: Sequence[Mapping[str, Any]],
    measures: Sequence[tuple[str, str, str]],
) -> Figure:
    """Measures against the number of nodes: every repetition, medians and quartiles.

    A repetition that is far off the scale of the quartiles is a triangle at the top.

    measures: name of the column, label of the axis, title.
    """
    figure = blank_figure(6.2 * len(measures), 4.8)
    axes = figure.subplots(1, len(measures), squeeze=False)[0]
    nodes = np.array([line["nodes"] for line in table], dtype=float)
    for axis, (name, label, title) in zip(axes, measures, strict=True):
        lower, median, upper = (
            np.array([line[f"{name}_{kind}"] for line in table])
            for kind in ("lower", "median", "upper")
        )
        x = np.array([row["nodes"] for row in rows], dtype=float)
        y = np.array([row[name] for row in rows])
        top = 30 * upper.max()
        off = ~(y < top)
        axis.scatter(x[~off], y[~off], s=18, color=GREY, alpha=0.6, label="one run")
        if off.any():
            axis.scatter(
                x[off],
                np.full(off.sum(), top),
                s=40,
                color=ORANGE,
                marker="^",
                clip_on=False,
                label="off the scale",
            )
        axis.errorbar(
            nodes,
            median,
            yerr=[median - lower, upper - median],
            color=BLUE,
            marker="o",
            capsize=5,
            linewidth=2,
            label="median, quartiles",
        )
        axis.set_xscale("log", base=2)
        axis.set_yscale("log")
        axis.set_ylim(top=top)
        axis.set_xticks(nodes, [f"{number:.0f}" for number in nodes])
        axis.set_xlabel("number of hidden nodes s")
        axis.set_ylabel(label)
        axis.set_title(title, pad=12)
        axis.grid(alpha=0.3)
        axis.legend()
    return figure


def blank_figure(width: float, height: float) -> Figure:
    """A figure without a screen, laid out so that labels do not overlap."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _contours(axis, box: Grid, log_density: np.ndarray, *, filled: bool) -> None:
    shape = len(box.first), len(box.second)
    relative = np.asarray(log_density).reshape(shape).T
    relative = relative - relative.max()
    levels = np.log(SHARES_OF_PEAK)
    grid = np.asarray(box.first), np.asarray(box.second), relative
    if filled:
        axis.contourf(*grid, levels=[*levels, 0.0], cmap="Blues", alpha=0.75)
        axis.contour(*grid, levels=levels, colors=BLUE, linewidths=1.2, linestyles="-")
    else:
        axis.contour(
            *grid, levels=levels, colors=ORANGE, linewidths=1.2, linestyles="--"
        )

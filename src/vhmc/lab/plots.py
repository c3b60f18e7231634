"""Figures of the experiments, drawn by Matplotlib without a display."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from vhmc.lab.diagnostics.quadrature import Grid

FRACTIONS_OF_PEAK = (0.001, 0.01, 0.1, 0.5)
STYLE: dict[Any, Any] = {"font.size": 14, "axes.titlesize": 15}
"""Legible at half the size."""
BLUE, ORANGE, GREY, DARK = "#1f5a99", "#d1660a", "#8a8a8a", "#555555"
COLOURS = {
    "VHMC": BLUE,
    "VHMC, printed update": "#7aa6d8",
    "vhmc.sample": "#0b8a6f",
    "HMC": ORANGE,
    "HMC, Laplace mass": "#e8a33d",
    "SGLD": "#8a3ffc",
    "VBEM": "#8a3ffc",
    "FF-Minibatch": ORANGE,
    "NUTS": "#444444",
    "Pathfinder": "#c2185b",
    "Laplace": GREY,
}
MARKERS = {"VHMC": "o", "HMC": "s", "SGLD": "^", "NUTS": "D", "Pathfinder": "P"}


def blank_figure(width: float, height: float) -> Figure:
    """An empty figure whose layout keeps labels apart."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


@rc_context(STYLE)
def contour_panels(
    box: Grid,
    panels: Sequence[tuple[str, np.ndarray]],
    exact: np.ndarray,
    labels: tuple[str, str],
    limits: tuple[tuple[float, float], tuple[float, float]],
) -> Figure:
    """Contours of each approximation and, at the bottom right, of the exact density.

    panels: titles and log probabilities on the grid.
    exact: log probabilities of the exact density, dashed in every other panel.
    limits: of the two axes.
    """
    columns = 2 if len(panels) <= 3 else 3
    rows = -(-(len(panels) + 1) // columns)
    figure = blank_figure(4.2 * columns, 3.9 * rows)
    axes = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    cells = axes.ravel()
    for cell in cells[len(panels) : -1]:
        cell.set_visible(False)
    levels = np.log(FRACTIONS_OF_PEAK)

    def contours(axis, log_density: np.ndarray, colour: str, line: str) -> tuple:
        relative = log_density.reshape(len(box.first), len(box.second)).T
        grid = np.asarray(box.first), np.asarray(box.second), relative - relative.max()
        axis.contour(*grid, levels, colors=colour, linewidths=1.2, linestyles=line)
        return grid

    shown = [*zip(cells, panels, strict=False), (cells[-1], ("Exact posterior", exact))]
    for axis, (title, log_density) in shown:
        grid = contours(axis, log_density, BLUE, "-")
        axis.contourf(*grid, [*levels, 0.0], cmap="Blues", alpha=0.75)
        if log_density is not exact:
            contours(axis, exact, ORANGE, "--")
        axis.set(title=title, xlim=limits[0], ylim=limits[1])
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
    x = np.array([row["nodes"] for row in rows], dtype=float)
    for axis, (name, label, title) in zip(axes, measures, strict=True):
        lower, median, upper = (
            np.array([line[f"{name}_{kind}"] for line in table])
            for kind in ("lower", "median", "upper")
        )
        y = np.array([row[name] for row in rows])
        top = 30 * upper.max()
        off = ~(y < top)
        axis.scatter(x[~off], y[~off], s=18, color=GREY, alpha=0.6, label="one run")
        if off.any():
            triangles = {"s": 40, "color": ORANGE, "marker": "^", "clip_on": False}
            tops = np.full(off.sum(), top)
            axis.scatter(x[off], tops, label="off the scale", **triangles)
        bars = [median - lower, upper - median]
        line = {"color": BLUE, "marker": "o", "capsize": 5, "linewidth": 2}
        axis.errorbar(nodes, median, bars, label="median, quartiles", **line)
        axis.set_xscale("log", base=2)
        axis.set_xticks(nodes, [f"{number:.0f}" for number in nodes])
        axis.set(xlabel="number of hidden nodes s", ylabel=label, yscale="log")
        axis.set_ylim(top=top)
        axis.set_title(title, pad=12)
        axis.grid(alpha=0.3)
        axis.legend()
    return figure


class Curve(NamedTuple):
    """A line, or medians with their quartiles.

    style: of Matplotlib's `plot`, where it is not that of a method.
    """

    name: str
    x: np.ndarray
    y: np.ndarray
    lower: np.ndarray | None = None
    upper: np.ndarray | None = None
    style: Mapping[str, Any] = {}


class Axes(NamedTuple):
    """One panel.

    across: values of horizontal lines, by name.
    """

    title: str
    x_label: str
    y_label: str
    curves: Sequence[Curve]
    across: Mapping[str, float]


@rc_context(STYLE)
def curve_panels(rows: Sequence[Sequence[Axes]], height: float, mark: str) -> Figure:
    """Log-log panels in rows, under one legend; a curve of one point is a marker.

    height: of a row, in inches.
    mark: above the figure, for one that must not be taken for the full experiment's.
    """
    figure = blank_figure(6.6 * len(rows[0]), height * len(rows))
    axes = figure.subplots(len(rows), len(rows[0]), squeeze=False).ravel()
    handles: dict[str, Any] = {}
    for axis, panel in zip(axes, itertools.chain(*rows), strict=True):
        for name, x, y, lower, upper, style in panel.curves:
            colour = COLOURS.get(name, "#444444")
            marker = MARKERS.get(name, "o") if len(x) < 12 else ""
            line = {"color": colour, "marker": marker, "linewidth": 2, **style}
            axis.plot(x, y, label=name, **line)
            if lower is None or upper is None:
                continue
            if len(x) > 1:
                axis.fill_between(x, lower, upper, color=colour, alpha=0.18)
            else:
                axis.errorbar(x, y, [y - lower, upper - y], color=colour, capsize=4)
        for name, value in panel.across.items():
            colour = COLOURS.get(name, DARK)
            axis.axhline(value, color=colour, linestyle="--", label=name)
        axis.set(xscale="log", yscale="log", title=panel.title)
        axis.set(xlabel=panel.x_label, ylabel=panel.y_label)
        axis.grid(alpha=0.3, which="both")
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    shown, labels = list(handles.values()), list(handles)
    figure.legend(shown, labels, loc="outside lower center", ncols=4)
    if mark:
        figure.suptitle(mark, color="#b42318")
    return figure

"""Figures of the experiments, drawn by Matplotlib without a display."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from vhmc.lab.diagnostics.quadrature import Grid

FRACTIONS_OF_PEAK = (0.001, 0.01, 0.1, 0.5)
STYLE: dict[Any, Any] = {
    "font.size": 14,
    "axes.titlesize": 15,
}  # legible at half the size
BLUE, ORANGE, GREY = "#1f5a99", "#d1660a", "#8a8a8a"
COLOURS = {
    "VHMC": "#1f5a99",
    "VHMC, printed update": "#7aa6d8",
    "vhmc.sample": "#0b8a6f",
    "HMC": "#d1660a",
    "HMC, Laplace mass": "#e8a33d",
    "SGLD": "#8a3ffc",
    "VBEM": "#8a3ffc",
    "FF-Minibatch": "#d1660a",
    "NUTS": "#444444",
    "Pathfinder": "#c2185b",
    "Laplace": "#8a8a8a",
}
MARKERS = {"VHMC": "o", "HMC": "s", "SGLD": "^", "NUTS": "D", "Pathfinder": "P"}


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
    """An empty figure whose layout keeps labels apart."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _contours(axis, box: Grid, log_density: np.ndarray, *, filled: bool) -> None:
    shape = len(box.first), len(box.second)
    relative = np.asarray(log_density).reshape(shape).T
    relative = relative - relative.max()
    levels = np.log(FRACTIONS_OF_PEAK)
    grid = np.asarray(box.first), np.asarray(box.second), relative
    if filled:
        axis.contourf(*grid, levels=[*levels, 0.0], cmap="Blues", alpha=0.75)
        axis.contour(*grid, levels=levels, colors=BLUE, linewidths=1.2, linestyles="-")
    else:
        axis.contour(
            *grid, levels=levels, colors=ORANGE, linewidths=1.2, linestyles="--"
        )


class Curve(NamedTuple):
    """A line, or medians with their quartiles."""

    name: str
    x: np.ndarray
    y: np.ndarray
    lower: np.ndarray | None = None
    upper: np.ndarray | None = None


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
def curve_panels(panels: Sequence[Axes], mark: str = "") -> Figure:
    """Log-log panels in a row; a curve of one point is drawn as a marker."""
    figure = blank_figure(6.6 * len(panels), 5.4)
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for axis, panel in zip(axes, panels, strict=True):
        for curve in panel.curves:
            colour = COLOURS.get(curve.name, "#444444")
            style = "-" if len(curve.x) > 1 else ""
            marker = MARKERS.get(curve.name, "o") if len(curve.x) < 12 else ""
            axis.plot(
                curve.x,
                curve.y,
                style,
                marker=marker,
                color=colour,
                label=curve.name,
                linewidth=2,
            )
            if curve.lower is not None and curve.upper is not None:
                if len(curve.x) > 1:
                    axis.fill_between(
                        curve.x, curve.lower, curve.upper, color=colour, alpha=0.18
                    )
                else:
                    bars = [curve.y - curve.lower, curve.upper - curve.y]
                    axis.errorbar(curve.x, curve.y, bars, color=colour, capsize=4)
        for name, value in panel.across.items():
            axis.axhline(
                value, color=COLOURS.get(name, "#555555"), linestyle="--", label=name
            )
        _finish(axis, panel.title, panel.x_label, panel.y_label)
    _legend(figure, axes, mark)
    return figure


@rc_context(STYLE)
def scatter_grid(rows: Sequence[Sequence[Axes]], mark: str = "") -> Figure:
    """Log-log panels in rows, the points of each method joined by a line.

    A curve named `floor` is drawn as a dotted line without points.
    """
    figure = blank_figure(6.6 * len(rows[0]), 5.0 * len(rows))
    axes = figure.subplots(len(rows), len(rows[0]), squeeze=False)
    panels = [panel for row in rows for panel in row]
    for axis, panel in zip(axes.ravel(), panels, strict=True):
        for curve in panel.curves:
            if curve.name.startswith("floor"):
                label = curve.name.removeprefix("floor: ")
                axis.plot(curve.x, curve.y, ":", color="#555555", label=label)
                continue
            axis.plot(
                curve.x,
                curve.y,
                "-",
                marker=MARKERS.get(curve.name, "o"),
                color=COLOURS.get(curve.name, "#444444"),
                label=curve.name,
                markersize=8,
                linewidth=1,
            )
        for name, value in panel.across.items():
            axis.axhline(
                value, color=COLOURS.get(name, "#555555"), linestyle="--", label=name
            )
        _finish(axis, panel.title, panel.x_label, panel.y_label)
    _legend(figure, axes.ravel(), mark)
    return figure


def _finish(axis, title: str, x_label: str, y_label: str) -> None:
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_title(title)
    axis.set_xlabel(x_label)
    axis.set_ylabel(y_label)
    axis.grid(alpha=0.3, which="both")


def _legend(figure: Figure, axes, mark: str) -> None:
    """One legend for all panels, and a mark on figures of a quick run."""
    handles: dict[str, Any] = {}
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    figure.legend(
        list(handles.values()), list(handles), loc="outside lower center", ncols=4
    )
    if mark:
        figure.suptitle(mark, color="#b42318")

"""Curves with bands and labelled scatters, the figures of experiments 2 to 4."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

from vhmc.lab.plots import STYLE, blank_figure

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


class Curve(NamedTuple):
    """Medians with quartiles, or a single line."""

    name: str
    x: np.ndarray
    y: np.ndarray
    lower: np.ndarray | None = None
    upper: np.ndarray | None = None


class Axes(NamedTuple):
    """One panel: its curves, and lines that are drawn across."""

    title: str
    x_label: str
    y_label: str
    curves: Sequence[Curve]
    across: Mapping[str, float]


@rc_context(STYLE)
def curve_panels(panels: Sequence[Axes], mark: str = "") -> Figure:
    """Log-log panels beside each other; a curve of one point is a marker."""
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
                    spread = [curve.y - curve.lower, curve.upper - curve.y]
                    axis.errorbar(curve.x, curve.y, spread, color=colour, capsize=4)
        for name, value in panel.across.items():
            axis.axhline(
                value, color=COLOURS.get(name, "#555555"), linestyle="--", label=name
            )
        _finish(axis, panel.title, panel.x_label, panel.y_label)
    _legend(figure, axes, mark)
    return figure


@rc_context(STYLE)
def scatter_grid(rows: Sequence[Sequence[Axes]], mark: str = "") -> Figure:
    """Panels in rows; points of a method are joined, each with its label.

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

"""Pictures of a run: no background, colours that read on white and on black."""

import base64
import io
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

INK, BLUE, ORANGE, GREEN = "#808890", "#3f8fd9", "#e07b1a", "#3a9d5d"
STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "vhmc",
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}
MOST_POINTS = 250
"""Of one line: more would only make the page heavy."""
RANK_BINS = 20
CENTRAL = 0.01, 0.99
"""Quantiles between which marginals are shown: a heavy tail would hide the rest."""


class Picture(NamedTuple):
    """An image in the page itself.

    source: as an `img` takes it.
    width: in pixels, where there is room.
    """

    source: str
    width: int


def _figure(
    width: float, height: float, layout: Literal["constrained"] | None = "constrained"
) -> Figure:
    figure = Figure(figsize=(width, height), layout=layout)
    FigureCanvasAgg(figure)
    figure.patch.set_alpha(0.0)
    return figure


def _picture(figure: Figure, *, is_painted: bool = False) -> Picture:
    """Drawn, or painted if there are thousands of points: a drawing would be large."""
    for axis in figure.axes:
        axis.patch.set_alpha(0.0)
    kind, stream = "svg+xml", io.BytesIO()
    if is_painted:
        kind, raw = "png", io.BytesIO()
        figure.savefig(raw, format="png", dpi=150)
        with Image.open(raw) as image:
            image.quantize(64).save(stream, format="png", optimize=True)
    else:
        figure.savefig(stream, format="svg", metadata={"Date": None})
    data = base64.b64encode(stream.getvalue()).decode()
    width = round(96 * figure.get_size_inches()[0])
    return Picture(f"data:image/{kind};base64,{data}", width)


@rc_context(STYLE)
def parameter(values: np.ndarray) -> Picture:
    """Marginal by chain, trace and ranks of one number.

    values: shape (chain, draw).
    """
    # Laid out by hand: with dozens of parameters an engine takes most of the time.
    figure = _figure(7.6, 2.0, layout=None)
    # Above there is room for a power of ten, to the left for a number.
    figure.subplots_adjust(0.04, 0.25, 0.99, 0.9, 0.22)
    marginal, trace, rank = figure.subplots(1, 3)
    values = np.where(np.isfinite(values), values, np.nan)
    if np.isnan(values).all():
        values = np.zeros_like(values)
    low, high = np.nanquantile(values, CENTRAL)
    edges = np.linspace(low, high if high > low else low + 1.0, 31)
    known = values[~np.isnan(values)]
    marginal.hist(known, edges, density=True, color=BLUE, alpha=0.35)
    for chain in values:
        height, _ = np.histogram(chain[~np.isnan(chain)], edges)
        width = edges[1] - edges[0]
        marginal.stairs(height / (len(chain) * width), edges, color=BLUE, linewidth=0.5)
    marginal.set(yticks=[], xlabel="density, and by chain")
    marginal.spines["left"].set_visible(False)
    step = max(1, values.shape[1] // MOST_POINTS)
    for chain in values:
        shown = np.arange(0, len(chain), step)
        trace.plot(shown, chain[shown], linewidth=0.4, alpha=0.8)
    trace.set(xlabel="draw, a line a chain")
    order = np.argsort(np.argsort(values.ravel())).reshape(values.shape)
    bins = np.linspace(0, values.size, RANK_BINS + 1)
    wanted = values.shape[1] / RANK_BINS
    for chain in order:
        height = np.histogram(chain, bins)[0] / wanted
        rank.step(np.arange(RANK_BINS), height, linewidth=0.7, where="mid")
    rank.axhline(1.0, color=INK, linewidth=1, linestyle="--")
    rank.set(xticks=[], ylim=(0, None), xlabel="rank among all chains, 1 is even")
    return _picture(figure, is_painted=True)


@rc_context(STYLE)
def pairs(names: list[str], values: np.ndarray, most: int = 600) -> Picture:
    """Every two of a few numbers.

    values: shape (draw, name).
    """
    number = len(names)
    figure = _figure(1.7 * number + 0.4, 1.6 * number + 0.3)
    axes = figure.subplots(number, number, squeeze=False)
    some = values[:: max(1, len(values) // most)]
    limits = [_limits(column) for column in values.T]
    for row in range(number):
        for column, axis in enumerate(axes[row]):
            if column > row:
                axis.set_visible(False)
                continue
            if row == column:
                axis.hist(values[:, row], 30, range=limits[row], color=BLUE, alpha=0.5)
                axis.set_yticks([])
            else:
                x, y = some[:, column], some[:, row]
                axis.plot(x, y, ".", markersize=2, color=BLUE, alpha=0.4)
                axis.set_ylim(*limits[row])
            axis.set_xlim(*limits[column])
            axis.tick_params(labelsize=7)
            axis.locator_params(nbins=3)
            if row == number - 1:
                axis.set_xlabel(_short(names[column]))
            if column == 0 and row:
                axis.set_ylabel(_short(names[row]))
    return _picture(figure, is_painted=True)


@rc_context(STYLE)
def gradients(predicted: np.ndarray, true: np.ndarray, most: int = 3000) -> Picture:
    """The surrogate's gradients against the true ones, all parameters together."""
    figure = _figure(3.6, 3.2)
    axis = figure.subplots()
    step = max(1, predicted.size // most)
    x, y = true.ravel()[::step], predicted.ravel()[::step]
    axis.plot(x, y, ".", color=BLUE, markersize=2.5, alpha=0.5)
    ends = np.quantile(true, (0.0, 1.0))
    axis.plot(ends, ends, color=ORANGE, linewidth=1)
    axis.set(xlabel="true gradient, in posterior sd", ylabel="the surrogate's")
    return _picture(figure, is_painted=True)


@rc_context(STYLE)
def weights(log_weights: np.ndarray) -> Picture:
    """Log weights of the checked draws."""
    figure = _figure(3.6, 3.2)
    axis = figure.subplots()
    axis.hist(np.clip(log_weights, -8, 8), 40, color=BLUE, alpha=0.6)
    axis.axvline(0.0, color=ORANGE, linewidth=1)
    axis.set(xlabel="log weight, nats from the median", ylabel="checked draws")
    axis.locator_params(axis="x", nbins=5)
    return _picture(figure)


@rc_context(STYLE)
def course(
    spent: np.ndarray, values: np.ndarray, label: str, *, is_rate: bool
) -> Picture:
    """A number over the evaluations of the run: a rate, or one that falls by orders."""
    figure = _figure(3.6, 2.4)
    axis = figure.subplots()
    axis.plot(spent, values, ".-", color=GREEN if is_rate else BLUE, linewidth=1)
    axis.set(xlabel="evaluations", ylabel=label)
    axis.set(**{"ylim": (0, 1.03)} if is_rate else {"yscale": "log"})
    return _picture(figure)


@rc_context(STYLE)
def spending(costs: Mapping[str, int]) -> Picture:
    """Calls by phase, in the order in which they were made."""
    figure = _figure(4.4, 0.3 * len(costs) + 0.4)
    axis = figure.subplots()
    names, numbers = list(costs), list(costs.values())
    bars = axis.barh(range(len(names)), numbers, color=BLUE, alpha=0.7, height=0.7)
    axis.bar_label(bars, padding=3, color=INK)
    axis.set_yticks(range(len(names)), names)
    axis.invert_yaxis()
    axis.set(xticks=[])
    axis.spines["bottom"].set_visible(False)
    return _picture(figure)


def _limits(column: np.ndarray) -> tuple[float, float]:
    """Between which the middle of the finite values lies; never empty."""
    known = column[np.isfinite(column)]
    low, high = np.quantile(known, CENTRAL) if len(known) else (0.0, 1.0)
    return (low, high) if high > low else (low - 0.5, low + 0.5)


def _short(name: str) -> str:
    # Dollars would be taken for mathematics.
    name = name.replace("$", r"\$")
    return name if len(name) <= 16 else f"{name[:15]}…"

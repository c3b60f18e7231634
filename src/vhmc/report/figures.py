"""Pictures of a run: no background, colours that read on white and on black."""

from collections.abc import Mapping

import numpy as np
from matplotlib import rc_context

from vhmc.report.canvas import (
    BLUE,
    GREEN,
    INK,
    ORANGE,
    STYLE,
    Picture,
    blank,
    picture,
    short,
)

MOST_POINTS = 250
"""Of one line: more would only make the page heavy."""
RANK_BINS = 20
CENTRAL = 0.01, 0.99
"""Quantiles between which marginals are shown: a heavy tail would hide the rest."""


@rc_context(STYLE)
def parameter(values: np.ndarray) -> Picture:
    """Marginal by chain, trace and ranks of one number.

    values: shape (chain, draw).
    """
    # Laid out by hand: with dozens of parameters an engine takes most of the time.
    figure = blank(7.6, 2.0, layout=None)
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
    return picture(figure, is_painted=True)


@rc_context(STYLE)
def pairs(names: list[str], values: np.ndarray, most: int = 600) -> Picture:
    """Every two of a few numbers.

    values: shape (draw, name).
    """
    number = len(names)
    figure = blank(1.7 * number + 0.4, 1.6 * number + 0.3)
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
                axis.set_xlabel(short(names[column]))
            if column == 0 and row:
                axis.set_ylabel(short(names[row]))
    return picture(figure, is_painted=True)


@rc_context(STYLE)
def gradients(predicted: np.ndarray, true: np.ndarray, most: int = 3000) -> Picture:
    """The surrogate's gradients against the true ones, all parameters together."""
    figure = blank(3.6, 3.2)
    axis = figure.subplots()
    step = max(1, predicted.size // most)
    x, y = true.ravel()[::step], predicted.ravel()[::step]
    axis.plot(x, y, ".", color=BLUE, markersize=2.5, alpha=0.5)
    ends = np.quantile(true, (0.0, 1.0))
    axis.plot(ends, ends, color=ORANGE, linewidth=1)
    axis.set(xlabel="true gradient, in posterior sd", ylabel="the surrogate's")
    return picture(figure, is_painted=True)


@rc_context(STYLE)
def weights(log_weights: np.ndarray) -> Picture:
    """Log weights of the checked draws."""
    figure = blank(3.6, 3.2)
    axis = figure.subplots()
    axis.hist(np.clip(log_weights, -8, 8), 40, color=BLUE, alpha=0.6)
    axis.axvline(0.0, color=ORANGE, linewidth=1)
    axis.set(xlabel="log weight, nats from the median", ylabel="checked draws")
    axis.locator_params(axis="x", nbins=5)
    return picture(figure)


@rc_context(STYLE)
def course(
    spent: np.ndarray, values: np.ndarray, label: str, *, is_rate: bool
) -> Picture:
    """A number over the evaluations of the run: a rate, or one that falls by orders."""
    figure = blank(3.6, 2.4)
    axis = figure.subplots()
    axis.plot(spent, values, ".-", color=GREEN if is_rate else BLUE, linewidth=1)
    axis.set(xlabel="evaluations", ylabel=label)
    axis.set(**{"ylim": (0, 1.03)} if is_rate else {"yscale": "log"})
    return picture(figure)


@rc_context(STYLE)
def spending(costs: Mapping[str, int]) -> Picture:
    """Calls by phase, in the order in which they were made."""
    figure = blank(4.4, 0.3 * len(costs) + 0.4)
    axis = figure.subplots()
    names, numbers = list(costs), list(costs.values())
    bars = axis.barh(range(len(names)), numbers, color=BLUE, alpha=0.7, height=0.7)
    axis.bar_label(bars, padding=3, color=INK)
    axis.set_yticks(range(len(names)), names)
    axis.invert_yaxis()
    axis.set(xticks=[])
    axis.spines["bottom"].set_visible(False)
    return picture(figure)


def _limits(column: np.ndarray) -> tuple[float, float]:
    """Between which the middle of the finite values lies; never empty."""
    known = column[np.isfinite(column)]
    low, high = np.quantile(known, CENTRAL) if len(known) else (0.0, 1.0)
    return (low, high) if high > low else (low - 0.5, low + 0.5)

"""Pictures of the graph of a model: a drawing of its parts, and its matrix."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from matplotlib import rc_context
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle

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
from vhmc.structure.record import Structure
from vhmc.structure.shapes import Root, Shape, roots_of, shapes_of

WIDTH, ROW, PLATE = 4.6, 0.85, 0.8
"""Of the drawing, of a row of it, and of a plate, in inches."""
MOST_DOTS = 6
"""Parameters of a block that are drawn."""
MOST_CELLS = 600
"""Of a side of the matrix: more would not be seen."""
ROOT_SHARE = 0.04, 0.4
"""Part of a side that a hub or a global takes at least, and that all take at most."""
FAINTEST = 0.35
"""Opacity of a cell in which few of many pairs are linked."""
MOST_LABELS = 30
"""Parameters with a label each."""
MOST_BORDERS = 60
"""Blocks with a border."""


def drawable(structure: Structure | None) -> Structure | None:
    """The structure, if a picture tells more than words: some pairs are not linked."""
    if structure is None or structure.graph is None or structure.dim < 2:
        return None
    return structure if structure.graph.nnz < structure.dim**2 else None


def in_words(shape: Shape) -> str:
    """Such as `8 blocks of 1 parameter`."""
    sizes = sorted(len(block) for block in shape.blocks)
    least, most, number = sizes[0], sizes[-1], len(sizes)
    size = f"{most:,}" if least == most else f"{least:,} to {most:,}"
    text = f"{number:,} block{'s' if number > 1 else ''} of {size} "
    text += "parameter" if most == 1 else "parameters"
    if not shape.is_mixed and most > 2:
        text += f", {shape.num_links:,} of {most * (most - 1) // 2:,} pairs linked"
    return text


@rc_context(STYLE)
def parts(structure: Structure) -> Picture:
    """Hubs, globals and blocks; blocks of the same shape are one plate."""
    roots = roots_of(structure)
    shapes = shapes_of(structure, roots)
    rows = [kind for kind in (True, False) if any(r.is_hub == kind for r in roots)]
    below = PLATE + 0.75
    height = below + ROW * len(rows) + 0.1
    figure = blank(WIDTH, height, layout=None)
    axis = figure.add_axes((0, 0, 1, 1))
    axis.set(xlim=(0, WIDTH), ylim=(0, height))
    axis.axis("off")
    places: dict[int, tuple[float, float]] = {}
    for level, kind in enumerate(rows):
        own = [k for k, root in enumerate(roots) if root.is_hub == kind]
        for k, x in zip(own, _spread(len(own)), strict=True):
            places[k] = x, height - 0.3 - ROW * level
    _draw_roots(axis, structure, roots, places)
    for shape, x in zip(shapes, _spread(len(shapes)), strict=True):
        top = _draw_plate(axis, structure, shape, x, below - PLATE)
        for k in shape.roots:
            # Around the globals, which may be just below a hub.
            bend = 0.25 if roots[k].is_hub and len(rows) > 1 else 0.0
            color = ORANGE if roots[k].is_hub else GREEN
            _draw_link(axis, places[k], (x, top), bend, color)
    return picture(figure)


@rc_context(STYLE)
def matrix(structure: Structure) -> Picture:
    """Linked pairs as cells of a matrix: hubs first, then globals, then blocks."""
    roots = roots_of(structure)
    shapes = shapes_of(structure, roots)
    blocks = [block for shape in shapes for block in shape.blocks]
    first = [i for root in roots for i in root.members]
    order = np.concatenate([np.array(first, int), *blocks]).astype(int)
    edges = _edges(len(first), len(order))
    figure = blank(4.2, 4.0)
    axis = figure.subplots()
    axis.imshow(
        _cells(structure, roots, order, edges),
        extent=(0, edges[-1], edges[-1], 0),
        interpolation="nearest",
    )
    if 0 < len(first) < len(order):
        for line in (axis.axhline, axis.axvline):
            line(edges[len(first)], color=INK, linewidth=0.6)
    if len(blocks) <= MOST_BORDERS:
        begin = len(first)
        for block in blocks:
            low, high = edges[begin], edges[begin + len(block)]
            corner, side = (low, low), high - low
            axis.add_patch(
                Rectangle(corner, side, side, fill=False, color=INK, linewidth=0.8)
            )
            begin += len(block)
    axis.set_yticks(*_ticks(structure, roots, shapes, order, edges))
    axis.set_xticks([])
    axis.tick_params(length=0, labelsize=7 if len(order) <= MOST_LABELS else 8)
    axis.spines[["top", "right"]].set_visible(True)
    return picture(figure, is_painted=True)


def _spread(number: int) -> np.ndarray:
    return (np.arange(number) + 0.5) * WIDTH / max(number, 1)


def _draw_roots(
    axis: Any,
    structure: Structure,
    roots: Sequence[Root],
    places: dict[int, tuple[float, float]],
) -> None:
    """Their names in boxes, and the links among them."""
    graph = structure.graph
    assert graph is not None
    for k, root in enumerate(roots):
        for other in range(k):
            if not graph[list(root.members)][:, list(roots[other].members)].nnz:
                continue
            is_beside = root.is_hub == roots[other].is_hub
            bend = -0.25 if is_beside else 0.0
            _draw_link(axis, places[other], places[k], bend, INK)
        axis.text(
            *places[k],
            short(root.label),
            ha="center",
            va="center",
            color="white",
            fontsize=8 if len(roots) <= 4 else 7,
            bbox={
                "boxstyle": "round,pad=0.4",
                "color": ORANGE if root.is_hub else GREEN,
            },
            zorder=3,
        )


def _draw_link(
    axis: Any,
    begin: tuple[float, float],
    end: tuple[float, float],
    bend: float,
    color: str,
) -> None:
    link = FancyArrowPatch(
        begin,
        end,
        arrowstyle="-",
        connectionstyle=f"arc3,rad={bend}",
        shrinkA=0,
        shrinkB=0,
        color=color,
        linewidth=1.1,
        alpha=0.8,
        zorder=1,
    )
    axis.add_patch(link)


def _draw_plate(
    axis: Any, structure: Structure, shape: Shape, x: float, y: float
) -> float:
    """A block in a frame, with more behind it if there are several; returns its top."""
    num_frames = min(len(shape.blocks), 3)
    for behind in range(num_frames - 1, -1, -1):
        corner = x - PLATE / 2 + 0.05 * behind, y + 0.05 * behind
        axis.add_patch(
            FancyBboxPatch(
                corner,
                PLATE,
                PLATE - 0.1,
                boxstyle="round,pad=0,rounding_size=0.06",
                facecolor=(*_rgb(BLUE), 0.12),
                edgecolor=BLUE,
                linewidth=0.9,
                zorder=2,
            )
        )
    dots, pairs = _sketch(structure, shape)
    middle = np.array([x, y + 0.28])
    for i, j in pairs:
        axis.plot(*(middle + dots[[i, j]]).T, color=BLUE, linewidth=1, zorder=3)
    axis.plot(*(middle + dots).T, "o", color=BLUE, markersize=5, zorder=4)
    axis.text(x, y + 0.56, short(shape.label), ha="center", va="center", fontsize=8)
    words = in_words(shape).replace(" of ", " of\n", 1).replace(", ", ",\n")
    axis.text(x, y - 0.07, words, ha="center", va="top", fontsize=7, linespacing=1.25)
    return y + PLATE - 0.1 + 0.05 * (num_frames - 1)


def _sketch(
    structure: Structure, shape: Shape
) -> tuple[np.ndarray, list[tuple[int, int]]]:
    """Dots and links of a block: all of a small one, a few that stand for a large."""
    block = shape.blocks[0]
    assert structure.graph is not None
    inner = sp.csr_matrix(structure.graph[block][:, block])
    number = min(len(block), MOST_DOTS)
    angle = 2 * np.pi * (np.arange(number) + 0.5) / number
    dots = 0.17 * np.column_stack([np.sin(angle), np.cos(angle)])
    if number == 1:
        return np.zeros((1, 2)), []
    is_path = shape.num_links == len(block) - 1 and np.diff(inner.indptr).max() <= 3
    if is_path and number > 2:
        dots = np.column_stack([np.linspace(-0.3, 0.3, number), np.zeros(number)])
        return dots, [(i, i + 1) for i in range(number - 1)]
    if len(block) > MOST_DOTS:
        return dots, [(i, (i + 1) % number) for i in range(number)]
    rows, columns = sp.triu(inner, 1).nonzero()
    return dots, list(zip(rows.tolist(), columns.tolist(), strict=True))


def _edges(num_roots: int, dim: int) -> np.ndarray:
    """Borders of the parameters along a side; hubs and globals are drawn wider."""
    widths = np.ones(dim)
    if 0 < num_roots < dim:
        each, all_together = ROOT_SHARE
        share = min(each, all_together / num_roots)
        width = share * (dim - num_roots) / (1 - share * num_roots)
        widths[:num_roots] = max(1.0, width)
    return np.concatenate([[0.0], np.cumsum(widths)])


def _cells(
    structure: Structure, roots: Sequence[Root], order: np.ndarray, edges: np.ndarray
) -> np.ndarray:
    """The matrix as an image: colours say of what, opacity how many pairs are linked.

    edges: borders of the parameters in this order.
    """
    assert structure.graph is not None
    exact = bool(np.all(edges == np.arange(len(edges))))
    number = len(order) if exact else MOST_CELLS
    number = min(number, MOST_CELLS)
    grid = edges[-1] * np.arange(number + 1) / number
    low = np.minimum(np.searchsorted(grid, edges[:-1], "right") - 1, number - 1)
    high = np.maximum(np.searchsorted(grid, edges[1:], "left"), low + 1)
    spans = [np.arange(*span) for span in zip(low, high, strict=True)]
    cell = np.concatenate(spans)
    entry = np.repeat(np.arange(len(order)), high - low)
    shape = number, len(order)
    cover = sp.csr_matrix((np.ones(len(cell)), (cell, entry)), shape=shape)
    graph = structure.graph.astype(float)[order][:, order]
    linked = (cover @ graph @ cover.T).toarray()
    size = np.asarray(cover.sum(axis=1)).ravel()
    share = linked / np.outer(size, size)
    num_hubs = sum(len(root.members) for root in roots if root.is_hub)
    num_roots = sum(len(root.members) for root in roots)
    middle = (grid[1:] + grid[:-1]) / 2
    kind = (middle >= edges[num_hubs]).astype(int) + (middle >= edges[num_roots])
    palette = np.array([_rgb(ORANGE), _rgb(GREEN), _rgb(BLUE)])
    image = np.zeros((number, number, 4))
    image[..., :3] = palette[np.minimum.outer(kind, kind)]
    image[..., 3] = np.where(share > 0, FAINTEST + (1 - FAINTEST) * share, 0.0)
    return image


def _ticks(
    structure: Structure,
    roots: Sequence[Root],
    shapes: Sequence[Shape],
    order: np.ndarray,
    edges: np.ndarray,
) -> tuple[list[float], list[str]]:
    """Where labels are, and what they say: parameters, or roots and shapes if many."""
    if len(order) <= MOST_LABELS:
        labels = [short(structure.labels[i]) for i in order]
        return ((edges[1:] + edges[:-1]) / 2).tolist(), labels
    sizes = [len(root.members) for root in roots]
    sizes += [shape.num_parameters for shape in shapes]
    ends = edges[np.cumsum([0, *sizes])]
    labels = [short(root.label) for root in roots]
    for shape in shapes:
        number = len(shape.blocks)
        labels.append(short(shape.label) + (f"\n× {number:,}" if number > 1 else ""))
    return ((ends[1:] + ends[:-1]) / 2).tolist(), labels


def _rgb(color: str) -> tuple[float, float, float]:
    red, green, blue = (int(color[k : k + 2], 16) / 255 for k in (1, 3, 5))
    return red, green, blue

"""A graph in a few parts: hubs and globals by name, and blocks of the same shape."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from vhmc.structure.record import Structure

MOST_ROOTS = 5
"""Hubs, or globals, that are told apart; more are put together by name."""
MOST_SHAPES = 4
"""Shapes of blocks that are told apart: those of most parameters."""


class Root(NamedTuple):
    """A hub or a global, or several that are shown as one."""

    label: str
    members: tuple[int, ...]
    is_hub: bool


class Shape(NamedTuple):
    """Blocks with the same names, as many links, and links to the same roots.

    label: names of the parameters of a block.
    blocks: parameters of each.
    num_links: pairs that are linked, in one block; in all, if the blocks differ.
    roots: places of the roots that a block is linked to.
    is_mixed: whether these are the blocks that are left, of several shapes.
    """

    label: str
    blocks: list[np.ndarray]
    num_links: int
    roots: frozenset[int]
    is_mixed: bool = False

    @property
    def num_parameters(self) -> int:
        """Of all blocks together."""
        return sum(len(block) for block in self.blocks)


def roots_of(structure: Structure) -> list[Root]:
    """Hubs, then globals."""
    hubs = _roots(structure, structure.hubs, is_hub=True)
    return hubs + _roots(structure, structure.globals(), is_hub=False)


def shapes_of(structure: Structure, roots: Sequence[Root]) -> list[Shape]:
    """Blocks by shape, those of most parameters first.

    roots: all hubs and globals.
    """
    graph = structure.graph
    if graph is None:
        return []
    member = np.zeros((structure.dim, len(roots)))
    for place, root in enumerate(roots):
        member[list(root.members), place] = 1.0
    links = graph.astype(float) @ member
    inner = structure.degrees() - links.sum(axis=1)
    found: dict[tuple, list[np.ndarray]] = {}
    for block in structure.blocks():
        names = tuple(sorted(_name(structure.labels[i]) for i in block))
        linked = frozenset(np.flatnonzero(links[block].any(axis=0)).tolist())
        key = names, round(inner[block].sum() / 2), linked
        found.setdefault(key, []).append(block)
    shapes = [
        Shape(", ".join(dict.fromkeys(names)), blocks, num_links, linked)
        for (names, num_links, linked), blocks in found.items()
    ]
    shapes.sort(key=lambda shape: -shape.num_parameters)
    if len(shapes) <= MOST_SHAPES + 1:
        return shapes
    return [*shapes[:MOST_SHAPES], _mixed(shapes[MOST_SHAPES:])]


def _mixed(shapes: Sequence[Shape]) -> Shape:
    return Shape(
        "others",
        [block for shape in shapes for block in shape.blocks],
        sum(shape.num_links * len(shape.blocks) for shape in shapes),
        frozenset().union(*(shape.roots for shape in shapes)),
        is_mixed=True,
    )


def _roots(structure: Structure, members: Sequence[int], is_hub: bool) -> list[Root]:
    """One each; if there are many, one for each name, and the last for all others."""
    if len(members) <= MOST_ROOTS:
        return [Root(structure.labels[i], (i,), is_hub) for i in members]
    by_name: dict[str, list[int]] = {}
    for i in members:
        by_name.setdefault(_name(structure.labels[i]), []).append(i)
    groups = list(by_name.items())
    if len(groups) > MOST_ROOTS:
        rest = [i for _, places in groups[MOST_ROOTS - 1 :] for i in places]
        groups = [*groups[: MOST_ROOTS - 1], ("others", rest)]
    return [
        Root(
            name if len(places) == 1 else f"{name} ({len(places)})",
            tuple(places),
            is_hub,
        )
        for name, places in groups
    ]


def _name(label: str) -> str:
    return label.split("[")[0]

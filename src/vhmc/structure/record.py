"""The graph of a model's parameters: what is known of it, and how it falls apart."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from vhmc.structure.centred import Centred
from vhmc.structure.predictor import Predictor
from vhmc.structure.separated import Separated

Source = Literal[
    "traced program", "gradient differences", "gradients", "given", "assumed", "none"
]

MAX_NAMES = 6
"""Names that a sentence lists."""

GLOBAL = ((0.5, 1.5), (0.25, 3.0))
"""A global has more neighbours than a share of the others and a multiple of the median.

One of these two pairs of bounds is enough.
"""


@dataclass(frozen=True, eq=False)
class Structure:
    """Which parameters depend on each other, given all the others.

    labels: names of the entries of the unconstrained vector.
    graph: symmetric boolean matrix with its diagonal; None if it is not known.
    source: where the graph comes from; "none" if there is none and none is wanted;
        "assumed" if it could not be read, whether or not all pairs count as linked.
    hubs: parameters on which the others are conditioned, chosen by a fit or the user.
    centred: the form of the model whose graph it is, if not that which was written.
    predictor: the quantity through which most parameters meet the data, if there is one
        and the graph is nearly full.
    separated: the quantity through which the data see all parameters, where it is known
        and the graph is not sparse.
    """

    labels: tuple[str, ...]
    graph: sp.csr_matrix | None = None
    source: Source = "none"
    hubs: tuple[int, ...] = ()
    centred: Centred | None = None
    predictor: Predictor | None = None
    separated: Separated | None = None

    @property
    def dim(self) -> int:
        """Number of parameters."""
        return len(self.labels)

    @property
    def is_off(self) -> bool:
        """Whether no structure is to be used."""
        return self.graph is None and self.source == "none"

    def with_graph(self, graph: sp.csr_matrix | None, source: Source) -> "Structure":
        """The same hubs with a graph that was found; off if that is None."""
        return replace(
            self, graph=graph, source=source if graph is not None else "none"
        )

    def with_hubs(self, hubs: Sequence[int]) -> "Structure":
        """The same graph with other hubs."""
        return replace(self, hubs=tuple(int(hub) for hub in hubs))

    def degrees(self) -> np.ndarray:
        """Neighbours of each parameter, itself not counted."""
        return np.diff(self._known_graph().indptr) - 1

    def globals(self, hubs: Sequence[int] | None = None) -> tuple[int, ...]:
        """Parameters besides the hubs that are linked to very many others.

        Such as a population mean. Only if the rest falls apart without them.
        """
        rest = self._rest(hubs)
        first, found = self._components(rest), []
        while True:
            degrees = np.diff(self._known_graph()[rest][:, rest].indptr) - 1
            is_global = np.zeros(len(rest), bool)
            for share, multiple in GLOBAL if len(rest) > 2 else ():
                least = max(share * (len(rest) - 1), multiple * np.median(degrees))
                is_global |= degrees > least
            if not is_global.any():
                break
            found += rest[is_global].tolist()
            rest = rest[~is_global]
        is_split = len(self._components(rest)) > len(first)
        return tuple(sorted(found)) if is_split else ()

    def blocks(self, hubs: Sequence[int] | None = None) -> list[np.ndarray]:
        """Groups of parameters that are independent given hubs and globals.

        Largest first, and by their first parameter among those of a size.

        hubs: those of the structure if none are passed.
        """
        rest = self._rest(hubs)
        rest = np.setdiff1d(rest, self.globals(hubs))
        return sorted(self._components(rest), key=lambda block: (-len(block), block[0]))

    def describe(self) -> str:
        """What is known, in one or two sentences."""
        if self.is_off:
            return "No structure is used."
        named = self._names("hub", self.hubs)
        if self.graph is None:
            return _upper("; ".join(filter(None, [named, "the graph is not known."])))
        pairs, possible = int(self.degrees().sum()) // 2, self.dim * (self.dim - 1) // 2
        share = f"{pairs:,} of {possible:,} pairs of parameters are linked"
        names = [
            text for text in (named, self._names("global", self.globals())) if text
        ]
        sizes = [len(block) for block in self.blocks()]
        if not sizes:
            outcome = "nothing is left"
        elif len(sizes) == 1:
            outcome = f"one block of {_count(sizes[0], 'parameter')}"
        else:
            outcome = f"{len(sizes):,} blocks of {_range(sizes)}"
        if names:
            is_one = len(self.hubs) + len(self.globals()) == 1
            outcome = f"given {'it' if is_one else 'these'}, {outcome}"
        sentence = "; ".join([*names, outcome])
        origin = f"{_ORIGIN[self.source]}{self._form()}"
        if self.predictor is not None:
            sentence += ", which a linear predictor separates from the data"
        if self.separated is not None:
            sentence += ", which the data see through one quantity each"
        return f"{share} ({origin}). {_upper(sentence)}."

    def __str__(self) -> str:
        return self.describe()

    def _form(self) -> str:
        """Which parameters count in their centred form."""
        if self.centred is None:
            return ""
        labels = [self.labels[place] for place in self.centred.places]
        names = dict.fromkeys(label.split("[")[0] for label in labels)
        return f", with {' and '.join(names)} in centred form"

    def _names(self, kind: str, indices: Sequence[int]) -> str:
        """Such as `hubs: mu, tau`; empty if there are none."""
        if not len(indices):
            return ""
        labels = list(dict.fromkeys(self.labels[i] for i in indices))
        listed = ", ".join(labels[:MAX_NAMES])
        more = f" and {len(labels) - MAX_NAMES} more" if len(labels) > MAX_NAMES else ""
        return f"{kind}{'s' if len(labels) > 1 else ''}: {listed}{more}"

    def _rest(self, hubs: Sequence[int] | None) -> np.ndarray:
        chosen = self.hubs if hubs is None else hubs
        return np.setdiff1d(np.arange(self.dim), np.asarray(chosen, int))

    def _components(self, rest: np.ndarray) -> list[np.ndarray]:
        if not len(rest):
            return []
        inner = self._known_graph()[rest][:, rest]
        number, places = connected_components(inner, directed=False)
        order = np.argsort(places, kind="stable")
        ends = np.cumsum(np.bincount(places, minlength=number))[:-1]
        return np.split(rest[order], ends)

    def _known_graph(self) -> sp.csr_matrix:
        if self.graph is None:
            raise ValueError("the graph of the parameters is not known")
        return self.graph


_ORIGIN = {
    "traced program": "from the traced program",
    "gradient differences": "from gradient differences",
    "gradients": "from gradients",
    "given": "as given",
    "assumed": "as nothing is known",
    "none": "",
}


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _range(sizes: Sequence[int]) -> str:
    if min(sizes) == max(sizes):
        return f"size {sizes[0]}"
    return f"sizes {min(sizes)} to {max(sizes):,}"


def _upper(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]

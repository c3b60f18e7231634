"""What is known of a model's graph before the model is sampled."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import scipy.sparse

from vhmc.structure.predictor import Predictor
from vhmc.structure.separated import Separated
from vhmc.transport.hub_functions import Link

MAX_CANDIDATES = 12
"""Parameters that may be hubs."""
HUB_DEGREE = 0.5
"""Least degree of a hub that is no scale, over the largest one."""
SCALE_DEGREE = 0.05
"""Least degree of a scale, over the number of parameters."""
SPARSE = 0.9
"""Share of all pairs below which a graph is sparse."""
FEW = 12
"""Neighbours of most parameters beyond which effects are crossed."""
MAX_DEGREE = 24
"""Of most parameters: rows with more unknowns need more points than there are."""
MAX_WIDE_DEGREE = 64
"""The same for a map that begins with a search of its own."""
TYPICAL = 0.8
"""Share of the variables that have no more unknowns than a typical one."""
NUM_FUNCTIONS = 3
"""Functions of the scales in such a model, about."""


class Graph(NamedTuple):
    """What is known of a model before it is sampled.

    edges: symmetric and sparse; the diagonal is set.
    links: of parameters that are not real numbers, by index.
    hubs: the only parameters that may be hubs; any of high degree if none are given.
    scalars: parameters that are no entry of an array: hubs are mostly among them.
    predictor: a quantity that stands between most parameters and the data, given which
        few of them interact; None if there is none.
    separated: a quantity given which only priors link parameters, of a model whose
        energy is fitted through it; None if there is none.
    """

    edges: scipy.sparse.csr_matrix
    links: Mapping[int, Link] = {}
    hubs: tuple[int, ...] | None = None
    scalars: tuple[int, ...] = ()
    predictor: Predictor | None = None
    separated: Separated | None = None

    def simpler(self) -> "list[Graph]":
        """The same, then with scales as the only hubs, then without any.

        Few points far from the mass may take a choice among many hubs astray.
        """
        if self.predictor is not None:
            return [self]
        narrower = [self._replace(hubs=self.scales), self._replace(hubs=())]
        return [self, *(one for one in narrower if one.hubs != self.hubs)]

    @property
    def scales(self) -> tuple[int, ...]:
        """Positive scalars that have many neighbours, most first."""
        if self.hubs is not None:
            return self.hubs
        degree = np.diff(self.edges.indptr)
        least = max(SCALE_DEGREE * len(degree), 4)
        found = [
            i
            for i in self.scalars
            if degree[i] >= least and i in self.links and self.links[i].is_scale
        ]
        return tuple(sorted(found, key=lambda i: -degree[i]))

    @property
    def is_structured(self) -> bool:
        """Whether maps are fitted along it: it is sparse, or a quantity makes it so."""
        if self.predictor is not None or self.is_sparse:
            return True
        degree = np.diff(self._inner.indptr)
        return self.has_gaps and bool(np.median(degree) <= MAX_WIDE_DEGREE)

    @property
    def has_gaps(self) -> bool:
        """Whether given the scales many parameters do not interact."""
        inner = self._inner
        return bool(0 < inner.nnz < SPARSE * inner.shape[0] ** 2)

    @property
    def is_sparse(self) -> bool:
        """Whether given the scales most parameters interact with few others."""
        degree = np.diff(self._inner.indptr)
        return self.has_gaps and bool(np.median(degree) <= MAX_DEGREE)

    @property
    def is_crossed(self) -> bool:
        """Whether given the scales most parameters interact with many others."""
        return self.has_gaps and bool(np.median(np.diff(self._inner.indptr)) > FEW)

    @property
    def _inner(self) -> scipy.sparse.csr_matrix:
        """The graph of all parameters but the scales."""
        rest = np.setdiff1d(np.arange(self.edges.shape[0]), self.scales)
        return scipy.sparse.csr_matrix(self.edges[rest][:, rest])

    def num_unknowns(self, *, is_local: bool) -> int:
        """Of a typical variable in a model that is Gaussian given its scales.

        is_local: each edge depends on one scale, which both its variables have.
        """
        scales = list(self.scales)
        rest = np.setdiff1d(np.arange(self.edges.shape[0]), scales)
        near = np.diff(self._inner.indptr) - 1
        if not is_local:
            return int((NUM_FUNCTIONS + 1) * max(np.median(near), 1))
        own = np.asarray(self.edges[rest][:, scales].sum(axis=1)).ravel()
        return int(np.quantile(near + 2 * (own + 1), TYPICAL))

    @property
    def candidates(self) -> tuple[int, ...]:
        """Parameters that may be hubs: scales, then others of high degree."""
        if self.hubs is not None:
            return self.hubs
        return tuple(dict.fromkeys([*self.scales, *self.well_linked]))[:MAX_CANDIDATES]

    @property
    def well_linked(self) -> tuple[int, ...]:
        """Parameters with many neighbours, most first."""
        degree = np.diff(self.edges.indptr)
        order = np.argsort(-degree, kind="stable")
        return tuple(int(i) for i in order if degree[i] >= HUB_DEGREE * degree.max())

"""Fit conditional layers: hubs and functions by search, then variables by level."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import scipy.sparse

from vhmc.structure.elimination import Level, eliminate
from vhmc.structure.fill import fill
from vhmc.transport.by_level import ByLevel, NaturalParameters, moments
from vhmc.transport.conditional import pull_back_level
from vhmc.transport.hub_dictionary import MAX_SCALES, NO_HUBS, Choice, Dictionary
from vhmc.transport.hub_functions import Link
from vhmc.transport.hub_search import WIDE, RowsOf, Search
from vhmc.transport.joint import Joint
from vhmc.transport.row_fit import RowFits, Rows, fit_rows, gathered

MAX_ROWS = 24
"""Variables by which hubs and functions are chosen; all are fitted with these."""
MAX_SEARCHED = 5
"""Levels after the first whose functions are searched for; later ones have the last's.
"""
MAX_ROWS_LATER = 6
"""The same for levels after the first."""
HELD_OUT = 0.3
GROWING = 0.5
"""Share of the error that a function that grows must leave at most in later levels."""


class Scores(NamedTuple):
    """Points, gradients of their energy, and weights, one point a row."""

    theta: np.ndarray
    grad: np.ndarray
    weight: np.ndarray

    def where(self, chosen: np.ndarray) -> "Scores":
        """Some of the points."""
        return Scores(*(rows[chosen] for rows in self))


class ConditionalFit:
    """Fits of both families of conditional layers to the same points.

    scores: the points.
    graph: symmetric and sparse.
    links: of the parameters that are not real numbers, by index.
    candidates: parameters that may be hubs.
    scales: those of them that become hubs unless that does harm.
    """

    def __init__(
        self,
        rng: np.random.Generator,
        scores: Scores,
        graph: scipy.sparse.csr_matrix,
        links: Mapping[int, Link],
        candidates: tuple[int, ...],
        scales: tuple[int, ...] = (),
    ):
        self._rng, self._scores, self._graph = rng, scores, graph
        self._scales = scales
        self._center, self._spread = location(scores)
        self._dictionary = Dictionary(candidates, self._center, self._spread, links)
        self._is_out = rng.uniform(size=len(scores.theta)) < HELD_OUT
        white = ((scores.theta - self._center) / self._spread).T
        self._white = np.concatenate([white, np.zeros((1, len(scores.theta)))])
        self._pulled = (scores.grad * self._spread).T

    def choose(self) -> Choice:
        """Hubs and functions by held-out errors of some variables of low degree."""
        search = self._search(self._dictionary)
        return search.improved(NO_HUBS, self._sampled_rows(), self._scales)

    def exact(self) -> Choice | None:
        """The family of a model that is Gaussian given its scales, if it is one."""
        if not 0 < len(self._scales) <= MAX_SCALES:
            return None
        search = self._search(self._dictionary)
        return search.exact(self._sampled_rows(), self._scales)

    def _sampled_rows(self) -> RowsOf:
        """Problems of some variables of low degree, given any hubs."""
        degree = np.diff(self._graph.indptr)
        limit = max(np.quantile(degree, 0.8), 8)
        low = np.flatnonzero(degree <= limit)
        # Solves take the cube of the degree: wide rows are sampled less densely.
        affordable = int(MAX_ROWS * (WIDE / np.median(degree[low])) ** 2)
        number = min(max(affordable, MAX_ROWS_LATER), MAX_ROWS, len(low))
        sampled = np.sort(self._rng.choice(low, number, replace=False))

        def rows_of(hubs: tuple[int, ...]) -> Rows:
            nodes = [int(node) for node in sampled if node not in hubs]
            near = [
                [int(j) for j in self._neighbours(node) if j not in (*hubs, node)]
                for node in nodes
            ]
            table = _table(nodes, near, self._graph.shape[0])
            rows = gathered(self._white, self._pulled, table)
            return rows._replace(shared=self._shared(hubs, table))

        return rows_of

    def by_level(self, choice: Choice) -> ByLevel:
        """Fit level after level, each to gradients pulled back through those before."""
        hubs, rest, levels = self._parts(choice)
        theta, weight = self._scores.theta, self._scores.weight
        white, pulled = self._white[np.append(rest, -1)], self._pulled[rest].copy()
        later = self._dictionary.later(choice, theta[weight > 0.5 * weight.max()])
        search = self._search(later)
        growing = self._search(self._dictionary.of(choice))
        first = later.without_functions(choice)
        fitted = []
        for count, level in enumerate(levels):
            table = np.concatenate([level.parents, level.nodes[:, None]], axis=1)
            rows = gathered(white, pulled, table)
            if not count or not choice.hubs:
                own = choice
            elif count <= MAX_SEARCHED:
                some = self._rng.permutation(len(rows.right))[:MAX_ROWS_LATER]
                own = search.improved(first, _always(rows.where(some)))
                own = growing.improved(own, _always(rows.where(some)), limit=GROWING)
            may = None
            if not count and choice.hubs and table.shape[1] > WIDE:
                # Elimination has not linked anything yet: the graph says what may be.
                shared = self._shared(choice.hubs, np.append(rest, -1)[table])
                may = choice.allowed(shared)
            fits = fit_rows(rows, *own.values(theta), weight, own.ridge, may)
            parameters = _natural(own, fits)
            fitted.append(parameters)
            pull_back_level(pulled, level, moments(theta[:, hubs], parameters))
        place = self._center[rest], self._spread[rest]
        return ByLevel(hubs, rest, *place, levels, tuple(fitted))

    def joint(self, choice: Choice) -> Joint:
        """Fit one matrix: each entry by the variable that is eliminated first."""
        hubs, rest, levels = self._parts(choice)
        size = len(rest)
        inner = scipy.sparse.csr_matrix(self._graph[rest][:, rest])
        white, pulled = self._white[np.append(rest, -1)], self._pulled[rest].copy()
        phi, psi = choice.values(self._scores.theta)
        filled = fill(levels, size)
        entries = np.zeros((len(choice.terms), filled.num_entries + 1))
        linear = np.zeros((len(choice.linear_terms), size))
        for level, level_fill in zip(levels, filled.levels, strict=True):
            # Entries that only the elimination makes are zero in the matrix itself.
            parents, edges = level.parents.copy(), level_fill.edges.copy()
            for row, node in enumerate(level.nodes):
                near = inner.indices[inner.indptr[node] : inner.indptr[node + 1]]
                is_missing = ~np.isin(parents[row], near)
                parents[row, is_missing], edges[row, is_missing] = (
                    size,
                    len(entries.T) - 1,
                )
            table = np.concatenate([parents, level.nodes[:, None]], axis=1)
            rows = gathered(white, pulled, table)
            may = choice.allowed(self._shared(choice.hubs, np.append(rest, -1)[table]))
            fits = fit_rows(rows, phi, psi, self._scores.weight, choice.ridge, may)
            slopes = fits.slopes.transpose(1, 0, 2)
            entries[:, level.nodes] = slopes[:, :, -1]
            entries[:, edges] = slopes[:, :, :-1]
            linear[:, level.nodes] = fits.linear.T
            _take_out(pulled, white, level, parents, slopes, phi)
        place = self._center[rest], self._spread[rest]
        return Joint(
            *(hubs, rest, *place, levels),
            *(choice.terms, choice.linear_terms, entries[:, :-1], linear, filled),
        )

    def _shared(self, hubs: tuple[int, ...], table: np.ndarray) -> np.ndarray:
        """Hubs that are linked to a variable and to each of its columns.

        table: columns by variable, that of the variable itself last; what is padded
            counts as linked to no hub.
        """
        links = self._graph[:, list(hubs)].toarray()
        links = np.concatenate([links, np.zeros((1, len(hubs)), bool)])
        return links[table] & links[table[:, -1:]]

    def num_unknowns(self, choice: Choice) -> int:
        """Unknowns of the variable that has the most of them in a joint fit."""
        _, rest, levels = self._parts(choice)
        inner = scipy.sparse.csr_matrix(self._graph[rest][:, rest])
        most = 0
        for level in levels:
            near = [
                np.intersect1d(
                    parents, inner.indices[inner.indptr[node] : inner.indptr[node + 1]]
                ).tolist()
                for node, parents in zip(level.nodes, level.parents, strict=True)
            ]
            table = _table(level.nodes.tolist(), near, len(rest))
            may = choice.allowed(self._shared(choice.hubs, np.append(rest, -1)[table]))
            slopes = may.slopes & (table < len(rest))[:, None]
            number = np.sum(slopes, axis=(1, 2)) + np.sum(may.linear, axis=1)
            most = max(most, int(number.max()))
        return most

    def _search(self, dictionary: Dictionary) -> Search:
        return Search(dictionary, self._scores.theta, self._scores.weight, self._is_out)

    def _neighbours(self, node: int) -> np.ndarray:
        return self._graph.indices[
            self._graph.indptr[node] : self._graph.indptr[node + 1]
        ]

    def _parts(
        self, choice: Choice
    ) -> tuple[np.ndarray, np.ndarray, tuple[Level, ...]]:
        """Hubs, the rest, and the levels in which the rest is eliminated."""
        hubs = np.array(choice.hubs, dtype=int)
        rest = np.setdiff1d(np.arange(self._graph.shape[0]), hubs)
        return (
            hubs,
            rest,
            eliminate(scipy.sparse.csr_matrix(self._graph[rest][:, rest])),
        )


def _take_out(
    pulled: np.ndarray,
    white: np.ndarray,
    level: Level,
    parents: np.ndarray,
    slopes: np.ndarray,
    phi: np.ndarray,
) -> None:
    """Take from the gradients of parents what edges of this level explain, in place."""
    size = len(pulled)
    child, slot = np.nonzero(parents < size)
    if not len(child):
        return
    edges = slopes[:, child, slot].T @ phi
    np.subtract.at(pulled, parents[child, slot], edges * white[level.nodes[child]])


def _table(nodes: list[int], near: list[list[int]], size: int) -> np.ndarray:
    """Columns of rows, padded in front of the variable itself."""
    width = max((len(columns) for columns in near), default=0)
    table = np.full((len(nodes), width + 1), size)
    for row, (node, columns) in enumerate(zip(nodes, near, strict=True)):
        table[row, : len(columns)] = columns
        table[row, -1] = node
    return table


def _always(rows: Rows) -> RowsOf:
    return lambda hubs: rows


def _natural(choice: Choice, fits: RowFits) -> NaturalParameters:
    slopes = fits.slopes.transpose(1, 0, 2)
    return NaturalParameters(
        *(choice.terms, choice.linear_terms),
        *(slopes[:, :, -1], slopes[:, :, :-1], fits.linear.T),
    )


def location(scores: Scores) -> tuple[np.ndarray, np.ndarray]:
    """Weighted means and standard deviations of all coordinates."""
    probability = scores.weight / scores.weight.sum()
    center = probability @ scores.theta
    spread = np.sqrt(probability @ (scores.theta - center) ** 2)
    return center, np.where(spread > 0, spread, 1.0)

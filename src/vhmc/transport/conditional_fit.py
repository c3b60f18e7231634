r"""Fit the conditional layer: hubs and functions by search, rows by least squares.

Level by level, the gradient along a variable, pulled back through the levels before, is
linear in its natural parameters,

$$\partial_k U = d_k(c) r_k + \sum_a e_{ka}(c) r_a - h_k(c),$$

so each variable is a least-squares problem with as many unknowns as it has neighbours,
times the number of functions. Errors count in units of the variable's conditional
width. The precision $d_k$ has weights that are not negative, so that it is positive at
all hubs.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import scipy.sparse

from vhmc.structure.elimination import Level, eliminate
from vhmc.transport.conditional import (
    Conditional,
    NaturalParameters,
    moments,
    pull_back_level,
)
from vhmc.transport.hub_functions import POWERS, Atom, Link, Term, evaluate
from vhmc.transport.influence import MAX_ERROR, log_capped

MAX_HUBS = 4
MAX_TERMS = 8
MAX_CANDIDATES = 12
"""Variables of highest degree that may be hubs."""
HUB_DEGREE = 0.5
"""Least degree of a hub, over the largest one."""
MAX_ROWS = 24
"""Variables by which hubs and functions are chosen; all are fitted with these."""
MAX_ROWS_LATER = 6
"""The same for levels after the first."""
WORTHWHILE = 0.9
"""A further function must leave less than this of the held-out error."""
NEGLIGIBLE = 1e-4
"""Squared error at which no further function is tried."""
SHORTLIST = 8
"""Functions that are tried in full, the best by the residuals of the last fit."""
LOG_LIKE = 3.0
"""A real parameter of a smaller spread than this may be a logarithm of a scale."""
RIDGES = 1e-9, 1e-5, 1e-3, 3e-2
HELD_OUT = 0.3
REWEIGHTINGS = 3
LEAST_VARIANCE = 1e-3


class Scores(NamedTuple):
    """Points, gradients of their energy, and weights, one point a row."""

    theta: np.ndarray
    grad: np.ndarray
    weight: np.ndarray

    def where(self, chosen: np.ndarray) -> "Scores":
        """Some of the points."""
        return Scores(*(rows[chosen] for rows in self))


class Choice(NamedTuple):
    """Hubs, functions of them, and the ridge.

    terms: functions for precisions and edges, the constant first.
    linear_terms: functions for the linear part.
    """

    hubs: tuple[int, ...]
    terms: tuple[Term, ...]
    linear_terms: tuple[Term, ...]
    ridge: float


class Row(NamedTuple):
    """The problem of one variable, one point a row.

    columns: its neighbours and itself last, standardised.
    right: gradients along it, in its standardised coordinate.
    """

    columns: np.ndarray
    right: np.ndarray


RowsOf = Callable[[tuple[int, ...]], list[Row]]
"""From hubs to the problems of some of the other variables."""


class Fit(NamedTuple):
    """Natural parameters of a variable, with what they leave at all points.

    slopes: by function and column.
    linear: by function.
    rest: what is left of the gradients.
    variance: that of the gradient given the hubs, which is the precision itself.
    """

    slopes: np.ndarray
    linear: np.ndarray
    rest: np.ndarray
    variance: np.ndarray

    @property
    def errors(self) -> np.ndarray:
        """Squared errors in units of conditional widths, log-capped."""
        return log_capped(self.rest**2 / self.variance)[0]


class Search:
    """Greedy search for functions of hubs, by the held-out errors of some variables.

    dictionary: functions that may be used.
    theta: all parameters, of which hubs are columns.
    weight: of the points.
    is_out: points that are held out.
    """

    def __init__(
        self,
        dictionary: "Dictionary",
        theta: np.ndarray,
        weight: np.ndarray,
        is_out: np.ndarray,
    ):
        self._dictionary, self._theta = dictionary, theta
        self._kept, self._out = weight * ~is_out, weight * is_out

    def improved(self, choice: Choice, rows_of: RowsOf) -> Choice:
        """Add functions while the held-out error falls, then choose the ridge.

        rows_of: from hubs to the problems of the sampled variables.
        """
        fits, error = self._fitted(choice, rows_of(choice.hubs))
        while len(choice.terms) < MAX_TERMS and error > NEGLIGIBLE:
            ranked = self._ranked(choice, rows_of(choice.hubs), fits)[:SHORTLIST]
            trials = [(new, *self._fitted(new, rows_of(new.hubs))) for new in ranked]
            if not trials:
                break
            best = min(trials, key=lambda trial: trial[2])
            if not best[2] < WORTHWHILE * error:
                break
            choice, fits, error = best
        ridges = [choice._replace(ridge=ridge) for ridge in RIDGES]
        rows = rows_of(choice.hubs)
        return min(ridges, key=lambda one: self._fitted(one, rows)[1])

    def _fitted(self, choice: Choice, rows: list[Row]) -> tuple[list[Fit], float]:
        """Fits of the rows to the points kept, and the mean error at the others."""
        phi, psi = _values(choice, self._theta)
        fits = [fit_row(row, phi, psi, self._kept, choice.ridge) for row in rows]
        errors = [self._out @ fit.errors / self._out.sum() for fit in fits]
        return fits, float(np.mean(errors))

    def _ranked(self, choice: Choice, rows: list[Row], fits: list[Fit]) -> list[Choice]:
        """Choices with one function more, the most promising first."""
        new = self._dictionary.extensions(choice)
        if not new:
            return []
        values = np.stack(
            [evaluate(one.terms[-1:], self._theta[:, list(one.hubs)])[0] for one in new]
        )
        gains = sum(
            self._gains(row, fit, values) for row, fit in zip(rows, fits, strict=True)
        )
        return [new[i] for i in np.argsort(-gains)]

    def _gains(self, row: Row, fit: Fit, values: np.ndarray) -> np.ndarray:
        """Fall of the held-out squared error of a row by each function's values."""
        columns = np.concatenate([row.columns, np.ones((len(row.right), 1))], axis=1)
        trust = 1 / fit.variance / (1 + fit.rest**2 / fit.variance / MAX_ERROR)
        kept, out = self._kept * trust, self._out * trust
        size = columns.shape[1]
        outer = (columns[:, :, None] * columns[:, None, :]).reshape(len(columns), -1)
        with np.errstate(over="ignore", invalid="ignore"):
            matrix = (kept * values**2 @ outer).reshape(-1, size, size)
            right = (kept * values * fit.rest) @ columns
            scale = np.trace(matrix, axis1=1, axis2=2) / size
            matrix += (1e-4 * scale + 1e-300)[:, None, None] * np.eye(size)
            is_usable = np.isfinite(matrix.sum(axis=(1, 2)) + right.sum(axis=1))
            matrix[~is_usable] = np.eye(size)
            slopes = np.linalg.solve(matrix, right[..., None])[..., 0]
            rest = fit.rest - values * (slopes @ columns.T)
            gain = (out @ fit.rest**2 - rest**2 @ out) / max(out.sum(), 1e-300)
        return np.where(is_usable & np.isfinite(gain), gain, -np.inf)


class Dictionary:
    """Functions of hubs that may be used.

    candidates: parameters that may be hubs.
    center, scale: of all parameters.
    links: of the parameters that are not real numbers.
    """

    def __init__(
        self,
        candidates: list[int],
        center: np.ndarray,
        scale: np.ndarray,
        links: Mapping[int, Link],
    ):
        self._candidates, self._links = candidates, links
        self._center, self._scale = center, scale
        self._known_atoms: dict[tuple[int, int], list[Atom]] = {}

    def extensions(self, choice: Choice) -> list[Choice]:
        """Choices with one function more."""
        found = []
        known = {_key(term) for term in choice.terms}
        for node in self._candidates:
            hubs = choice.hubs
            if node not in hubs:
                if len(hubs) == MAX_HUBS or len(hubs) + 2 > len(self._center):
                    continue
                hubs = (*hubs, node)
            for atom in self._atoms(node, hubs.index(node)):
                for term in choice.terms:
                    new = (*term, atom)
                    is_new = _key(new) not in known
                    if is_new and len(term) < 2 and atom.hub not in _hubs(term):
                        found.append(self._extended(choice, hubs, new))
        return found

    def only(self, hubs: tuple[int, ...]) -> "Dictionary":
        """The same for these hubs alone."""
        return Dictionary(list(hubs), self._center, self._scale, self._links)

    def _extended(self, choice: Choice, hubs: tuple[int, ...], term: Term) -> Choice:
        linear = [*choice.linear_terms]
        for node in hubs[len(choice.hubs) :]:
            linear += [(atom,) for atom in self._polynomials(node, hubs.index(node))]
        if _key(term) not in {_key(one) for one in linear}:
            linear.append(term)
        return choice._replace(
            hubs=hubs, terms=(*choice.terms, term), linear_terms=tuple(linear)
        )

    def _polynomials(self, node: int, hub: int) -> list[Atom]:
        if (node, -1 - hub) not in self._known_atoms:
            place = self._center[node], self._scale[node]
            made = [Atom(hub, "polynomial", power, *place) for power in (1, 2)]
            self._known_atoms[node, -1 - hub] = made
        return self._known_atoms[node, -1 - hub]

    def _atoms(self, node: int, hub: int) -> list[Atom]:
        """Functions of one hub, made once."""
        if (node, hub) not in self._known_atoms:
            self._known_atoms[node, hub] = self._new_atoms(node, hub)
        return self._known_atoms[node, hub]

    def _new_atoms(self, node: int, hub: int) -> list[Atom]:
        center, scale = self._center[node], self._scale[node]
        link = self._links.get(node, Link("real"))
        if link.kind == "logit":
            unit = max(abs(link.low), abs(link.high))
            powers = POWERS if link.low >= 0 else (1.0, 2.0)
            return [
                Atom(hub, "logit", power, center, unit, link.low, link.high)
                for power in powers
            ]
        is_log = link.kind == "exp" or scale < LOG_LIKE
        return [
            Atom(hub, "exp", power, center, 1.0 if is_log else scale)
            for power in (POWERS if is_log else (-1.0, -0.5, 0.5, 1.0))
        ]


def fit_conditional(
    rng: np.random.Generator,
    scores: Scores,
    graph: scipy.sparse.csr_matrix,
    links: Mapping[int, Link],
    hubs: tuple[int, ...] | None = None,
    choice: Choice | None = None,
) -> tuple[Conditional, Choice]:
    """The layer, with hubs and functions chosen by held-out errors.

    links: of the parameters that are not real numbers, by index.
    hubs: the only candidates, unless none are given.
    choice: of hubs and functions of the first level, if it is known.
    """
    center, scale = location(scores)
    degree = np.diff(graph.indptr)
    order = np.argsort(-degree, kind="stable")[:MAX_CANDIDATES]
    order = order[degree[order] >= HUB_DEGREE * degree.max()]
    candidates = [int(i) for i in (order if hubs is None else hubs)]
    dictionary = Dictionary(candidates, center, scale, links)
    is_out = rng.uniform(size=len(scores.theta)) < HELD_OUT
    search = Search(dictionary, scores.theta, scores.weight, is_out)
    low = np.flatnonzero(degree <= max(np.quantile(degree, 0.8), 8))
    sampled = np.sort(rng.choice(low, min(MAX_ROWS, len(low)), replace=False))
    white = (scores.theta - center) / scale
    pulled = scores.grad * scale

    def rows_of(hubs: tuple[int, ...]) -> list[Row]:
        rows = []
        for node in sampled:
            if node not in hubs:
                near = graph.indices[graph.indptr[node] : graph.indptr[node + 1]]
                near = np.append(np.setdiff1d(near, (*hubs, node)), node)
                rows.append(Row(white[:, near], pulled[:, node]))
        return rows

    if choice is None:
        choice = search.improved(Choice((), ((),), ((),), RIDGES[1]), rows_of)
    layer = _by_levels(rng, scores, graph, choice, dictionary, is_out)
    return layer, choice


def _by_levels(
    rng: np.random.Generator,
    scores: Scores,
    graph: scipy.sparse.csr_matrix,
    choice: Choice,
    dictionary: Dictionary,
    is_out: np.ndarray,
) -> Conditional:
    """Fit level after level, each to gradients pulled back through those before."""
    center, scale = location(scores)
    hubs = np.array(choice.hubs, dtype=int)
    rest = np.setdiff1d(np.arange(graph.shape[0]), hubs)
    levels = eliminate(scipy.sparse.csr_matrix(graph[rest][:, rest]))
    white = ((scores.theta - center) / scale)[:, rest]
    white = np.concatenate([white, np.zeros((len(white), 1))], axis=1)
    pulled = (scores.grad * scale)[:, rest].T.copy()
    search = Search(dictionary.only(choice.hubs), scores.theta, scores.weight, is_out)
    fitted = []
    for count, level in enumerate(levels):
        rows = _rows(level, white, pulled)
        own = choice
        if count and choice.hubs:
            some = rng.permutation(len(rows))[:MAX_ROWS_LATER]
            few = [rows[i] for i in some]
            own = search.improved(own, _always(few))
        phi, psi = _values(own, scores.theta)
        fits = [fit_row(row, phi, psi, scores.weight, own.ridge) for row in rows]
        parameters = _gathered(own, level, fits)
        fitted.append(parameters)
        pull_back_level(pulled, level, moments(scores.theta[:, hubs], parameters))
    return Conditional(hubs, rest, center[rest], scale[rest], levels, tuple(fitted))


def _always(rows: list[Row]) -> RowsOf:
    return lambda hubs: rows


def _rows(level: Level, white: np.ndarray, pulled: np.ndarray) -> list[Row]:
    size = white.shape[1] - 1
    rows = []
    for node, parents in zip(level.nodes, level.parents, strict=True):
        order = np.append(parents[parents < size], node)
        rows.append(Row(white[:, order], pulled[node]))
    return rows


def _gathered(choice: Choice, level: Level, fits: list[Fit]) -> NaturalParameters:
    """Natural parameters of a level as arrays, zero where parents are padded."""
    edges = np.zeros((len(choice.terms), *level.parents.shape))
    for row, fit in enumerate(fits):
        edges[:, row, : fit.slopes.shape[1] - 1] = fit.slopes[:, :-1]
    precision = np.stack([fit.slopes[:, -1] for fit in fits], axis=1)
    linear = np.stack([fit.linear for fit in fits], axis=1)
    return NaturalParameters(
        choice.terms, choice.linear_terms, precision, edges, linear
    )


def fit_row(
    row: Row, phi: np.ndarray, psi: np.ndarray, weight: np.ndarray, ridge: float
) -> Fit:
    """Weighted least squares, reweighted by the conditional variances it finds.

    phi, psi: values of the functions for precision and linear part, one a row.
    weight: of the points; zero leaves a point out of the fit.
    """
    number, size = phi.shape[0], row.columns.shape[1]
    products = phi.T[:, :, None] * row.columns[:, None, :]
    design = np.concatenate([products.reshape(len(weight), -1), -psi.T], axis=1)
    unit = np.sqrt(np.average(design**2, axis=0, weights=weight)) + 1e-300
    design = design / unit
    square = row.right**2
    trust = weight / (np.median(square[weight > 0]) + 1e-12 + square)
    is_precision = np.zeros(design.shape[1], dtype=bool)
    is_precision[size - 1 : number * size : size] = True
    for _ in range(REWEIGHTINGS):
        weights = _solved(design, row.right, trust, ridge, is_precision)
        rest = row.right - design @ weights
        slopes = (weights / unit)[: number * size].reshape(number, size)
        variance = np.maximum(slopes[:, -1] @ phi, LEAST_VARIANCE)
        trust = weight / variance / (1 + rest**2 / variance / MAX_ERROR)
    return Fit(slopes, (weights / unit)[number * size :], rest, variance)


def _solved(
    design: np.ndarray,
    right: np.ndarray,
    trust: np.ndarray,
    ridge: float,
    is_positive: np.ndarray,
) -> np.ndarray:
    """Ridge solution; weights that must be positive are dropped where they are not."""
    matrix = design.T @ (design * trust[:, None])
    matrix[np.diag_indices(len(matrix))] += ridge * np.trace(matrix) / len(matrix)
    target = design.T @ (trust * right)
    is_used = np.ones(len(matrix), dtype=bool)
    weights = np.zeros(len(matrix))
    while True:
        some = np.flatnonzero(is_used)
        weights[:] = 0.0
        weights[some] = np.linalg.lstsq(
            matrix[np.ix_(some, some)], target[some], rcond=1e-14
        )[0]
        is_wrong = is_positive & is_used & (weights < 0)
        if not is_wrong.any():
            return weights
        is_used[np.argmin(np.where(is_wrong, weights, 0.0))] = False


def _values(choice: Choice, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Functions for precision and for the linear part, one a row."""
    c = theta[:, list(choice.hubs)]
    return evaluate(choice.terms, c), evaluate(choice.linear_terms, c)


def location(scores: Scores) -> tuple[np.ndarray, np.ndarray]:
    """Weighted means and standard deviations of all coordinates."""
    probability = scores.weight / scores.weight.sum()
    center = probability @ scores.theta
    spread = np.sqrt(probability @ (scores.theta - center) ** 2)
    return center, np.where(spread > 0, spread, 1.0)


def _hubs(term: Term) -> list[int]:
    return [atom.hub for atom in term]


def _key(term: Term) -> tuple:
    return tuple(sorted((atom.hub, atom.kind, atom.power) for atom in term))

"""Choose hubs and functions of them: a greedy search by held-out score errors."""

import functools
import itertools
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from vhmc.transport.hub_dictionary import (
    CENTRED_POWERS,
    MAX_HUBS,
    RIDGES,
    Choice,
    Dictionary,
)
from vhmc.transport.hub_functions import Atom, Term, evaluate
from vhmc.transport.influence import MAX_ERROR
from vhmc.transport.row_fit import Family, RowFits, Rows, fit_families, fit_rows

EXACT = 1e-12
"""Held-out squared error of a family that is exact."""
MAX_TERMS = 8
WORTHWHILE = 0.9
"""A further function must leave less than this of the held-out error."""
WORTH_A_HUB = 0.5
"""The same where the function makes a hub of a parameter that is no scale."""
HARMLESS = 1.1
"""A scale becomes a hub if that leaves less than this of the held-out error."""
NEGLIGIBLE = 1e-8
"""Squared error at which no further function is tried."""
WIDE = 12
"""Columns of a row above which entries have only the functions that the graph allows.
"""
SHORTLIST = 8
"""Functions that are tried in full, the best by the residuals of the last fit."""

RowsOf = Callable[[tuple[int, ...]], Rows]
"""From hubs to the problems of some of the other variables."""


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
        self._known: dict[tuple[tuple[int, Atom], ...], np.ndarray] = {}

    def improved(
        self,
        choice: Choice,
        rows_of: RowsOf,
        scales: Sequence[int] = (),
        limit: float = WORTHWHILE,
    ) -> Choice:
        """Add functions while the held-out error falls, then choose the ridge.

        rows_of: from hubs to the problems of the sampled variables.
        scales: parameters that become hubs unless that does harm.
        limit: share of the error that a further function may leave.
        """
        rows_of = functools.cache(rows_of)
        ((fits, error),) = self._fitted([choice], rows_of)
        while len(choice.terms) < MAX_TERMS and error > NEGLIGIBLE:
            ranked = self._ranked(
                self._dictionary.extensions(choice), rows_of(choice.hubs), fits
            )
            some = [*ranked[:SHORTLIST], *self._dictionary.pairs(choice, scales)]
            old = choice
            trials = self._fitted(some, rows_of)
            for new, (new_fits, new_error) in zip(some, trials, strict=True):
                if new_error < min(limit, self._limit(old, new, scales)) * error:
                    choice, fits, error = new, new_fits, new_error
            if choice is old:
                break
        for scale in scales:
            if scale in choice.hubs or len(choice.hubs) == MAX_HUBS:
                continue
            wanted = [
                one for one in self._dictionary.extensions(choice) if scale in one.hubs
            ]
            some = self._ranked(wanted, rows_of(choice.hubs), fits)[:SHORTLIST]
            trials = self._fitted(some, rows_of)
            pairs = zip(some, trials, strict=True)
            best = min(pairs, key=lambda pair: pair[1][1], default=None)
            if best is not None and best[1][1] < HARMLESS * error + NEGLIGIBLE:
                choice, (fits, error) = best
        choice = self._pruned(choice, rows_of, error)
        ridges = [choice._replace(ridge=ridge) for ridge in RIDGES]
        pairs = zip(ridges, self._fitted(ridges, rows_of), strict=True)
        return min(pairs, key=lambda pair: pair[1][1])[0]

    def exact(self, rows_of: RowsOf, scales: Sequence[int]) -> Choice | None:
        """The smallest family of known form that leaves no error; None if none does.

        rows_of: from hubs to the problems of the sampled variables.
        scales: the hubs.
        """
        hubs = tuple(scales)
        rows = rows_of(hubs)
        if not len(rows.right):
            return None
        # The row of fewest neighbours is cheap, and rules out nearly all families.
        size = np.any(rows.columns != 0, axis=1).sum(axis=1)
        first = rows.where([int(np.argmin(size))]).without_padding()
        if (choice := self._centred_form(hubs, rows)) is not None:
            return choice
        if len(hubs) > MAX_HUBS:
            return None
        for choice in self._dictionary.known_forms(hubs):
            if all(self._error(choice, some) < EXACT for some in (first, rows)):
                return choice
        return None

    def _centred_form(self, hubs: tuple[int, ...], rows: Rows) -> Choice | None:
        """Powers of all scales, found one after the other; None if none are exact."""
        powers = [CENTRED_POWERS[0]] * len(hubs)

        def trial() -> tuple[float, Choice | None]:
            choice = self._dictionary.centred_form(hubs, powers)
            return (np.inf if choice is None else self._error(choice, rows)), choice

        error, best = trial()
        for place in range(len(hubs)):
            if error < EXACT:
                break
            known = powers[place]
            for powers[place] in CENTRED_POWERS[1:]:
                new, choice = trial()
                if new < error:
                    error, best, known = new, choice, powers[place]
            powers[place] = known
        return best if error < EXACT else None

    def _pruned(self, choice: Choice, rows_of: RowsOf, error: float) -> Choice:
        """Without functions that others have made superfluous, one after the other."""
        left = choice.terms[1:]
        while left:
            fewer = [
                choice._replace(
                    terms=tuple(one for one in choice.terms if one is not term)
                )
                for term in left
            ]
            trials = [trial for _, trial in self._fitted(fewer, rows_of)]
            enough = HARMLESS * error + NEGLIGIBLE
            first = next((i for i, trial in enumerate(trials) if trial < enough), None)
            if first is None:
                break
            choice, error = fewer[first], max(trials[first], error)
            left = left[first + 1 :]
        return choice

    def _limit(self, old: Choice, new: Choice, scales: Sequence[int]) -> float:
        """Share of the error that a new choice may leave."""
        has_new_hub = len(new.hubs) > len(old.hubs) and new.hubs[-1] not in scales
        return WORTH_A_HUB if has_new_hub and scales else WORTHWHILE

    def _fitted(
        self, choices: list[Choice], rows_of: RowsOf
    ) -> list[tuple[RowFits, float]]:
        """Fits of each choice to the points kept, and the mean error at the others."""

        def kind(i: int) -> tuple[tuple[int, ...], int, int]:
            one = choices[i]
            return one.hubs, len(one.terms), len(one.linear_terms)

        found: dict[int, tuple[RowFits, float]] = {}
        alike = itertools.groupby(sorted(range(len(choices)), key=kind), kind)
        for (hubs, *_), group in alike:
            members, rows = list(group), rows_of(hubs)
            if rows.shared is not None and rows.columns.shape[2] > WIDE:
                # With all functions wide rows would have more unknowns than points.
                fits: Iterable[RowFits] = [
                    self._by_graph(choices[i], rows) for i in members
                ]
            else:
                families = [self._family(choices[i]) for i in members]
                fits = fit_families(rows, families, self._kept)
            for i, one in zip(members, fits, strict=True):
                found[i] = one, self._held_out(one)
        return [found[i] for i in range(len(choices))]

    def _error(self, choice: Choice, rows: Rows) -> float:
        """Mean error of a choice at the points held out."""
        return self._held_out(self._by_graph(choice, rows))

    def _by_graph(self, choice: Choice, rows: Rows) -> RowFits:
        """Fits by the functions that the graph allows, to the points kept."""
        phi, psi, ridge = self._family(choice)
        may = None if rows.shared is None else choice.allowed(rows.shared)
        return fit_rows(rows, phi, psi, self._kept, ridge, may)

    def _held_out(self, fits: RowFits) -> float:
        if not len(fits.rest):
            return np.inf
        # Points far out, where no choice does well, must not decide.
        errors = np.minimum(fits.rest**2 / fits.variance, 1.0)
        return float(np.mean(errors @ self._out) / self._out.sum())

    def _family(self, choice: Choice) -> Family:
        phi, psi = (
            np.stack([self._value(choice.hubs, term) for term in terms])
            for terms in (choice.terms, choice.linear_terms)
        )
        return Family(phi, psi, choice.ridge)

    def _value(self, hubs: tuple[int, ...], term: Term) -> np.ndarray:
        """A function at all points, computed once."""
        key = tuple((hubs[atom.hub], atom) for atom in term)
        if key not in self._known:
            self._known[key] = evaluate((term,), self._theta[:, list(hubs)])[0]
        return self._known[key]

    def _ranked(self, new: list[Choice], rows: Rows, fits: RowFits) -> list[Choice]:
        """Choices with one function more, the most promising first."""
        if not new or not len(rows.right):
            return new
        values = np.stack([self._value(one.hubs, one.terms[-1]) for one in new])
        gains = np.sum(
            [self._gains(rows, fits, i, values) for i in range(len(rows.right))], axis=0
        )
        return [new[i] for i in np.argsort(-gains)]

    def _gains(
        self, rows: Rows, fits: RowFits, row: int, values: np.ndarray
    ) -> np.ndarray:
        """Fall of the held-out squared error of a row by each function's values."""
        columns, left, variance = rows.columns[row], fits.rest[row], fits.variance[row]
        columns = columns[:, np.any(columns != 0, axis=0)]
        columns = np.concatenate([columns, np.ones((len(left), 1))], axis=1)
        trust = 1 / variance / (1 + left**2 / variance / MAX_ERROR)
        kept, out = self._kept * trust, self._out * trust
        size = columns.shape[1]
        outer = (columns[:, :, None] * columns[:, None, :]).reshape(len(columns), -1)
        with np.errstate(over="ignore", invalid="ignore"):
            matrix = (kept * values**2 @ outer).reshape(-1, size, size)
            right = (kept * values * left) @ columns
            scale = np.trace(matrix, axis1=1, axis2=2) / size
            matrix += (1e-4 * scale + 1e-300)[:, None, None] * np.eye(size)
            is_usable = np.isfinite(matrix.sum(axis=(1, 2)) + right.sum(axis=1))
            matrix[~is_usable] = np.eye(size)
            slopes = np.linalg.solve(matrix, right[..., None])[..., 0]
            rest = left - values * (slopes @ columns.T)
            gain = (out @ left**2 - rest**2 @ out) / max(out.sum(), 1e-300)
        return np.where(is_usable & np.isfinite(gain), gain, -np.inf)

"""Choose hubs and functions of them: a greedy search by held-out score errors."""

from collections.abc import Callable, Sequence

import numpy as np

from vhmc.transport.hub_dictionary import (
    CENTRED_POWERS,
    MAX_HUBS,
    RIDGES,
    Choice,
    Dictionary,
)
from vhmc.transport.hub_functions import evaluate
from vhmc.transport.influence import MAX_ERROR
from vhmc.transport.row_fit import RowFits, Rows, fit_rows

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
        fits, error = self._fitted(choice, rows_of(choice.hubs))
        while len(choice.terms) < MAX_TERMS and error > NEGLIGIBLE:
            ranked = self._ranked(
                self._dictionary.extensions(choice), rows_of(choice.hubs), fits
            )
            some = [*ranked[:SHORTLIST], *self._dictionary.pairs(choice, scales)]
            old = choice
            for new in some:
                new_fits, new_error = self._fitted(new, rows_of(new.hubs))
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
            trials = [(one, *self._fitted(one, rows_of(one.hubs))) for one in some]
            best = min(trials, key=lambda trial: trial[2], default=None)
            if best is not None and best[2] < HARMLESS * error + NEGLIGIBLE:
                choice, fits, error = best
        choice = self._pruned(choice, rows_of(choice.hubs), error)
        ridges = [choice._replace(ridge=ridge) for ridge in RIDGES]
        rows = rows_of(choice.hubs)
        return min(ridges, key=lambda one: self._fitted(one, rows)[1])

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
            if all(self._fitted(choice, some)[1] < EXACT for some in (first, rows)):
                return choice
        return None

    def _centred_form(self, hubs: tuple[int, ...], rows: Rows) -> Choice | None:
        """Powers of all scales, found one after the other; None if none are exact."""
        powers = [CENTRED_POWERS[0]] * len(hubs)

        def trial() -> tuple[float, Choice | None]:
            choice = self._dictionary.centred_form(hubs, powers)
            return (np.inf if choice is None else self._fitted(choice, rows)[1]), choice

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

    def _pruned(self, choice: Choice, rows: Rows, error: float) -> Choice:
        """Without functions that others have made superfluous."""
        for term in choice.terms[1:]:
            fewer = choice._replace(
                terms=tuple(one for one in choice.terms if one is not term)
            )
            trial = self._fitted(fewer, rows)[1]
            if trial < HARMLESS * error + NEGLIGIBLE:
                choice, error = fewer, max(trial, error)
        return choice

    def _limit(self, old: Choice, new: Choice, scales: Sequence[int]) -> float:
        """Share of the error that a new choice may leave."""
        has_new_hub = len(new.hubs) > len(old.hubs) and new.hubs[-1] not in scales
        return WORTH_A_HUB if has_new_hub and scales else WORTHWHILE

    def _fitted(self, choice: Choice, rows: Rows) -> tuple[RowFits, float]:
        """Fits of the rows to the points kept, and the mean error at the others."""
        phi, psi = choice.values(self._theta)
        may = None if rows.shared is None else choice.allowed(rows.shared)
        fits = fit_rows(rows, phi, psi, self._kept, choice.ridge, may)
        if not len(rows.right):
            return fits, np.inf
        # Points far out, where no choice does well, must not decide.
        errors = np.minimum(fits.rest**2 / fits.variance, 1.0)
        return fits, float(np.mean(errors @ self._out) / self._out.sum())

    def _ranked(self, new: list[Choice], rows: Rows, fits: RowFits) -> list[Choice]:
        """Choices with one function more, the most promising first."""
        if not new or not len(rows.right):
            return new
        values = np.stack(
            [evaluate(one.terms[-1:], self._theta[:, list(one.hubs)])[0] for one in new]
        )
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

"""Choose hubs and functions of them: a greedy search by held-out score errors."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from vhmc.transport.hub_functions import POWERS, Atom, Link, Term, evaluate
from vhmc.transport.influence import MAX_ERROR
from vhmc.transport.row_fit import RowFits, Rows, fit_rows

MAX_HUBS = 4
ROLES = ("centred", -2.0), ("factor", 1.0), ("centred", -1.0), ("centred", 1.0)
"""What a scale can be in a model that is Gaussian given its scales, with its power."""
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
LOG_LIKE = 3.0
"""A real parameter of a smaller spread than this may be a logarithm of a scale."""
RIDGES = 1e-14, 1e-12, 1e-9, 1e-6, 1e-4, 1e-2
PAIRS = (1.0, 2.0), (0.5, 1.0), (-0.5, -1.0), (-1.0, -2.0)
"""Powers of a scale that come together, as in a non-centred form."""
PLACES = 0.1, 0.35, 0.65, 0.9
"""Quantiles of a hub around which functions of later levels saturate."""
STEEPNESS = -2.0, -1.0, 1.0, 2.0
"""Of these functions."""


class Choice(NamedTuple):
    """Hubs, functions of them, and the ridge.

    terms: functions for precisions and edges, the constant first.
    linear_terms: functions for the linear part.
    """

    hubs: tuple[int, ...]
    terms: tuple[Term, ...]
    linear_terms: tuple[Term, ...]
    ridge: float

    def values(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Functions for precision and for the linear part, one a row."""
        c = theta[:, list(self.hubs)]
        return evaluate(self.terms, c), evaluate(self.linear_terms, c)


NO_HUBS = Choice((), ((),), ((),), RIDGES[1])

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
        self, choice: Choice, rows_of: RowsOf, scales: Sequence[int] = ()
    ) -> Choice:
        """Add functions while the held-out error falls, then choose the ridge.

        rows_of: from hubs to the problems of the sampled variables.
        scales: parameters that become hubs unless that does harm.
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
                if new_error < self._limit(old, new, scales) * error:
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
        for choice in self._dictionary.known_forms(hubs):
            if self._fitted(choice, rows)[1] < EXACT:
                return choice
        return None

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
        fits = fit_rows(rows, phi, psi, self._kept, choice.ridge)
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


class Dictionary:
    """Functions of hubs that may be used.

    candidates: parameters that may be hubs.
    center, scale: of all parameters.
    links: of the parameters that are not real numbers.
    """

    def __init__(
        self,
        candidates: Sequence[int],
        center: np.ndarray,
        scale: np.ndarray,
        links: Mapping[int, Link],
    ):
        self._candidates, self._links = list(candidates), links
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

    def pairs(self, choice: Choice, scales: Sequence[int]) -> list[Choice]:
        """Choices with a new hub and two functions of it."""
        found = []
        for node in scales:
            if node in choice.hubs or len(choice.hubs) == MAX_HUBS:
                continue
            hubs = (*choice.hubs, node)
            atoms = {atom.power: atom for atom in self._atoms(node, len(choice.hubs))}
            for first, second in PAIRS:
                if first in atoms and second in atoms:
                    one = self._extended(choice, hubs, (atoms[first],))
                    found.append(self._extended(one, hubs, (atoms[second],)))
        return found

    def known_forms(self, hubs: tuple[int, ...]) -> list[Choice]:
        """Families of models that are Gaussian given their scales, the smallest first.

        Every scale is one of a centred effect, of a non-centred one, or of the errors
        of data on the latter; as a standard deviation, a variance or a precision.
        """
        found = []
        for roles in itertools.product(ROLES, repeat=len(hubs)):
            centred = [(i, p) for i, (kind, p) in enumerate(roles) if kind == "centred"]
            factors = [i for i, (kind, _) in enumerate(roles) if kind == "factor"]
            atoms = self._power_atoms(hubs, centred, factors)
            if atoms is None:
                continue
            inverse, linear, square = atoms
            effects: list[Term] = [(linear[i],) for i in factors]
            effects += [(square[i],) for i in factors]
            effects += [
                (linear[i], linear[j]) for i, j in itertools.combinations(factors, 2)
            ]
            terms: list[Term] = [(), *((atom,) for atom in inverse.values())]
            # Effects are seen in data of known errors, or of one of the other scales.
            seen: list[list[Term]] = [effects]
            if effects:
                seen += [[(*one, atom) for one in effects] for atom in inverse.values()]
            for more in seen:
                whole = (*terms, *more)
                found.append(Choice(hubs, whole, whole, RIDGES[0]))
        return sorted(found, key=lambda choice: len(choice.terms))

    def _power_atoms(
        self,
        hubs: tuple[int, ...],
        centred: list[tuple[int, float]],
        factors: list[int],
    ) -> tuple[dict[int, Atom], dict[int, Atom], dict[int, Atom]] | None:
        """Atoms by position of the hub; None if a hub is no logarithm of a scale."""
        known = [
            {atom.power: atom for atom in self._atoms(node, i) if atom.kind == "exp"}
            for i, node in enumerate(hubs)
        ]
        try:
            return (
                {i: known[i][power] for i, power in centred},
                {i: known[i][1.0] for i in factors},
                {i: known[i][2.0] for i in factors},
            )
        except KeyError:
            return None

    def later(self, choice: Choice, theta: np.ndarray) -> "Dictionary":
        """Functions for later levels of the same hubs, in the order of the choice.

        There sums of $1 / (a + e^{p c})$ appear, which saturate on one side.
        """
        new = Dictionary(choice.hubs, self._center, self._scale, self._links)
        for hub, node in enumerate(choice.hubs):
            atoms = [*new._atoms(node, hub)]
            if any(atom.kind == "exp" for atom in atoms):
                unit = atoms[0].scale
                for place in np.quantile(theta[:, node], PLACES):
                    atoms += [
                        Atom(hub, "saturating", power, float(place), unit)
                        for power in STEEPNESS
                    ]
            new._known_atoms[node, hub] = atoms
        return new

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


def _hubs(term: Term) -> list[int]:
    return [atom.hub for atom in term]


def _key(term: Term) -> tuple:
    return tuple(
        sorted((atom.hub, atom.kind, atom.power, float(atom.center)) for atom in term)
    )

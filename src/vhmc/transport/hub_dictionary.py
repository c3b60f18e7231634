"""Functions of hubs that conditionals may depend on, and choices among them."""

import itertools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from vhmc.transport.hub_functions import POWERS, Atom, Link, Term, evaluate
from vhmc.transport.row_fit import Allowed

MAX_HUBS = 4
MAX_SCALES = 16
"""Hubs of a model that is Gaussian given its scales, at most."""
CENTRED_POWERS = -2.0, -1.0, 1.0
"""Of a standard deviation, a variance and a precision."""
ROLES = ("centred", -2.0), ("factor", 1.0), ("centred", -1.0), ("centred", 1.0)
"""What a scale can be in a model that is Gaussian given its scales, with its power."""
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
    is_local: an edge that may depend on a hub has no constant part: it comes from data
        with unknown errors, or from a prior with an unknown scale.
    marginal: functions of single hubs, whose combination their marginal energy is.
    """

    hubs: tuple[int, ...]
    terms: tuple[Term, ...]
    linear_terms: tuple[Term, ...]
    ridge: float
    is_local: bool = False
    marginal: tuple[Atom, ...] = ()

    def values(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Functions for precision and for the linear part, one a row."""
        c = theta[:, list(self.hubs)]
        return evaluate(self.terms, c), evaluate(self.linear_terms, c)

    def allowed(self, shared: np.ndarray) -> Allowed:
        """Functions that entries may have by the graph.

        An entry depends on a hub only if that is linked to both its variables.

        shared: hubs that variable and column share, of shape (variable, column, hub).
        """

        def of(terms: tuple[Term, ...], shared: np.ndarray) -> np.ndarray:
            rows = [np.all(shared[..., _hubs(term)], axis=-1) for term in terms]
            return np.stack(rows, axis=1)

        slopes, own = of(self.terms, shared), shared[:, -1]
        if self.is_local:
            is_constant = [not term for term in self.terms]
            has_hub = np.any(slopes[:, np.logical_not(is_constant)], axis=1)
            slopes[:, is_constant, :-1] &= ~has_hub[:, None, :-1]
        return Allowed(slopes, of(self.linear_terms, own))


NO_HUBS = Choice((), ((),), ((),), RIDGES[1])


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

    def centred_form(
        self, hubs: tuple[int, ...], powers: Sequence[float]
    ) -> Choice | None:
        """The family in which every scale is one of centred effects or of errors.

        powers: of each hub, by which it enters precisions.
        """
        atoms = self._power_atoms(hubs, list(enumerate(powers)), [])
        if atoms is None:
            return None
        terms: tuple[Term, ...] = ((), *((atom,) for atom in atoms[0].values()))
        return Choice(hubs, terms, terms, RIDGES[0], is_local=True)

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
        """Bounded functions for later levels of the same hubs, in the choice's order.

        There sums of $1 / (a + e^{p c})$ appear, which saturate on one side. Functions
        that grow would serve as well at the points, and fail down a neck beyond them.
        Hubs that are no scales keep their functions.
        """
        new = self.of(choice)
        for hub, node in enumerate(choice.hubs):
            if not self._is_log(node):
                continue
            places = np.quantile(theta[:, node], PLACES)
            new._known_atoms[node, -1 - hub] = []
            new._known_atoms[node, hub] = [
                Atom(hub, "saturating", power, float(place), 1.0)
                for place in places
                for power in STEEPNESS
            ]
        return new

    def of(self, choice: Choice) -> "Dictionary":
        """The functions of chosen hubs alone."""
        return Dictionary(choice.hubs, self._center, self._scale, self._links)

    def without_functions(self, choice: Choice) -> Choice:
        """The same hubs, with polynomials in the linear part of those that have any."""
        linear: list[Term] = [()]
        for hub, node in enumerate(choice.hubs):
            linear += [(atom,) for atom in self._polynomials(node, hub)]
        return choice._replace(terms=((),), linear_terms=tuple(linear))

    def _is_log(self, node: int) -> bool:
        """Whether a parameter is the logarithm of a scale, or may be."""
        link = self._links.get(node, Link("real"))
        if link.kind != "real":
            return link.is_scale
        return bool(self._scale[node] < LOG_LIKE)

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

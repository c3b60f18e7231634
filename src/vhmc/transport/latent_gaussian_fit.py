"""Fit the layer of a latent Gaussian model: one least-squares problem.

Gradients along the rest are linear in the entries of the four factors. Errors count in
units of the conditional widths, which the fit before gives.
"""

from collections.abc import Mapping

import numpy as np

from vhmc.structure.predictor import Predictor
from vhmc.transport.conditional_fit import HELD_OUT, Scores, location
from vhmc.transport.hub_dictionary import Choice, Dictionary
from vhmc.transport.hub_functions import Link
from vhmc.transport.influence import MAX_ERROR
from vhmc.transport.latent_gaussian import Factors, LatentGaussian, affine_at

RIDGES = 1e-10, 1e-7, 1e-4, 1e-2
"""In units of each column's mean square."""
REWEIGHTINGS = 4
TRIAL_REWEIGHTINGS = 2
"""The same where functions are only compared."""
MAX_TERMS = 4
WORTHWHILE = 0.7
"""A further function must leave less than this of the held-out error."""
GOOD = 0.01
"""Squared error by dimension at which no further function is tried."""
FLOOR = 1e-6
"""Least precision of the rest, over that of its spread."""
MAX_NUMBERS = 2**18
"""In the design: more points than this allows would add little."""
FEWEST = 150
"""Points that are used at any rate."""


class LatentGaussianFit:
    """Fits of the layer to the same points.

    scores: the points, which must be finite.
    predictor: of the model.
    links: of the parameters that are not real numbers, by index.
    """

    def __init__(
        self,
        rng: np.random.Generator,
        scores: Scores,
        predictor: Predictor,
        links: Mapping[int, Link],
    ):
        dim = scores.theta.shape[1]
        self._predictor = predictor
        self._hubs = np.array(predictor.hubs)
        self._rest = np.setdiff1d(np.arange(dim), self._hubs)
        self._links = links
        offset, slopes = affine_at(
            predictor.quantity, self._hubs, self._rest, scores.theta[:, self._hubs]
        )
        known = np.isfinite(offset.sum(axis=1) + slopes.sum(axis=(1, 2)))
        known &= scores.weight > 0
        chosen = _some(rng, scores.weight * known, self._most)
        self._scores = scores.where(chosen)
        self._middle = location(self._scores)
        self._offset, self._slopes = offset[chosen], slopes[chosen]
        self._columns = self._design()
        self._is_out = rng.uniform(size=len(chosen)) < HELD_OUT

    def choose(self) -> Choice:
        """Functions of the hubs that two of the factors depend on, and the ridge."""
        choice = Choice(tuple(self._hubs.tolist()), ((),), ((),), RIDGES[1])
        error = self.held_out_error(choice)
        # Functions of hubs that the program uses beyond the predictor, then of all.
        for hubs in (self._predictor.outer_hubs, self._predictor.hubs):
            dictionary = Dictionary(hubs, *self._middle, self._links)
            while len(choice.terms) < MAX_TERMS and error > GOOD:
                trials = [
                    one._replace(linear_terms=one.terms)
                    for one in dictionary.extensions(choice)
                ]
                errors = [self.held_out_error(one) for one in trials]
                best = int(np.argmin(errors)) if errors else -1
                if best < 0 or not errors[best] < WORTHWHILE * error:
                    break
                choice, error = trials[best], errors[best]
        ridges = [choice._replace(ridge=ridge) for ridge in RIDGES]
        return min(ridges, key=self.held_out_error)

    def layer(self, choice: Choice) -> LatentGaussian:
        """The layer with these functions, fitted to all points."""
        factors = self._fitted(choice, self._scores.weight)[0]
        return LatentGaussian(
            *(self._hubs, self._rest, self._predictor.quantity),
            *(choice.terms, factors, self._middle[0][self._hubs]),
        )

    @property
    def _most(self) -> int:
        """Points that are used, at most."""
        size, inner = len(self._rest), self._predictor
        num_columns = len(inner.links) + len(inner.own_links) + 2 * size
        return max(FEWEST, MAX_NUMBERS // (size * num_columns))

    def held_out_error(self, choice: Choice) -> float:
        """Mean squared error at the points held out, in units of widths."""
        kept, out = (
            self._scores.weight * part for part in (~self._is_out, self._is_out)
        )
        try:
            errors = self._fitted(choice, kept, TRIAL_REWEIGHTINGS)[1]
        except np.linalg.LinAlgError:
            return np.inf
        # Points far out, where no choice does well, must not decide.
        return float(np.minimum(errors, 1.0) @ out / max(out.sum(), 1e-300))

    def _fitted(
        self, choice: Choice, weight: np.ndarray, number_of_fits: int = REWEIGHTINGS
    ) -> tuple[Factors, np.ndarray]:
        """Factors for weighted points, and squared errors by dimension at all."""
        phi = choice.values(self._scores.theta)[0]
        right = self._scores.grad[:, self._rest]
        number, size, _ = self._columns.shape
        design = (self._columns[:, :, None, :] * phi.T[:, None, :, None]).reshape(
            number, size, -1
        )
        widths = np.std(right, axis=0, where=(weight > 0)[:, None]) + 1e-12
        white, target = design / widths[:, None], right / widths
        errors = np.sum(target**2, axis=1) / size
        trust = weight / (np.median(errors[weight > 0]) + errors)
        for _ in range(number_of_fits):
            weights = _solved(
                white, target, trust, choice.ridge, self._is_positive(phi)
            )
            factors = self._factors(weights.reshape(len(phi), -1))
            precision = self._precision(factors, phi)
            both = np.concatenate([design, right[:, :, None]], axis=2)
            both = np.linalg.solve(np.linalg.cholesky(precision), both)
            white, target = both[:, :, :-1], both[:, :, -1]
            errors = np.mean((target - white @ weights) ** 2, axis=1)
            trust = weight / (1 + errors / MAX_ERROR)
        return factors, errors

    def _design(self) -> np.ndarray:
        """Columns of the gradients along the rest, without functions of the hubs.

        Of shape (point, rest, unknown): entries of the own matrix, of the outer one,
        then the two linear parts.
        """
        rest = self._scores.theta[:, self._rest]
        slopes = self._slopes.swapaxes(1, 2)
        values = self._offset + np.einsum("nir,nr->ni", self._slopes, rest)
        unit = np.broadcast_to(np.eye(rest.shape[1]), (len(rest), *[rest.shape[1]] * 2))
        blocks = []
        for pairs, vectors, at in (
            (self._predictor.own_links, unit, rest),
            (self._predictor.links, slopes, values),
        ):
            one, other = np.array(pairs).T
            block = vectors[:, :, one] * at[:, None, other]
            mirrored = vectors[:, :, other] * at[:, None, one]
            blocks.append(block + mirrored * (one != other))
        return np.concatenate([*blocks, -unit, -slopes], axis=2)

    def _is_positive(self, phi: np.ndarray) -> np.ndarray:
        """Unknowns on the diagonals of the matrices, by function."""
        inner = self._predictor
        diagonal = [i == j for i, j in (*inner.own_links, *inner.links)]
        linear = [False] * (self._columns.shape[2] - len(diagonal))
        return np.tile([*diagonal, *linear], len(phi))

    def _factors(self, weights: np.ndarray) -> Factors:
        """Matrices and vectors from unknowns, one function a row."""
        inner, size, outer = self._predictor, len(self._rest), self._offset.shape[1]
        ends = np.cumsum([len(inner.own_links), len(inner.links), size])
        own, between, own_linear, outer_linear = np.split(weights, ends, axis=1)
        floor = FLOOR / self._middle[1][self._rest] ** 2
        matrix = _symmetric(own, inner.own_links, size)
        matrix[0] += np.diag(floor)
        return Factors(
            *(matrix, own_linear),
            *(_symmetric(between, inner.links, outer), outer_linear),
        )

    def _precision(self, factors: Factors, phi: np.ndarray) -> np.ndarray:
        """Conditional precisions at the points."""
        own, outer = (np.tensordot(phi.T, part, 1) for part in factors[::2])
        return own + self._slopes.swapaxes(1, 2) @ outer @ self._slopes


def _symmetric(
    entries: np.ndarray, pairs: tuple[tuple[int, int], ...], size: int
) -> np.ndarray:
    """Positive matrices from entries at pairs, one a row; the closest if they are not.

    The functions of the hubs are positive, so each matrix has to be.
    """
    one, other = np.array(pairs).T
    matrices = np.zeros((len(entries), size, size))
    matrices[:, one, other] = matrices[:, other, one] = entries
    if np.all(one == other):
        return np.maximum(matrices, 0.0)
    values, vectors = np.linalg.eigh(matrices)
    return (vectors * np.maximum(values, 0.0)[:, None, :]) @ vectors.swapaxes(1, 2)


def _solved(
    design: np.ndarray,
    right: np.ndarray,
    trust: np.ndarray,
    ridge: float,
    is_positive: np.ndarray,
) -> np.ndarray:
    """Ridge solution; unknowns that must be positive are dropped where they are not."""
    root = np.sqrt(trust)[:, None]
    rows = (design * root[:, :, None]).reshape(-1, design.shape[2])
    matrix, target = rows.T @ rows, (right * root).ravel() @ rows
    unit = np.sqrt(np.maximum(np.diagonal(matrix), 1e-300))
    matrix, target = matrix / unit / unit[:, None], target / unit
    matrix[np.diag_indices(len(unit))] += ridge
    is_used = np.ones(len(unit), dtype=bool)
    while True:
        weights = np.zeros(len(unit))
        weights[is_used] = np.linalg.solve(
            matrix[np.ix_(is_used, is_used)], target[is_used]
        )
        wrong = np.flatnonzero(is_positive & (weights < 0))
        if not len(wrong):
            return weights / unit
        # The worse half at a time: one by one would take as many solves as unknowns.
        order = np.argsort(weights[wrong])
        is_used[wrong[order[: (len(wrong) + 1) // 2]]] = False


def _some(rng: np.random.Generator, weight: np.ndarray, most: int) -> np.ndarray:
    """Places of all points of some weight, or of as many as may be used."""
    usable = np.flatnonzero(weight > 0)
    if len(usable) <= most:
        return usable
    chance = weight[usable] / weight.sum()
    return np.sort(rng.choice(usable, most, replace=False, p=chance))

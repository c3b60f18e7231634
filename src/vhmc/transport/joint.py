r"""The conditional layer of one joint Gaussian given the hubs.

The rest has the energy $\frac12 r^\top P(c) r - h(c)^\top r$, with the sparsity of the
graph and entries that are linear combinations of functions of the hubs. Conditionals
come from eliminating $P(c)$ numerically, at every point anew. For a model that is
Gaussian given its scales this is exact, also far from the points that it was fitted to.
"""

import numpy as np

from vhmc._types import Shared
from vhmc.structure.fill import Fill, LevelFill
from vhmc.transport.conditional import STEP, AbstractConditional, Moments
from vhmc.transport.hub_functions import Term, evaluate

LEAST_PIVOT = 1e-13
"""Least conditional precision, over that given all other variables."""
ROUNDING = 1e-11
"""The same below which it is made of rounding errors."""
MAX_DENSE = 300
"""Variables up to which full matrices may be used."""
DENSE = 2
"""Products of an elimination, over the square of the number of variables, from which
they are used."""
MAX_PRODUCTS = 2**22
"""Products of entries that are held at a time."""


class Joint(AbstractConditional):
    """A conditional layer with one precision matrix for all variables.

    terms, linear_terms: functions of the hubs for $P$ and for $h$.
    entries: of $P$ by function, in the order of `fill`.
    linear: $h$ by function.
    fill: where entries go in the elimination.
    """

    terms: tuple[Term, ...]
    linear_terms: tuple[Term, ...]
    entries: Shared
    linear: Shared
    fill: Fill

    def rest_energy(self, c: np.ndarray) -> np.ndarray:
        r"""Energies that integrating the rest out leaves at hubs, one point a row.

        $\frac12 \log \det P - \frac12 h^\top P^{-1} h$, for variables that are neither
        centred nor scaled; infinite where $P$ is not positive beyond rounding.
        """
        if self.is_dense:
            most = max(1, MAX_PRODUCTS // len(self.rest) ** 2)
            parts = [c[i : i + most] for i in range(0, len(c), most)]
            return np.concatenate([self._dense_energy(part) for part in parts])
        return self._sparse_energy(c)

    def rest_slopes(self, c: np.ndarray) -> np.ndarray:
        """Derivatives of `rest_energy` along the hubs, by a complex step."""
        grad = np.zeros_like(c)
        for hub in range(c.shape[1]):
            shifted = c.astype(complex)
            shifted[:, hub] += 1j * STEP
            grad[:, hub] = np.imag(self.rest_energy(shifted)) / STEP
        return grad

    @property
    def is_dense(self) -> bool:
        """Whether elimination along the graph takes more than that of full matrices."""
        size = len(self.rest)
        num_products = sum(len(level.child) for level in self.fill.levels)
        return size <= MAX_DENSE and num_products > DENSE * size**2

    def _dense_energy(self, c: np.ndarray) -> np.ndarray:
        """The same by factors of full matrices."""
        size = len(self.rest)
        rows, columns = self._places()
        entries = (self.entries.T @ evaluate(self.terms, c)).T
        linear = (self.linear.T @ evaluate(self.linear_terms, c)).T
        matrix = np.zeros((len(c), size, size), dtype=entries.dtype)
        matrix[:, rows, columns] = matrix[:, columns, rows] = entries
        energy = -self._shift(c)
        if np.iscomplexobj(matrix):
            sign, log_abs = np.linalg.slogdet(matrix)
            solved = np.linalg.solve(matrix, linear[..., None])[..., 0]
            log_det = log_abs + 1j * np.angle(sign)
            return energy + 0.5 * log_det - 0.5 * np.sum(linear * solved, axis=1)
        try:
            factor = np.linalg.cholesky(matrix)
        except np.linalg.LinAlgError:  # of one of the matrices
            return self._sparse_energy(c)
        half = np.linalg.solve(factor, linear[..., None])[..., 0]
        pivots = np.diagonal(factor, axis1=1, axis2=2)
        energy = energy + np.sum(np.log(pivots), axis=1) - 0.5 * np.sum(half**2, axis=1)
        is_definite = np.all(pivots**2 > ROUNDING * entries[:, :size], axis=1)
        return np.where(is_definite, energy, np.inf)

    def _places(self) -> tuple[np.ndarray, np.ndarray]:
        """Row and column of each entry of the matrix, the diagonal first."""
        rows, columns = np.tile(np.arange(self.fill.num_entries), (2, 1))
        for level, entries in zip(self.levels, self.fill.levels, strict=True):
            is_edge = entries.edges < self.fill.num_entries
            nodes = np.broadcast_to(level.nodes[:, None], level.parents.shape)
            rows[entries.edges[is_edge]] = nodes[is_edge]
            columns[entries.edges[is_edge]] = level.parents[is_edge]
        return rows, columns

    def _sparse_energy(self, c: np.ndarray) -> np.ndarray:
        """The same by elimination along the graph."""
        diagonal = self.entries[:, : len(self.rest)].T @ evaluate(self.terms, c)
        energy = -self._shift(c)
        is_definite = np.ones(len(c), dtype=bool)
        for level, found in zip(self.levels, self._moments(c), strict=True):
            precision, _, mean = found
            energy = energy + 0.5 * np.sum(np.log(precision), axis=0)
            energy = energy - 0.5 * np.sum(precision * mean**2, axis=0)
            least = ROUNDING * np.real(diagonal[level.nodes])
            is_definite &= np.all(np.real(precision) > least, axis=0)
        return np.where(is_definite, energy, np.inf)

    def _shift(self, c: np.ndarray) -> np.ndarray:
        """Energy of the origin, which the standardised variables do not count."""
        origin = np.append(self.center / self.scale, 0.0)
        square = np.zeros(self.entries.shape[1])
        square[: len(self.rest)] = 0.5 * origin[:-1] ** 2
        for level, entries in zip(self.levels, self.fill.levels, strict=True):
            products = origin[level.nodes][:, None] * origin[level.parents]
            is_edge = entries.edges < self.fill.num_entries
            square[entries.edges[is_edge]] = products[is_edge]
        by_term = self.entries @ square
        by_linear_term = self.linear @ origin[:-1]
        return by_term @ evaluate(self.terms, c) + by_linear_term @ evaluate(
            self.linear_terms, c
        )

    def _moments(self, c: Shared) -> list[Moments]:
        if not isinstance(c, np.ndarray) or not len(c):
            return self._eliminated(c)
        widest = max(len(level.child) for level in self.fill.levels)
        most = max(1, MAX_PRODUCTS // max(widest, self.fill.num_entries))
        parts = [self._eliminated(c[i : i + most]) for i in range(0, len(c), most)]
        if len(parts) == 1:
            return parts[0]
        return [
            Moments(
                *(np.concatenate(rows, axis=-1) for rows in zip(*level, strict=True))
            )
            for level in zip(*parts, strict=True)
        ]

    def _eliminated(self, c: Shared) -> list[Moments]:
        """Conditionals of all levels by elimination, one point a column."""
        xp = c.__array_namespace__()
        matrix = self.entries.T @ evaluate(self.terms, c)
        matrix = xp.concatenate([matrix, 0 * matrix[:1]])
        linear = self.linear.T @ evaluate(self.linear_terms, c)
        linear = xp.concatenate([linear, 0 * linear[:1]])
        size = len(self.rest)
        least = LEAST_PIVOT * matrix[:size] + 1e-300
        found = []
        for level, level_fill in zip(self.levels, self.fill.levels, strict=True):
            precision = _floored(xp, matrix[level.nodes], least[level.nodes])
            edges = matrix[level_fill.edges]
            gain = edges / precision[:, None]
            own = linear[level.nodes]
            found.append(Moments(precision, gain, own / precision))
            if len(level_fill.child):
                matrix = _less_products(matrix, level_fill, gain, edges)
                parents = level.parents[level.child, level.slot]
                shift = gain[level.child, level.slot] * own[level.child]
                linear = _less(linear, parents, level.updated, level.starts, shift)
        return found


def _less_products(
    matrix: Shared, level: LevelFill, gain: Shared, edges: Shared
) -> Shared:
    products = gain[level.child, level.first] * edges[level.child, level.second]
    return _less(matrix, level.target, level.updated, level.starts, products)


def _less(
    rows: Shared,
    target: Shared,
    updated: Shared,
    starts: Shared,
    values: Shared,
) -> Shared:
    """Rows less the values of each target, which are sorted by it."""
    if not isinstance(rows, np.ndarray):
        return rows.at[target].add(-values)
    rows[updated] -= np.add.reduceat(values, starts, axis=0)
    return rows


def _floored(xp: Shared, raw: Shared, least: Shared) -> Shared:
    """Positive precisions; exponentially close to the raw ones above the least."""
    scaled = raw / least - 1.0
    is_large = xp.real(scaled) > 30
    soft = xp.log1p(xp.exp(xp.where(is_large, 0.0, scaled)))
    return xp.where(is_large, raw, least * (0.5 + soft))

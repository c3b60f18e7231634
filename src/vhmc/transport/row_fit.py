r"""Fit rows of natural parameters: one small least-squares problem per variable.

The gradient along a variable is linear in its natural parameters,

$$\partial_k U = d_k(c) r_k + \sum_a e_{ka}(c) r_a - h_k(c),$$

each of which is a linear combination of functions of the hubs $c$. Errors count in
units of the variable's conditional width. The precision $d_k$ has weights that are not
negative, so that it is positive at all hubs. All variables of a level are one batch.
"""

import functools
import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from vhmc.transport.influence import MAX_ERROR, log_capped

REWEIGHTINGS = 3
NUM_REFINEMENTS = 2
LEAST_VARIANCE = 1e-3
MAX_BATCH = 2**24
"""Numbers in the designs of the variables that are fitted together."""
SMALL_BATCH = 2**19
"""The same of families that are tried together: they should stay in the cache."""


class Rows(NamedTuple):
    """The problems of some variables, one point a row of each.

    columns: neighbours, padded with zeros, and the variable itself last, standardised;
        of shape (variable, point, column).
    right: gradients along the variables, of shape (variable, point).
    shared: hubs to which both the variable and the column are linked, of shape
        (variable, column, hub); None if every entry may depend on all hubs.
    """

    columns: np.ndarray
    right: np.ndarray
    shared: np.ndarray | None = None

    def where(self, chosen: np.ndarray | slice | list[int]) -> "Rows":
        """Some of the variables."""
        shared = None if self.shared is None else self.shared[chosen]
        return Rows(self.columns[chosen], self.right[chosen], shared)

    def without_padding(self) -> "Rows":
        """The same problems less the columns that are zero in all of them."""
        is_used = np.any(self.columns != 0, axis=(0, 1))
        is_used[-1] = True
        shared = None if self.shared is None else self.shared[:, is_used]
        return Rows(self.columns[:, :, is_used], self.right, shared)


class RowFits(NamedTuple):
    """Natural parameters of some variables, with what they leave at all points.

    slopes: of shape (variable, function, column).
    linear: of shape (variable, function).
    rest: what is left of the gradients, of shape (variable, point).
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


def gathered(white: np.ndarray, pulled: np.ndarray, table: np.ndarray) -> Rows:
    """Rows of variables with these columns.

    white: standardised variables, one a row, and a last row of zeros.
    pulled: gradients along the variables, one a row.
    table: columns by variable, that of the variable itself last; padded with the index
        of the row of zeros.
    """
    return Rows(white[table].transpose(0, 2, 1), pulled[table[:, -1]])


class Allowed(NamedTuple):
    """Which functions each natural parameter may have.

    slopes: of shape (variable, function, column).
    linear: of shape (variable, function).
    """

    slopes: np.ndarray
    linear: np.ndarray

    def where(self, chosen: slice) -> "Allowed":
        """Those of some of the variables."""
        return Allowed(self.slopes[chosen], self.linear[chosen])


class Family(NamedTuple):
    """Functions that the natural parameters of variables are combinations of.

    phi, psi: values of the functions for precision and linear part, one a row.
    ridge: of the fit.
    """

    phi: np.ndarray
    psi: np.ndarray
    ridge: float


def fit_rows(
    rows: Rows,
    phi: np.ndarray,
    psi: np.ndarray,
    weight: np.ndarray,
    ridge: float,
    allowed: Allowed | None = None,
) -> RowFits:
    """Weighted least squares, reweighted by the conditional variances it finds.

    phi, psi: values of the functions for precision and linear part, one a row.
    weight: of the points; zero leaves a point out of the fit.
    allowed: functions that may be used; all if it is None.
    """
    if not len(rows.right):
        none = np.zeros((0, len(weight)))
        slopes = np.zeros((0, len(phi), rows.columns.shape[2]))
        return RowFits(slopes, np.zeros((0, len(psi))), none, none)
    size = rows.columns.shape[2] * len(phi) + len(psi)
    most = max(1, MAX_BATCH // (size * len(weight)))
    parts = []
    for i in range(0, len(rows.right), most):
        some = slice(i, i + most)
        may = None if allowed is None else allowed.where(some)
        family = Family(phi, psi, ridge)
        parts.append(_fit_batch(rows.where(some), [family], weight, may))
    columns = zip(*parts, strict=True)
    return RowFits(*(np.concatenate(column) for column in columns))


def fit_families(
    rows: Rows, families: Sequence[Family], weight: np.ndarray
) -> Iterator[RowFits]:
    """Fits of the same rows by each family, in order.

    Families of equal size are one batch: a search fits many small problems, which take
    less time than the calls that solve them.
    """
    begin = 0
    while begin < len(families):
        first = families[begin]
        size = rows.columns.shape[2] * len(first.phi) + len(first.psi)
        most = max(1, SMALL_BATCH // max(size * rows.right.size, 1))
        batch = list(
            itertools.takewhile(
                functools.partial(_is_alike, first), families[begin : begin + most]
            )
        )
        begin += len(batch)
        if len(batch) == 1 or not len(rows.right):
            for phi, psi, ridge in batch:
                yield fit_rows(rows, phi, psi, weight, ridge)
            continue
        fits = _fit_batch(rows, batch, weight)
        for i in range(len(batch)):
            mine = slice(i * len(rows.right), (i + 1) * len(rows.right))
            yield RowFits(*(part[mine] for part in fits))


def _is_alike(one: Family, other: Family) -> bool:
    """Whether two families have the same number of functions."""
    return len(one.phi) == len(other.phi) and len(one.psi) == len(other.psi)


def _fit_batch(
    rows: Rows,
    families: list[Family],
    weight: np.ndarray,
    allowed: Allowed | None = None,
) -> RowFits:
    """Fits of all rows by one family after the other, which are of equal size.

    allowed: functions that may be used, of a single family.
    """
    num_rows, num_points, size = rows.columns.shape
    number = len(families) * num_rows
    phi, psi = (np.stack(values) for values in list(zip(*families, strict=True))[:2])
    ridge = np.repeat([family.ridge for family in families], num_rows)[:, None]
    right = np.tile(rows.right, (len(families), 1))
    # By family, variable, point, function and column.
    products = phi.transpose(0, 2, 1)[:, None, :, :, None] * rows.columns[:, :, None, :]
    constant = np.repeat(-psi.transpose(0, 2, 1), num_rows, axis=0)
    if allowed is not None:
        # A column of zeros gets the weight zero.
        products = products * allowed.slopes[:, None]
        constant = constant * allowed.linear[:, None]
    design = np.concatenate(
        [products.reshape(number, num_points, -1), constant], axis=2
    )
    square = rows.right**2
    middle = np.median(square[:, weight > 0], axis=1, keepdims=True)
    trust = np.tile(weight / (middle + 1e-12 + square), (len(families), 1))
    num_slopes = phi.shape[1] * size
    is_precision = np.zeros(design.shape[2], dtype=bool)
    is_precision[size - 1 : num_slopes : size] = True
    for _ in range(REWEIGHTINGS):
        weights = _solved(design, right, trust, ridge, is_precision)
        rest = right - np.matmul(design, weights[..., None])[..., 0]
        slopes = weights[:, :num_slopes].reshape(number, -1, size)
        precision = slopes[:, :, -1].reshape(len(families), num_rows, -1) @ phi
        variance = np.maximum(precision.reshape(number, -1), LEAST_VARIANCE)
        trust = weight / variance / (1 + rest**2 / variance / MAX_ERROR)
    return RowFits(slopes, weights[:, num_slopes:], rest, variance)


def _solved(
    design: np.ndarray,
    right: np.ndarray,
    trust: np.ndarray,
    ridge: np.ndarray,
    is_positive: np.ndarray,
) -> np.ndarray:
    """Ridge solutions; weights that must be positive are dropped where they are not.

    Columns are scaled by their size at the points as these are trusted, or a ridge
    would rule out functions that are huge at a few points far out.
    """
    weighted = design * trust[..., None]
    matrix = np.matmul(design.transpose(0, 2, 1), weighted)
    target = np.matmul(right[:, None, :], weighted)[:, 0]
    diagonal = np.arange(matrix.shape[1])
    unit = np.sqrt(matrix[:, diagonal, diagonal])
    unit = np.where(unit > 0, unit, 1.0)
    matrix = matrix / unit[:, :, None] / unit[:, None, :]
    matrix[:, diagonal, diagonal] = 1.0 + ridge
    target = target / unit
    weights = _solve(matrix, target)
    is_used = np.ones_like(target)
    while True:
        is_wrong = is_positive & (weights < 0)
        wrong = np.flatnonzero(is_wrong.any(axis=1))
        if not len(wrong):
            break
        worst = np.argmin(np.where(is_wrong, weights, 0.0)[wrong], axis=1)
        matrix[wrong, worst, :] = matrix[wrong, :, worst] = 0.0
        matrix[wrong, worst, worst] = 1.0
        target[wrong, worst] = 0.0
        weights[wrong] = _solve(matrix[wrong], target[wrong])
        weights[wrong, worst] = 0.0
        is_used[wrong, worst] = 0.0
    # Iterative refinement: elimination later amplifies what is left.
    for _ in range(NUM_REFINEMENTS):
        left = right - np.matmul(design, (weights / unit)[..., None])[..., 0]
        missing = np.matmul(left[:, None, :], weighted)[:, 0] / unit - ridge * weights
        weights = weights + _solve(matrix, missing * is_used)
    return weights / unit


def _solve(matrix: np.ndarray, target: np.ndarray) -> np.ndarray:
    try:
        return np.linalg.solve(matrix, target[..., None])[..., 0]
    except np.linalg.LinAlgError:  # too small a ridge for columns that are alike
        matrix = matrix + 1e-12 * np.eye(matrix.shape[-1])
        return np.linalg.solve(matrix, target[..., None])[..., 0]

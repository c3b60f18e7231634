"""Predict one entry of the gradient from a few parameters, and judge it held out."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg import blas, lapack

LENGTH = 3.0
"""Standard deviations over which a function of one parameter changes."""

LINEAR = 0.1
"""Share of a straight line in a function of one parameter."""

RIDGES = 1e-6, 1e-3, 3e-2

MOST_POINTS = 300
"""Fitted at a time: more are divided, as the cost is cubic."""

FEW_POINTS = 150
"""Enough to choose among parameters."""

MAX_ERROR = 1.0
"""At which the error of a point is capped: a few far out must not decide."""


class Errors(NamedTuple):
    """Errors of predictions at points held out.

    relative: to the values.
    standard: to what the regression expects, given the points around.
    """

    relative: np.ndarray
    standard: np.ndarray


class Kernels:
    r"""Kernel matrices of a table, $k = \prod_j k_j$ over some of its columns.

    $k_j(x, y) = 1 + a x_j y_j + e^{-(x_j - y_j)^2 / 2 l^2}$: so functions are sums and
    products of smooth functions of each column.

    table: standardised parameters, of shape (n, dim).
    """

    def __init__(self, table: np.ndarray):
        self.table = table
        number = len(table)
        self.parts = [
            slice(first, None, -(-number // MOST_POINTS))
            for first in range(-(-number // MOST_POINTS))
        ]
        self.few = slice(None, None, -(-number // FEW_POINTS))
        self._factors: dict[int, np.ndarray] = {}

    def of_few(self, columns: Sequence[int]) -> np.ndarray:
        """Matrix of few points; the factors are kept, as all entries need them."""
        for j in columns:
            if j not in self._factors:
                self._factors[j] = _factor(self.table[self.few, j])
        return _product([self._factors[j] for j in columns])

    def of_part(self, columns: Sequence[int], part: slice) -> np.ndarray:
        """Matrix of a part of the points."""
        return _product([_factor(self.table[part, j]) for j in columns])


class HeldOut:
    r"""Errors of predicting one entry of the gradient from some parameters.

    Each point is predicted from the others by kernel regression, in closed form. Errors
    are relative to the spread $s$ of the values, and to the size $t$ of the value
    itself beyond that: by $(s^2 + t^2)^{1/2}$.

    kernels: of the standardised parameters.
    values: of the entry, at all points.
    """

    def __init__(self, kernels: Kernels, values: np.ndarray):
        self._kernels = kernels
        middle = np.median(values)
        spread = 1.4826 * np.median(np.abs(values - middle))
        self.values = (values - middle) / (spread or 1.0)
        self._errors: dict[tuple[int, ...], Errors] = {}

    def errors(self, columns: Sequence[int]) -> Errors:
        """Errors of all points, predicted from these columns."""
        key = tuple(sorted(columns))
        if key not in self._errors:
            errors = np.empty((2, len(self.values)))
            for part in self._kernels.parts:
                kernel = self._kernels.of_part(key, part)
                fit = _leave_one_out(kernel, self.values[part], RIDGES[:2])
                errors[:, part] = fit
            self._errors[key] = Errors(*errors)
        return self._errors[key]

    def size(self, columns: Sequence[int]) -> float:
        """Root mean square of the errors, capped."""
        return _size(self.errors(columns))

    def quick_size(self, columns: Sequence[int]) -> float:
        """The same from few points, also where much is not explained."""
        kernel, values = self._kernels.of_few(columns), self.values[self._kernels.few]
        return _size(_leave_one_out(kernel, values, RIDGES))


def _leave_one_out(
    kernel: np.ndarray, values: np.ndarray, ridges: Sequence[float]
) -> Errors:
    """Errors for the best ridge, which grows with the size of the values."""
    weight = 1 + values**2
    candidates = []
    for ridge in ridges:
        factor, _ = lapack.dpotrf(kernel + np.diag(ridge * weight), lower=1)
        inverse, failure = lapack.dpotri(factor, lower=1)
        if not failure:
            solution = blas.dsymv(1.0, inverse, values, lower=1)
            inverse_variance = np.diag(inverse)
            relative = solution / inverse_variance / np.sqrt(weight)
            candidates.append(Errors(relative, solution / np.sqrt(inverse_variance)))
    if not candidates:
        return Errors(*np.full((2, len(values)), MAX_ERROR))
    return min(candidates, key=_size)


def _size(errors: Errors) -> float:
    square = np.minimum(errors.relative**2, MAX_ERROR**2)
    return float(np.sqrt(np.mean(square)))


def _factor(column: np.ndarray) -> np.ndarray:
    gap = (column[:, None] - column) / LENGTH
    return 1 + LINEAR * np.outer(column, column) + np.exp(-0.5 * gap**2)


def _product(factors: Sequence[np.ndarray]) -> np.ndarray:
    kernel = factors[0].copy()
    for factor in factors[1:]:
        kernel *= factor
    return kernel / np.median(np.diag(kernel))

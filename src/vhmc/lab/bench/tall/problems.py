"""Logistic regressions from thousands of rows to ten million."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from vhmc._types import Scalar, Vector
from vhmc.evaluation.target import Target
from vhmc.lab.data.a9a import load_a9a
from vhmc.lab.data.covtype import load_covtype
from vhmc.lab.data.dataset import Dataset, labels
from vhmc.lab.data.nycflights import load_nycflights
from vhmc.lab.models.logistic import log_likelihood, logistic, projected
from vhmc.lab.models.rows import RowModel, normal_prior
from vhmc.models.rows.from_rows import from_rows

SIMULATED_COLUMNS = 11


class TallProblem(NamedTuple):
    """A design with an intercept, and labels 0 and 1.

    note: what the data are.
    """

    name: str
    x: np.ndarray
    y: np.ndarray
    note: str

    @property
    def model(self) -> RowModel:
        """For methods that run inside JAX."""
        return logistic(self.x, self.y)

    def target(self) -> Target:
        """For ours, every call counted."""
        start = np.zeros(self.x.shape[1])
        return from_rows(_likelihood, normal_prior, {"x": self.x, "y": self.y}, start)


def _likelihood(theta: Vector, rows: dict) -> Scalar:
    return log_likelihood(theta, (rows["x"], rows["y"]))


def a9a() -> TallProblem:
    """The paper's: 50 random projections, whitened, and an intercept."""
    data = load_a9a()
    return _problem("a9a", projected(data.x, 50, 0), data)


def nycflights() -> TallProblem:
    """42 standardised columns and an intercept."""
    data = load_nycflights()
    return _problem("nycflights", design(data.x), data)


def covtype() -> TallProblem:
    """Standardised columns and an intercept, without the two redundant ones.

    Nor the six soil types that occur with one label only: nothing but the prior bounds
    their coefficients, which is another problem than tall data.
    """
    data = load_covtype()
    assert data.y is not None
    return _problem("covtype", design(data.x[:, has_both_labels(data.x, data.y)]), data)


def simulated(num_rows: int) -> TallProblem:
    """Ten normal features and an intercept."""
    rng = np.random.default_rng(num_rows)
    x = rng.standard_normal((num_rows, SIMULATED_COLUMNS))
    x[:, 0] = 1.0
    logits = x @ np.linspace(-0.5, 0.5, SIMULATED_COLUMNS)
    y = labels(rng, logits)
    return TallProblem(f"simulated-{num_rows}", x, y, "simulated")


PROBLEMS: dict[str, Callable[[], TallProblem]] = {
    "a9a": a9a,
    "nycflights": nycflights,
    "covtype": covtype,
}


def make(name: str) -> TallProblem:
    """A problem by its name; `simulated-100000` has so many rows."""
    if name in PROBLEMS:
        return PROBLEMS[name]()
    kind, _, number = name.partition("-")
    if kind != "simulated" or not number.isdigit() or int(number) < 100:
        raise ValueError(
            f"problems are {', '.join(PROBLEMS)} and simulated-ROWS, got {name}"
        )
    return simulated(int(number))


def design(x: np.ndarray) -> np.ndarray:
    """Standardised columns behind a column of ones; linear combinations are dropped."""
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    triangle = np.linalg.qr(z, mode="r")
    is_new = np.abs(np.diagonal(triangle)) > 1e-6 * np.sqrt(len(z))
    return np.concatenate([np.ones((len(z), 1)), z[:, is_new]], axis=1)


def has_both_labels(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Which columns are not zero for rows of either label."""
    is_there = x != 0
    number = is_there.sum(axis=0)
    ones = y @ is_there
    return (ones > 0) & (ones < number)


def _problem(name: str, x: np.ndarray, data: Dataset) -> TallProblem:
    assert data.y is not None
    return TallProblem(name, x, data.y, f"{data.kind}: {data.note}")


def log_density(problem: TallProblem) -> Callable[[Vector], Scalar]:
    """Of all rows, for other people's samplers."""
    potential = problem.model.potential
    return lambda theta: -potential(theta)

r"""Logistic regressions from thousands of rows to ten million, with exact moments.

The moments come from exact chains, with gradients as control variates. In coordinates
$u$ in which Laplace's Gaussian is standard, with $g = \nabla_u U$,
$E[g] = 0$ and $E[u g^\top] = I$ for any posterior (Stein). So

$$E[u] = E[u - g], \qquad E[u u^\top] = I + E[u (u - g)^\top],$$

and the right sides hardly vary if the posterior is close to a Gaussian: a few thousand
draws give a covariance that would otherwise take millions.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from vhmc._types import Scalar, Vector
from vhmc.evaluation.target import Target
from vhmc.lab.data.dataset import Dataset, labels
from vhmc.lab.data.labelled import load_a9a, load_covtype, load_nycflights
from vhmc.lab.experiments.truth import relative_error, started
from vhmc.lab.models.rows import (
    RowPotential,
    logistic,
    logistic_likelihood,
    normal_prior,
    projected,
)
from vhmc.models.rows.from_rows import from_rows
from vhmc.paper.laplace_guide import laplace

SIMULATED_COLUMNS = 11
CHAINS, BURN_IN = 16, 10
REM, REC = 0.01, 0.10
"""Relative errors of mean and covariance that a method must reach."""
LEAST_ROUNDS = 8
KNOWN = 0.05
"""Largest error of the reference, as a fraction of those errors."""


class TallProblem(NamedTuple):
    """A design with an intercept, and labels 0 and 1.

    note: what the data are.
    """

    name: str
    x: np.ndarray
    y: np.ndarray
    note: str

    @property
    def potential(self) -> RowPotential:
        """For methods that run inside JAX."""
        return logistic(self.x, self.y).potential

    def target(self) -> Target:
        """For ours, every evaluation counted."""
        start = np.zeros(self.x.shape[1])
        return from_rows(_likelihood, normal_prior, {"x": self.x, "y": self.y}, start)


def _likelihood(theta: Vector, rows: dict) -> Scalar:
    return logistic_likelihood(theta, (rows["x"], rows["y"]))


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

    Six soil types that occur with one label only are left out, too: only the prior
    bounds their coefficients, which is a problem of its own.
    """
    data = load_covtype()
    assert data.y is not None
    return _problem("covtype", design(data.x[:, has_both_labels(data.x, data.y)]), data)


def simulated(num_rows: int) -> TallProblem:
    """Ten normal features and an intercept."""
    rng = np.random.default_rng(num_rows)
    x = rng.standard_normal((num_rows, SIMULATED_COLUMNS))
    x[:, 0] = 1.0
    y = labels(rng, x @ np.linspace(-0.5, 0.5, SIMULATED_COLUMNS))
    return TallProblem(f"simulated-{num_rows}", x, y, "simulated")


PROBLEMS: dict[str, Callable[[], TallProblem]] = {
    f.__name__: f for f in (a9a, nycflights, covtype)
}


def make(name: str) -> TallProblem:
    """A problem by its name; `simulated-100000` has 100,000 rows."""
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
    """Which columns are non-zero in rows of both labels."""
    ones = y @ (x != 0)
    return (ones > 0) & (ones < np.count_nonzero(x, axis=0))


def _problem(name: str, x: np.ndarray, data: Dataset) -> TallProblem:
    assert data.y is not None
    return TallProblem(name, x, data.y, f"{data.kind}: {data.note}")


def log_density(problem: TallProblem) -> Callable[[Vector], Scalar]:
    """Log density of all rows, for other samplers."""
    potential = problem.potential
    return lambda theta: -potential(theta)


class Reference(NamedTuple):
    """Exact moments.

    mode: where Laplace's Gaussian is.
    rem, rec: errors of the reference itself: half the difference between the moments
        of two halves of the draws.
    """

    mean: np.ndarray
    covariance: np.ndarray
    mode: np.ndarray
    rem: float
    rec: float


def reference(problem: TallProblem, num_rounds: int, seed: int = 0) -> Reference:
    """Run sixteen chains until the moments are accurate or `num_rounds` are made."""
    target = problem.target()
    guide = laplace(target, target.start).guide
    rng = np.random.default_rng(seed)
    chain, state, mode, lower = started(rng, problem.potential, guide, CHAINS)
    state, _ = chain.advance(rng, state, BURN_IN)
    firsts, seconds = [], []
    for _ in range(num_rounds):
        state, _ = chain.advance(rng, state, 1)
        u = np.linalg.solve(lower, (np.asarray(state.theta) - mode).T).T
        gap = u - np.asarray(state.grad) @ lower
        firsts.append(gap.mean(axis=0))
        seconds.append(u.T @ gap / len(u))
        if len(firsts) < LEAST_ROUNDS:
            continue
        found = _reference(np.array(firsts), np.array(seconds), mode, lower)
        if found.rem <= KNOWN * REM and found.rec <= KNOWN * REC:
            break
    return found


def _reference(
    firsts: np.ndarray, seconds: np.ndarray, mode: np.ndarray, lower: np.ndarray
) -> Reference:
    def moments(part: slice) -> tuple[np.ndarray, np.ndarray]:
        first = firsts[part].mean(axis=0)
        second = np.eye(len(mode)) + seconds[part].mean(axis=0)
        second = (second + second.T) / 2 - np.outer(first, first)
        return mode + lower @ first, lower @ second @ lower.T

    halves = moments(slice(None, None, 2)), moments(slice(1, None, 2))
    rem, rec = (relative_error(*pair) / 2 for pair in zip(*halves, strict=True))
    return Reference(*moments(slice(None)), mode, rem, rec)

r"""A Poisson inversion: 64 coefficients of a membrane from 169 deflections.

The benchmark of Aristoff and Bangerth (2021):
$-\nabla \cdot (a \nabla u) = 10$ on the unit square, $u = 0$ on its boundary, $a$
constant on 8 x 8 cells with values $\theta$, bilinear elements on a 32 x 32 grid. The
deflection $u$ is measured at 13 x 13 points with errors of sd 0.05, and
$\log \theta_k$ has the log density $-\frac12 (\log \theta_k / 2)^2$ **in** $\theta_k$.
"""

import functools
import json
from importlib import resources

import numpy as np
import scipy.linalg
import scipy.sparse

from vhmc.evaluation.target import Target
from vhmc.lab.bench.problem import Draws, Problem
from vhmc.lab.data.dataset import find_folder
from vhmc.models.from_forward import from_forward

NOISE_SD = 0.05
PRIOR_SD = 2.0
CELLS = 8
GRID = 32
SENSORS = 13
LOAD = 10.0
FILE = "poisson64.npz"
REFERENCE = "inversion.json"


class Membrane:
    """The forward model, by a banded Cholesky factor and its adjoint."""

    def __init__(self) -> None:
        side = GRID - 1
        element = _element_matrix()
        corner_x, corner_y = (part.ravel() for part in np.indices((GRID, GRID)))
        x, y = (
            corner[:, None] + np.array(steps)
            for corner, steps in ((corner_x, (0, 1, 0, 1)), (corner_y, (0, 0, 1, 1)))
        )
        is_inner = (x > 0) & (x < GRID) & (y > 0) & (y < GRID)
        # One number more stands for the boundary, where u is zero.
        self._nodes = np.where(is_inner, (x - 1) * side + (y - 1), side**2)
        width = GRID // CELLS
        self._cell = (corner_y // width) * CELLS + corner_x // width
        self._element = element
        self._size = side**2
        self._stiffness = self._stiffness_by_cell()
        self._load = np.full(self._size, LOAD / GRID**2)
        self._sensors = _sensors(side)
        self._last: tuple[np.ndarray, tuple[np.ndarray, np.ndarray]] | None = None

    def __call__(self, theta: np.ndarray) -> np.ndarray:
        """Deflections at the sensors."""
        return self._sensors @ self._solution(theta)[0]

    def vjp(self, theta: np.ndarray, cotangent: np.ndarray) -> np.ndarray:
        """Vector-Jacobian product: one solve more, with the same factor."""
        u, factor = self._solution(theta)
        solve = functools.partial(scipy.linalg.cho_solve_banded, check_finite=False)
        adjoint = solve((factor, True), self._sensors.T @ cotangent)
        left, right = (np.append(row, 0.0)[self._nodes] for row in (adjoint, u))
        by_element = np.sum((left @ self._element) * right, axis=1)
        return -np.bincount(self._cell, by_element, CELLS**2)

    def _solution(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        # The adjoint is asked for where the outputs were: one factor serves both.
        last = self._last
        if last is None or not np.array_equal(last[0], theta):
            band = (self._stiffness @ theta).reshape(-1, self._size)
            factor = scipy.linalg.cholesky_banded(band, lower=True, check_finite=False)
            u = scipy.linalg.cho_solve_banded(
                (factor, True), self._load, check_finite=False
            )
            last = self._last = theta.copy(), (u, factor)
        return last[1]

    def _stiffness_by_cell(self) -> scipy.sparse.csr_array:
        """Lower bands of the stiffness matrix, flat, as a linear map of theta."""
        row = np.repeat(self._nodes, 4, axis=1)
        column = np.tile(self._nodes, (1, 4))
        entry = np.tile(self._element.ravel(), (len(row), 1))
        cell = np.tile(self._cell[:, None], (1, 16))
        is_kept = (row < self._size) & (column < self._size) & (row >= column)
        row, column, entry, cell = (
            part[is_kept] for part in (row, column, entry, cell)
        )
        place = (row - column) * self._size + column
        shape = (GRID + 1) * self._size, CELLS**2
        return scipy.sparse.csr_array((entry, (place, cell)), shape=shape)


def _element_matrix() -> np.ndarray:
    """Stiffness of one square bilinear element, corners in the order of `Membrane`."""
    line = np.array([[1.0, -1.0], [-1.0, 1.0]])
    mass = np.array([[2.0, 1.0], [1.0, 2.0]]) / 6
    return np.kron(mass, line) + np.kron(line, mass)


def _sensors(side: int) -> np.ndarray:
    """Values at the sensors as a linear map of the inner nodes' values."""
    at = np.arange(1, SENSORS + 1) / (SENSORS + 1) * GRID
    hats = np.maximum(1 - np.abs(at[:, None] - np.arange(1, side + 1)), 0.0)
    return np.kron(hats, hats)


def target() -> Target:
    """The posterior of log theta, which has a normal prior of mean 4 and sd 2."""
    membrane = Membrane()

    def vjp(log_theta: np.ndarray, cotangent: np.ndarray) -> np.ndarray:
        theta = np.exp(log_theta)
        return theta * membrane.vjp(theta, cotangent)

    return from_forward(
        lambda log_theta: membrane(np.exp(log_theta)),
        measurements(),
        NOISE_SD,
        prior=(np.full(CELLS**2, PRIOR_SD**2), PRIOR_SD),
        vjp=vjp,
        names={"log_theta": (CELLS**2,)},
    )


def measurements() -> np.ndarray:
    """The deflections, from the folder that VHMC_DATA names."""
    with np.load(find_folder("VHMC_DATA", FILE) / FILE) as file:
        return file["measurements"]


def problem() -> Problem:
    """The posterior with its moments, made by benchmarks/poisson_reference.py."""
    text = resources.files(__package__).joinpath(REFERENCE).read_text()
    moments = json.loads(text)
    mean, sd = (np.array(moments[kind]) for kind in ("mean", "sd"))
    names = tuple(f"log_theta[{i + 1}]" for i in range(len(mean)))
    return Problem("poisson64", target, quantities, names, mean, sd)


def quantities(draws: Draws) -> np.ndarray:
    """Log coefficients, of named draws of any leading shape."""
    return np.asarray(draws["log_theta"])

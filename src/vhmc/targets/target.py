"""What a front end makes of a model, and the count of what the model was asked."""

import abc
import threading
from typing import Any, NamedTuple

import jax
import numpy as np

from vhmc._types import Potential
from vhmc.targets.parameters import Parameters


class Evaluations(NamedTuple):
    r"""True energies $U = -\log p$ and their gradients, one row a point."""

    energy: np.ndarray
    grad: np.ndarray


class Counter:
    """A number that only grows, from whichever thread runs the model."""

    def __init__(self):
        self._total = 0
        self._lock = threading.Lock()

    def add(self, number: Any) -> None:
        """Count this many calls of the model."""
        with self._lock:
            self._total += int(number)

    @property
    def total(self) -> int:
        """Calls so far, those still under way in JAX included."""
        jax.effects_barrier()
        return self._total


class Target(abc.ABC):
    """A posterior on an unconstrained vector, with every call of the model counted.

    One value, one gradient or both together count as one call. All ways to the model
    (`evaluate`, `hessian`, `potential`) go through the same counter.
    """

    def __init__(self, parameters: Parameters):
        self.parameters = parameters
        self._counter = Counter()

    @property
    def dim(self) -> int:
        """Length of the unconstrained vector."""
        return self.parameters.dim

    @property
    def start(self) -> np.ndarray:
        """The user's initial values as an unconstrained vector."""
        return self.parameters.start

    @property
    def num_evaluations(self) -> int:
        """Calls of the model since the target was made."""
        return self._counter.total

    def charge(self, number: int) -> None:
        """Count calls that were made by a way around the counter."""
        self._counter.add(number)

    def evaluate(self, thetas: np.ndarray) -> Evaluations:
        """True energies and gradients at the rows of `thetas`; one call a row."""
        thetas = np.asarray(thetas, dtype=float)
        if thetas.ndim != 2 or thetas.shape[1] != self.dim:
            raise ValueError(
                f"points must have shape (n, {self.dim}), got {thetas.shape}"
            )
        return self._evaluate(thetas)

    @abc.abstractmethod
    def _evaluate(self, thetas: np.ndarray) -> Evaluations:
        """Evaluate and count."""

    @abc.abstractmethod
    def hessian(self, theta: np.ndarray) -> np.ndarray:
        """Matrix of second derivatives of the energy; says how it is counted."""

    @property
    @abc.abstractmethod
    def hessian_price(self) -> int:
        """Calls of the model that `hessian` counts."""

    @property
    @abc.abstractmethod
    def potential(self) -> Potential:
        """The true energy as something JAX can trace and differentiate once."""

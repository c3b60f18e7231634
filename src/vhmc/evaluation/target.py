"""What a front end makes of a model, and the count of what the model was asked."""

import abc
import threading
from typing import Any, NamedTuple

import jax
import numpy as np

from vhmc._types import Potential
from vhmc.evaluation.guard import NO_DENSITY, Guarded, complaint, is_usable
from vhmc.evaluation.space import Space, in_words


class Evaluations(NamedTuple):
    r"""True energies $U = -\log p$ and their gradients, one row a point.

    reason: why there is none at a point, where the energy is infinite and the gradient
        zero; empty everywhere else.
    """

    energy: np.ndarray
    grad: np.ndarray
    reason: np.ndarray

    @property
    def is_answered(self) -> np.ndarray:
        """Where the model said what the density is, be it zero.

        Elsewhere it failed: there a point is rejected, and nothing is known.
        """
        return (self.reason == "") | (self.reason == NO_DENSITY)


class Answers(NamedTuple):
    """What a model said, unchecked: log densities, their gradients, and reasons."""

    value: np.ndarray
    grad: np.ndarray
    reason: list[str]


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

    parameters: names, shapes and constraints.
    route: how the model is evaluated, in a few words.
    price: calls of the model for the value and the gradient at one point.
    is_serial: whether a round is answered point by point, one after the other.
    """

    route: str
    price: int = 1
    is_serial: bool = False

    def __init__(self, parameters: Space):
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
        """True energies and gradients at the rows of `thetas`; `price` calls a row.

        Where the model raises, takes too long or has no finite answer, the energy is
        infinite and the reason is given; nothing is raised.
        """
        thetas = np.asarray(thetas, dtype=float)
        if thetas.ndim != 2 or thetas.shape[1] != self.dim:
            raise ValueError(
                f"points must have shape (n, {self.dim}), got {thetas.shape}"
            )
        self._counter.add(self.price * len(thetas))
        answers, failure = Guarded(self._evaluate)(thetas)
        if failure:
            nothing = np.full(len(thetas), np.nan), np.full_like(thetas, np.nan)
            answers = Answers(*nothing, [failure] * len(thetas))
        value, grad, reason = answers
        is_known = is_usable(value, grad)
        is_known &= np.array([not known for known in reason], dtype=bool)
        reason = [
            "" if is_known[i] else reason[i] or complaint(value[i], grad[i])
            for i in range(len(thetas))
        ]
        return Evaluations(
            np.where(is_known, -value, np.inf),
            np.where(is_known[:, None], -grad, 0.0),
            np.array(reason, dtype=object),
        )

    def fingerprint(self) -> str:
        """The same for the same model and data, without a call; empty if unknown."""
        return ""

    @abc.abstractmethod
    def _evaluate(self, thetas: np.ndarray) -> Answers:
        """Log densities and gradients; whatever it raises is the reason for all."""

    @abc.abstractmethod
    def hessian(self, theta: np.ndarray) -> np.ndarray:
        """Matrix of second derivatives of the energy; says how it is counted."""

    @property
    @abc.abstractmethod
    def hessian_price(self) -> int:
        """Points' worth of calls that `hessian` counts."""

    @property
    @abc.abstractmethod
    def potential(self) -> Potential:
        """The true energy as something JAX can trace and differentiate once."""

    def __repr__(self) -> str:
        names = in_words(self.parameters.shapes)
        return f"Target({names}: dim {self.dim}, {self.route})"

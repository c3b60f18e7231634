"""The interface between the sampler and any model, with evaluations counted."""

import abc
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from vhmc._types import Potential
from vhmc.evaluation.observable import Observable
from vhmc.evaluation.space import Space, in_words
from vhmc.evaluation.user_code import NO_DENSITY, Guarded, complaint, is_usable


class Evaluations(NamedTuple):
    r"""True energies $U = -\log p$ and their gradients at a batch of points.

    energy: of shape (n,); infinite where the model gave no finite answer.
    grad: of shape (n, dim); zero where the model gave no finite answer.
    reason: why there is no finite answer, in words; empty where there is one.
    outputs: of the forward model, one row a point, NaN where there are none; None if
        the target has no `observable`.
    """

    energy: np.ndarray
    grad: np.ndarray
    reason: np.ndarray
    outputs: np.ndarray | None = None

    @property
    def is_answered(self) -> np.ndarray:
        """Where the density is known, including where it is zero.

        Elsewhere the model failed: the point is rejected and its density is unknown.
        """
        return (self.reason == "") | (self.reason == NO_DENSITY)

    def where(self, chosen: np.ndarray | slice) -> "Evaluations":
        """Some of the points."""
        energy, grad, reason, outputs = self
        outputs = None if outputs is None else outputs[chosen]
        return Evaluations(energy[chosen], grad[chosen], reason[chosen], outputs)


def joined(parts: Sequence[Evaluations]) -> Evaluations:
    """Evaluations one after the other."""
    energy, grad, reason = (
        np.concatenate([part[place] for part in parts]) for place in range(3)
    )
    outputs = [part.outputs for part in parts if part.outputs is not None]
    return Evaluations(
        energy, grad, reason, np.concatenate(outputs) if outputs else None
    )


class Answers(NamedTuple):
    """What a model returned at a batch of points, before any check.

    value: log densities of shape (n,).
    grad: their gradients, of shape (n, dim).
    reason: why there is no answer, for each point; empty where there is one.
    outputs: as in `Evaluations`.
    """

    value: np.ndarray
    grad: np.ndarray
    reason: list[str]
    outputs: np.ndarray | None = None


class Counter:
    """A thread-safe count of evaluations."""

    def __init__(self):
        self._total = 0
        self._lock = threading.Lock()

    def add(self, number: Any) -> None:
        """Count this many evaluations."""
        with self._lock:
            self._total += int(number)

    @property
    def total(self) -> int:
        """Evaluations so far; waits for those that JAX has under way."""
        jax.effects_barrier()
        return self._total


def improper(names: Sequence[str]) -> str:
    """What a target says of its constants if priors have no integral; else nothing.

    names: of the parameters with such priors.
    """
    if not names:
        return ""
    return (
        f"the evidence means nothing: the prior of {', '.join(names)} is improper, so "
        "that its constant is arbitrary"
    )


class Target(abc.ABC):
    """A posterior on an unconstrained vector, with every evaluation counted.

    A front end returns one of the two kinds in `vhmc.models`: `TracedTarget` for a
    density that JAX can trace, `HostTarget` for any other. Both take a `Space`.

    One value, one gradient or both together count as one evaluation. `evaluate`,
    `hessian` and `potential` share one counter.

    parameters: names, shapes and transforms of the parameters.
    route: how the model is evaluated, in a few words.
    price: evaluations for the value and the gradient at one point; more than one where
        gradients are finite differences.
    is_serial: whether the points of a batch are evaluated one after the other.
    is_hand_written: whether the gradient is the user's own, to be checked before the
        search.
    observable: data and prior of a forward model with normal errors, whose outputs are
        then part of every answer; None for other models.
    constants: why the integral of the density means nothing, in a sentence; empty if it
        is the evidence, or that of a density which the user has written.
    """

    route: str
    price: int = 1
    is_serial: bool = False
    is_hand_written: bool = False
    observable: Observable | None = None
    constants: str = ""

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
        """Evaluations since the target was made."""
        return self._counter.total

    def charge(self, number: int) -> None:
        """Count evaluations that bypassed the counter, as in a loop inside JAX."""
        self._counter.add(number)

    def evaluate(self, thetas: np.ndarray) -> Evaluations:
        """True energies and gradients at the rows of `thetas`.

        Counts `price` evaluations per row. Where the model raises, takes too long or
        has no finite answer, the energy is infinite and the reason says why; the
        model's exceptions are not passed on.
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
        value, grad, reason, outputs = answers
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
            self._known_outputs(outputs, is_known),
        )

    def _known_outputs(
        self, outputs: np.ndarray | None, is_known: np.ndarray
    ) -> np.ndarray | None:
        """The outputs where the model answered, if there are to be any."""
        if self.observable is None:
            return None
        if outputs is None:
            outputs = np.full((len(is_known), len(self.observable.data)), np.nan)
        return np.where(is_known[:, None], outputs, np.nan)

    def draw_prior(self, rng: np.random.Generator, number: int) -> np.ndarray:
        """Unconstrained draws of the prior, at most so many, at no evaluation.

        Nothing where the prior is not known, or cannot be drawn from.
        """
        drawn, _ = Guarded(self.parameters.draw_prior)(rng, number)
        if drawn is None:
            return np.zeros((0, self.dim))
        return drawn[np.isfinite(drawn).all(axis=1)]

    @property
    def traced_energy(self) -> Potential | None:
        """The true energy for JAX to trace, uncounted; None for other models."""
        return None

    def fingerprint(self) -> str:
        """Digest of the model and its data, at no evaluation; empty if unknown."""
        return ""

    @abc.abstractmethod
    def _evaluate(self, thetas: np.ndarray) -> Answers:
        """Log densities and gradients; an exception is the reason for all points."""

    @abc.abstractmethod
    def hessian(self, theta: np.ndarray) -> np.ndarray:
        """Second derivatives of the energy; counted as `hessian_price` points."""

    @property
    @abc.abstractmethod
    def hessian_price(self) -> int:
        """Points that one `hessian` counts as, each at `price` evaluations."""

    @property
    @abc.abstractmethod
    def potential(self) -> Potential:
        """The true energy as a function that JAX can trace and differentiate once."""

    def __repr__(self) -> str:
        names = in_words(self.parameters.shapes)
        return f"Target({names}: dim {self.dim}, {self.route})"

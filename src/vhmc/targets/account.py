"""A budget of calls of the model, and everything that was bought with it."""

from typing import Any, NamedTuple

import numpy as np

from vhmc.targets.target import Evaluations, Target


class Paid(NamedTuple):
    """Evaluated points: rows in the order in which they were paid for.

    is_finite: whether the model gave a finite energy and gradient there.
    phase: what each was bought for.
    reason: why the model gave none; empty where it did.
    """

    theta: np.ndarray
    energy: np.ndarray
    grad: np.ndarray
    is_finite: np.ndarray
    phase: np.ndarray
    reason: np.ndarray


class RunFailure(RuntimeError):
    """A run cannot go on.

    paid: every point at which the model was asked, of the default sampler.
    trained: what was paid for by the paper's algorithm, a replica an entry.
    """

    def __init__(self, message: str, *, paid: Paid | None = None, trained: Any = ()):
        super().__init__(message)
        self.paid, self.trained = paid, trained


class Overdrawn(RuntimeError):
    """A phase asked for more calls than the budget has left: a defect of ours."""


GUESSES = "search", "scouting", "settling", "warm start"
"""Phases that ask where the posterior might not be: there failures are no surprise."""
FEWEST = 4
"""Points of a round below which its failures say little."""


class Account:
    """The one door between a run and its model.

    Budgets are counted in calls of the model, the rest in points: a point is one call
    unless its gradient is made of differences.

    target: the model.
    budget: calls of the model that may be made from now on.
    """

    def __init__(self, target: Target, budget: int):
        self.target = target
        self.budget = budget
        self.costs: dict[str, int] = {}
        self._before = target.num_evaluations
        self._rows: list[tuple[np.ndarray, Evaluations, str]] = []

    @property
    def spent(self) -> int:
        """Calls made so far, by the model's own count."""
        return self.target.num_evaluations - self._before

    @property
    def left(self) -> int:
        """Points that may still be asked for."""
        return (self.budget - self.spent) // self.target.price

    def evaluate(self, thetas: np.ndarray, phase: str) -> Evaluations:
        """True energies and gradients; infinite energies where the model has none.

        Raises `RunFailure` if the model fails at most points of a round.
        """
        self._check(len(thetas), phase)
        answer = self.target.evaluate(thetas)
        self._book(phase, len(thetas) * self.target.price)
        self._rows.append((np.array(thetas), answer, phase))
        num_failed = int(np.sum(answer.reason != ""))
        if phase not in GUESSES and num_failed > len(thetas) / 2 >= FEWEST / 2:
            raise RunFailure(
                f"the model failed at {num_failed} of {len(thetas)} points of a round "
                f"({phase}), most often: {most_common(answer.reason)}",
                paid=self.paid,
            )
        return answer

    def hessian(self, theta: np.ndarray, phase: str) -> np.ndarray:
        """Second derivatives of the energy, at the target's price."""
        self._check(self.target.hessian_price, phase)
        before = self.spent
        answer = self.target.hessian(theta)
        self._book(phase, self.spent - before)
        return answer

    @property
    def paid(self) -> Paid:
        """All points evaluated so far."""
        dim = self.target.dim
        if not self._rows:
            nothing = np.zeros(0)
            points = np.zeros((0, dim))
            return Paid(points, nothing, points, nothing > 0, nothing, nothing)
        theta = np.concatenate([row[0] for row in self._rows])
        energy, grad, reason = (
            np.concatenate(part)
            for part in zip(*(row[1] for row in self._rows), strict=True)
        )
        phase = np.concatenate([np.repeat(row[2], len(row[0])) for row in self._rows])
        return Paid(theta, energy, grad, np.isfinite(energy), phase, reason)

    def _check(self, price: int, phase: str) -> None:
        if price > self.left:
            raise Overdrawn(f"{phase} asked for {price} points of {self.left} left")

    def _book(self, phase: str, number: int) -> None:
        self.costs[phase] = self.costs.get(phase, 0) + number


def most_common(reasons: np.ndarray) -> str:
    """The reason that is given most often."""
    kinds, counts = np.unique(reasons[reasons != ""].astype(str), return_counts=True)
    return str(kinds[np.argmax(counts)])

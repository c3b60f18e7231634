"""A budget of calls of the model, and everything that was bought with it."""

from typing import NamedTuple

import numpy as np

from vhmc.targets.target import Evaluations, Target


class Paid(NamedTuple):
    """Evaluated points: rows in the order in which they were paid for.

    is_finite: whether the model gave a finite energy and gradient there.
    phase: what each was bought for.
    """

    theta: np.ndarray
    energy: np.ndarray
    grad: np.ndarray
    is_finite: np.ndarray
    phase: np.ndarray


class Overdrawn(RuntimeError):
    """A phase asked for more calls than the budget has left: a defect of ours."""


class Account:
    """The one door between a run and its model.

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
        """Calls that may still be made."""
        return self.budget - self.spent

    def evaluate(self, thetas: np.ndarray, phase: str) -> Evaluations:
        """True energies and gradients; infinite energies where the model has none."""
        self._check(len(thetas), phase)
        answer = self.target.evaluate(thetas)
        self._book(phase, len(thetas))
        is_finite = np.isfinite(answer.energy) & np.isfinite(answer.grad).all(axis=1)
        clean = Evaluations(
            np.where(is_finite, answer.energy, np.inf),
            np.where(is_finite[:, None], answer.grad, 0.0),
        )
        self._rows.append((np.array(thetas), clean, phase))
        return clean

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
            return Paid(
                np.zeros((0, dim)), nothing, np.zeros((0, dim)), nothing > 0, nothing
            )
        theta = np.concatenate([row[0] for row in self._rows])
        energy = np.concatenate([row[1].energy for row in self._rows])
        grad = np.concatenate([row[1].grad for row in self._rows])
        phase = np.concatenate([np.repeat(row[2], len(row[0])) for row in self._rows])
        return Paid(theta, energy, grad, np.isfinite(energy), phase)

    def _check(self, price: int, phase: str) -> None:
        if price > self.left:
            raise Overdrawn(f"{phase} asked for {price} calls of {self.left} left")

    def _book(self, phase: str, number: int) -> None:
        self.costs[phase] = self.costs.get(phase, 0) + number

"""A budget of calls of the model, and everything that was bought with it."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from vhmc.evaluation.ledger import LedgerError, Round
from vhmc.evaluation.replay import Replay
from vhmc.evaluation.target import Evaluations, Target
from vhmc.report.watch import LOG, Watch


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


class Interrupted(Exception):
    """The user asked the run to end; the round under way was finished if possible."""


GUESSES = "search", "scouting", "settling", "warm start"
"""Phases that ask where the posterior might not be: there failures are no surprise."""
WRITTEN_AFTER = 1.0
"""Seconds of work of a model that answers point by point, before it is written down."""
FEWEST = 4
"""Points of a round below which its failures say little."""


class Account:
    """The one door between a run and its model.

    Budgets are counted in calls of the model, the rest in points: a point is one call
    unless its gradient is made of differences.

    target: the model.
    budget: calls of the model that may be made, those on file included.
    replay: what is on file already, and where new answers are written.
    is_stopped: whether the user asked the run to end.
    watch: is told of every call.
    """

    def __init__(
        self,
        target: Target,
        budget: int,
        replay: Replay | None = None,
        is_stopped: Callable[[], bool] = lambda: False,
        watch: Watch | None = None,
    ):
        self.target = target
        self.budget = budget
        self.costs: dict[str, int] = {}
        self._replay = Replay(None) if replay is None else replay
        self._is_stopped = is_stopped
        self.watch = Watch(budget) if watch is None else watch
        self._seconds_a_point = WRITTEN_AFTER
        self._rows: list[tuple[np.ndarray, Evaluations, str]] = []

    @property
    def spent(self) -> int:
        """Calls made so far."""
        return sum(self.costs.values())

    @property
    def left(self) -> int:
        """Points that may still be asked for."""
        return (self.budget - self.spent) // self.target.price

    def evaluate(self, thetas: np.ndarray, phase: str) -> Evaluations:
        """True energies and gradients; infinite energies where the model has none.

        Raises `RunFailure` if the model fails at most points of a round.
        """
        thetas = np.array(thetas, dtype=float)
        self._check(len(thetas), phase)
        self.watch.phase(phase)
        parts: list[Evaluations] = []
        num_done = 0
        while num_done < len(thetas):
            is_told = not self._replay.is_over
            parts.append(self._some(phase, thetas[num_done:]))
            num_new = len(parts[-1].energy)
            self._book(phase, num_new * self.target.price, is_told)
            self._rows.append((thetas[num_done : num_done + num_new], parts[-1], phase))
            self._mind_the_user()
            num_done += num_new
        answer = Evaluations(*map(np.concatenate, zip(*parts, strict=True)))
        num_failed = int(np.sum(answer.reason != ""))
        if num_failed and phase not in GUESSES:
            LOG.warning(
                "the model had no answer at %d of %d points (%s): %s",
                *(num_failed, len(thetas), phase, most_common(answer.reason)),
            )
        if phase not in GUESSES and num_failed > len(thetas) / 2 >= FEWEST / 2:
            raise RunFailure(
                f"the model failed at {num_failed} of {len(thetas)} points of a round "
                f"({phase}), most often: {most_common(answer.reason)}; "
                + self._what_next(),
                paid=self.paid,
            )
        return answer

    def _some(self, phase: str, thetas: np.ndarray) -> Evaluations:
        """Answers for the first of the points, or for all: from the file, or asked."""
        told = self._replay.recall("points", phase, thetas)
        if told:
            return Evaluations(told.energy, told.grad, told.reason)
        if self._replay.is_kept and self.target.is_serial:
            # One point after the other: what is done is written down every second.
            thetas = thetas[: max(1, int(WRITTEN_AFTER / self._seconds_a_point))]
        began = time.perf_counter()
        answer = self._ask("points", phase, thetas, self.target.evaluate)
        seconds = time.perf_counter() - began
        self._seconds_a_point = max(seconds / len(thetas), 1e-9)
        return answer

    def hessian(self, theta: np.ndarray, phase: str) -> np.ndarray:
        """Second derivatives of the energy, at the target's price."""
        price = self.target.hessian_price
        self._check(price, phase)
        self.watch.phase(phase)
        rows = np.tile(np.asarray(theta, dtype=float), (self.target.dim, 1))
        told = self._replay.recall("hessian", phase, rows)
        if told:
            matrix = told.grad
        else:
            matrix = self._ask("hessian", phase, rows, self._hessian).grad
        self._book(phase, price * self.target.price, is_told=bool(told))
        self._mind_the_user()
        return matrix

    def absorb(self) -> None:
        """Take what is on file and was not told as points that are paid for."""
        for entry in self._replay.rest():
            self._book(entry.phase, entry.calls, is_told=True)
            if entry.kind == "points":
                answer = Evaluations(entry.energy, entry.grad, entry.reason)
                self._rows.append((entry.theta, answer, entry.phase))

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

    def _ask(
        self,
        kind: str,
        phase: str,
        thetas: np.ndarray,
        function: Callable[[np.ndarray], Evaluations],
    ) -> Evaluations:
        """Ask the model, and write the answer down before anything is made of it."""
        before = self.target.num_evaluations
        began, clock = time.time(), time.perf_counter()
        try:
            answer = function(thetas)
        except KeyboardInterrupt as error:  # of a worker, or the second of the user
            raise Interrupted from error
        seconds = time.perf_counter() - clock
        calls = self.target.num_evaluations - before
        try:
            self._replay.record(
                Round(kind, phase, thetas, *answer, calls, began, seconds)
            )
        except LedgerError as error:
            if kind == "points":  # rows of a Hessian are none
                self._rows.append((thetas, answer, phase))
            raise RunFailure(f"the run stops: {error}", paid=self.paid) from error
        return answer

    def _hessian(self, rows: np.ndarray) -> Evaluations:
        matrix = self.target.hessian(rows[0])
        nothing = np.array([""] * len(rows), dtype=object)
        return Evaluations(np.zeros(len(rows)), matrix, nothing)

    def _what_next(self) -> str:
        if self._replay.is_kept:
            return "once the model is well the same call goes on from the ledger"
        return "what was paid for is in this error's `paid`, and stays with ledger="

    def _mind_the_user(self) -> None:
        if self._is_stopped() and self._replay.is_over:
            raise Interrupted

    def _check(self, price: int, phase: str) -> None:
        if price > self.left:
            raise Overdrawn(f"{phase} asked for {price} points of {self.left} left")

    def _book(self, phase: str, number: int, is_told: bool) -> None:
        self.costs[phase] = self.costs.get(phase, 0) + number
        self.watch.spent(number, is_told)


def most_common(reasons: np.ndarray) -> str:
    """The reason that is given most often."""
    kinds, counts = np.unique(reasons[reasons != ""].astype(str), return_counts=True)
    return str(kinds[np.argmax(counts)])

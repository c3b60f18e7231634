"""The evaluator: a budget of evaluations, and the log of all that were made."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from vhmc.evaluation.ledger import LedgerError, Round
from vhmc.evaluation.replay import Replay
from vhmc.evaluation.target import Evaluations, Target, joined
from vhmc.numerics.threads import all_threads
from vhmc.report.watch import LOG, Watch
from vhmc.transport.layer import AbstractLayer


class EvaluationLog(NamedTuple):
    """Evaluated points, one row each, in order.

    is_finite: whether the model gave a finite energy and gradient.
    phase: of the run, in which each was evaluated.
    reason: why the model gave none; empty where it did.
    outputs: of a forward model, NaN where there are none; None if the target has no
        `observable`.
    """

    theta: np.ndarray
    energy: np.ndarray
    grad: np.ndarray
    is_finite: np.ndarray
    phase: np.ndarray
    reason: np.ndarray
    outputs: np.ndarray | None = None

    def where(self, chosen: np.ndarray) -> "EvaluationLog":
        """Some of the rows."""
        theta, energy, grad, is_finite, phase, reason = (
            rows[chosen] for rows in self[:6]
        )
        outputs = None if self.outputs is None else self.outputs[chosen]
        return EvaluationLog(theta, energy, grad, is_finite, phase, reason, outputs)


class RunFailure(RuntimeError):
    """A run cannot go on.

    evaluation_log: every evaluation, of the default sampler.
    trained: what the paper's algorithm had trained, a replica an entry.
    """

    def __init__(
        self,
        message: str,
        *,
        evaluation_log: EvaluationLog | None = None,
        trained: Any = (),
    ):
        super().__init__(message)
        self.evaluation_log, self.trained = evaluation_log, trained


class OverBudget(RuntimeError):
    """A phase asked for more evaluations than are left: a defect of the sampler."""


class Interrupted(Exception):
    """The user asked the run to end; the round under way was finished if possible."""


Evaluate: TypeAlias = Callable[[np.ndarray, str], Evaluations]
"""From unconstrained points, one a row, and the phase of the run to evaluations."""
EXPLORATORY = (
    *("search", "screening", "warm-up", "warm start", "look", "walls"),
    "soundness",
)
"""Phases that may leave the support of the posterior: failures are expected there."""
WRITTEN_AFTER = 1.0
"""Seconds after which a model that is evaluated point by point is written down."""
LEFT_BEHIND = "left behind"
"""Phase of points around a place that a run has left."""
FEWEST = 4
"""Points of a round below which failures do not end the run."""


class Evaluator:
    """The way of the default sampler to its model: counts, logs, replays evaluations.

    The budget is counted in evaluations, the rest in points: a point is one evaluation
    unless its gradient is made of differences.

    target: the model.
    budget: evaluations that may be made, those on file included.
    replay: what is on file already, and where new evaluations are written.
    is_stopped: whether the user asked the run to end.
    watch: is told of every evaluation.
    """

    layer: AbstractLayer | None = None
    """From the coordinates of `evaluate` to the unconstrained space, if they differ."""

    def __init__(
        self,
        target: Target,
        budget: int,
        replay: Replay | None = None,
        is_stopped: Callable[[], bool] = lambda: False,
        watch: Watch | None = None,
    ):
        self.target = target
        self._budget = budget
        self.costs: dict[str, int] = {}
        self._replay = Replay(None) if replay is None else replay
        self._is_stopped = is_stopped
        self._watch = Watch(budget) if watch is None else watch
        self._seconds_a_point = WRITTEN_AFTER
        self._rows: list[tuple[np.ndarray, Evaluations, str]] = []
        self._distrusted = np.zeros(0, dtype=int)
        self._is_told = False

    @property
    def budget(self) -> int:
        """Evaluations that may be made in all."""
        return self._budget

    def raise_budget(self, budget: int) -> None:
        """Allow more evaluations: a run that has ended goes on."""
        if budget < self._budget:
            raise ValueError(f"the budget is {self._budget} already, got {budget}")
        self._budget = budget

    @property
    def spent(self) -> int:
        """Evaluations made so far."""
        return sum(self.costs.values())

    @property
    def left(self) -> int:
        """Points that may still be evaluated."""
        return (self._budget - self.spent) // self.target.price

    def evaluate(self, thetas: np.ndarray, phase: str) -> Evaluations:
        """True energies and gradients; infinite energies where the model has none.

        Raises `RunFailure` if the model fails at most points of a round.
        """
        thetas = np.array(thetas, dtype=float)
        self._check(len(thetas), phase)
        self._watch.phase(phase)
        parts: list[Evaluations] = []
        num_done = 0
        while num_done < len(thetas):
            is_replayed = not self._replay.is_over
            parts.append(self._some(phase, thetas[num_done:]))
            num_new = len(parts[-1].energy)
            self._charge(phase, num_new * self.target.price, is_replayed)
            self._rows.append((thetas[num_done : num_done + num_new], parts[-1], phase))
            self._heed_interrupt()
            num_done += num_new
        answer = joined(parts)
        failed = answer.reason[~answer.is_answered]  # a density of zero is an answer
        num_failed = len(failed)
        if num_failed and phase not in EXPLORATORY:
            LOG.warning(
                "the model had no answer at %d of %d points (%s): %s",
                *(
                    num_failed,
                    len(thetas),
                    phase,
                    most_common(failed),
                ),
            )
        if phase not in EXPLORATORY and num_failed > len(thetas) / 2 >= FEWEST / 2:
            raise RunFailure(
                f"the model failed at {num_failed} of {len(thetas)} points of a round "
                f"({phase}), most often: {most_common(failed)}; " + self._what_next(),
                evaluation_log=self.evaluation_log,
            )
        return answer

    def _some(self, phase: str, thetas: np.ndarray) -> Evaluations:
        """Evaluations of the first points, or of all, from the file or the model."""
        replayed = self._replay.recall("points", phase, thetas)
        if replayed:
            return self._on_file(replayed)
        if self._replay.is_kept and self.target.is_serial:
            # Point by point: what is done is written down about every second.
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
        self._watch.phase(phase)
        rows = np.tile(np.asarray(theta, dtype=float), (self.target.dim, 1))
        replayed = self._replay.recall("hessian", phase, rows)
        if replayed:
            matrix = replayed.grad
        else:
            matrix = self._ask("hessian", phase, rows, self._hessian).grad
        self._charge(phase, price * self.target.price, is_replayed=bool(replayed))
        self._heed_interrupt()
        return matrix

    @property
    def num_rounds(self) -> int:
        """Rounds of points evaluated so far."""
        return len(self._rows)

    def leave_behind(self, first: int, last: int) -> None:
        """Let rounds count as points far from the posterior, as those of a search do.

        What they cost stays with the phase in which they were evaluated.
        """
        for number in range(first, last):
            self._rows[number] = (*self._rows[number][:2], LEFT_BEHIND)

    @property
    def num_points(self) -> int:
        """Points evaluated so far, Hessians aside."""
        return sum(len(row[0]) for row in self._rows)

    def distrust(self, points: np.ndarray) -> None:
        """Let points count as ones without an answer: theirs is wrong.

        points: numbers in the log.
        """
        self._distrusted = np.union1d(self._distrusted, points).astype(int)

    def absorb(self) -> None:
        """Log what is on file and was not replayed, as points already evaluated."""
        for entry in self._replay.rest():
            self._charge(entry.phase, entry.calls, is_replayed=True)
            if entry.kind == "points":
                self._rows.append((entry.theta, self._on_file(entry), entry.phase))

    def _on_file(self, entry: Round) -> Evaluations:
        """Evaluations of a round on file, with outputs if the target has an observable.

        A ledger of an earlier version has none: its points do not count for outputs.
        """
        answer = Evaluations(entry.energy, entry.grad, entry.reason)
        observable = self.target.observable
        if observable is None:
            return answer
        shape = len(entry.energy), len(observable.data)
        outputs = entry.outputs
        if outputs is None or outputs.shape != shape:
            if not self._is_told:
                LOG.info("the ledger has no outputs of the model for some points")
            self._is_told, outputs = True, np.full(shape, np.nan)
        return answer._replace(outputs=outputs)

    @property
    def origin(self) -> np.ndarray:
        """The user's initial values, in the coordinates of `evaluate`."""
        return self.target.start

    def outward(self, thetas: np.ndarray) -> np.ndarray:
        """Unconstrained points from those in the coordinates of `evaluate`."""
        return thetas

    def inward(self, thetas: np.ndarray) -> np.ndarray:
        """Points in the coordinates of `evaluate`, not finite where there are none."""
        return thetas

    @property
    def log(self) -> EvaluationLog:
        """All points evaluated so far, in the coordinates of `evaluate`."""
        return self.evaluation_log

    @property
    def evaluation_log(self) -> EvaluationLog:
        """All points evaluated so far, in the unconstrained space."""
        dim = self.target.dim
        if not self._rows:
            nothing = np.zeros(0)
            points = np.zeros((0, dim))
            return EvaluationLog(points, nothing, points, nothing > 0, nothing, nothing)
        theta = np.concatenate([row[0] for row in self._rows])
        energy, grad, reason, outputs = joined([row[1] for row in self._rows])
        phase = np.concatenate([np.repeat(row[2], len(row[0])) for row in self._rows])
        energy[self._distrusted] = np.inf
        known = np.isfinite(energy)
        return EvaluationLog(theta, energy, grad, known, phase, reason, outputs)

    def _ask(
        self,
        kind: str,
        phase: str,
        thetas: np.ndarray,
        function: Callable[[np.ndarray], Evaluations],
    ) -> Evaluations:
        """Evaluate the model, and write the answer down before it is used."""
        before = self.target.num_evaluations
        began, clock = time.time(), time.perf_counter()
        try:
            with all_threads():
                answer = function(thetas)
        except KeyboardInterrupt as error:  # of a worker, or the second of the user
            raise Interrupted from error
        seconds = time.perf_counter() - clock
        number = self.target.num_evaluations - before
        try:
            cost = number, began, seconds
            self._replay.record(
                Round(kind, phase, thetas, *answer[:3], *cost, answer.outputs)
            )
        except LedgerError as error:
            if kind == "points":  # rows of a Hessian are none
                self._rows.append((thetas, answer, phase))
            message = f"the run stops: {error}"
            raise RunFailure(message, evaluation_log=self.evaluation_log) from error
        return answer

    def _hessian(self, rows: np.ndarray) -> Evaluations:
        matrix = self.target.hessian(rows[0])
        nothing = np.array([""] * len(rows), dtype=object)
        return Evaluations(np.zeros(len(rows)), matrix, nothing)

    def _what_next(self) -> str:
        if self._replay.is_kept:
            return (
                "once the model works the same call of sample goes on from the ledger"
            )
        return (
            "all evaluations are in this error's `evaluation_log`; with ledger= they "
            "would be on file"
        )

    def _heed_interrupt(self) -> None:
        if self._is_stopped() and self._replay.is_over:
            raise Interrupted

    def _check(self, price: int, phase: str) -> None:
        if price > self.left:
            raise OverBudget(f"{phase} asked for {price} points of {self.left} left")

    def _charge(self, phase: str, number: int, is_replayed: bool) -> None:
        self.costs[phase] = self.costs.get(phase, 0) + number
        self._watch.spent(number, is_replayed)


def most_common(reasons: np.ndarray) -> str:
    """The reason that is given most often."""
    kinds, counts = np.unique(reasons[reasons != ""].astype(str), return_counts=True)
    return str(kinds[np.argmax(counts)])

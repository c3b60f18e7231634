"""Several runs of L-BFGS in step, so that the model is evaluated in batches."""

import threading
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.optimize

from vhmc.evaluation.target import Evaluations


class Evaluated(NamedTuple):
    """A point with its energy and gradient."""

    theta: np.ndarray
    energy: float
    grad: np.ndarray


class _Enough(Exception):
    """Ends a descent from within its objective."""


class Descent:
    """One run of SciPy's L-BFGS, answered one question at a time.

    The optimiser runs in a thread of its own and waits there for each answer: many of
    them advance together, and any can be paused and resumed.

    path: points that lowered the energy.
    """

    def __init__(self, start: np.ndarray):
        self.path: list[Evaluated] = []
        self.num_asked = 0
        self.is_done = False
        self._question: np.ndarray | None = None
        self._answer: tuple[float, np.ndarray] | None = None
        self._asked, self._answered = threading.Semaphore(0), threading.Semaphore(0)
        self._is_closed = False
        self._error: Exception | None = None
        self._origin: float | None = None
        self._highest = -np.inf
        self._thread = threading.Thread(target=self._run, args=(start,), daemon=True)
        self._thread.start()
        self._wait()

    @property
    def question(self) -> np.ndarray:
        """The point whose energy is wanted next."""
        assert self._question is not None
        return self._question

    @property
    def theta(self) -> np.ndarray:
        """The lowest point found."""
        return self.path[-1].theta

    @property
    def energy(self) -> float:
        """The energy there, infinite before the first."""
        return self.path[-1].energy if self.path else np.inf

    def tell(self, energy: float, grad: np.ndarray) -> None:
        """Answer the question; returns when the next one is there, or the end."""
        self.num_asked += 1
        if np.isfinite(energy) and energy < self.energy:
            self.path.append(Evaluated(self.question.copy(), energy, grad.copy()))
        self._answer = energy, grad
        self._answered.release()
        self._wait()

    def close(self) -> None:
        """End the thread."""
        if not self.is_done:
            self._is_closed = True
            self._answered.release()
            self._asked.acquire()

    def _wait(self) -> None:
        """Until the optimiser asks or ends; what it raises is raised here."""
        self._asked.acquire()
        if self._error is not None:
            raise self._error

    def _run(self, start: np.ndarray) -> None:
        try:
            scipy.optimize.minimize(
                self._objective,
                start,
                jac=True,
                method="L-BFGS-B",
                options={"maxfun": 10**6, "maxiter": 10**6, "ftol": 0.0, "gtol": 0.0},
            )
        except _Enough:
            pass
        except Exception as error:  # of the optimiser: raised in the caller's thread
            self._error = error
        finally:
            self.is_done = True
            self._asked.release()

    def _objective(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        self._question = theta.copy()
        self._asked.release()
        self._answered.acquire()
        if self._is_closed:
            raise _Enough
        assert self._answer is not None
        energy, grad = self._answer
        if not np.isfinite(energy):
            if self._origin is None:
                raise _Enough  # no descent begins where there is no energy
            # A wall just above all that was seen: the line search then halves its
            # step, where a huge number would shrink it to nothing.
            return self._highest - self._origin + 1.0, np.zeros_like(theta)
        if self._origin is None:
            self._origin = energy
        self._highest = max(self._highest, energy)
        return energy - self._origin, grad


def descend(
    descents: list[Descent],
    evaluate: Callable[[np.ndarray], Evaluations],
    num_each: int,
    is_finished: Callable[[Descent], bool],
) -> None:
    """Advance all descents by at most `num_each` evaluations, a batch at a time."""
    limits = {id(descent): descent.num_asked + num_each for descent in descents}

    def is_going(descent: Descent) -> bool:
        return (
            not descent.is_done
            and descent.num_asked < limits[id(descent)]
            and not is_finished(descent)
        )

    while going := [descent for descent in descents if is_going(descent)]:
        answers = evaluate(np.stack([descent.question for descent in going]))
        for descent, energy, grad, _ in zip(going, *answers[:3], strict=True):
            descent.tell(float(energy), grad)

"""What a user's model may do wrong, turned into a reason in words."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

NO_DENSITY = "the log density is -inf"
"""A reason that is an answer: the posterior ends before this point."""
HUGE = 1e100
"""Numbers whose squares and products with others still are some."""
LONGEST = 200
"""Characters of a message that are kept."""


class Guarded:
    """A call of the user's code that never raises; it can be sent to a worker.

    Returns the answer and a reason: an empty one, or what went wrong and no answer.

    function: of the user.
    timeout: seconds after which a call is given up, none unless given. The call itself
        cannot be ended from outside: it goes on in a thread that nobody waits for.
    """

    def __init__(self, function: Callable[..., Any], timeout: float | None = None):
        self._function, self._timeout = function, timeout

    def __call__(self, *arguments: Any) -> tuple[Any, str]:
        """The answer and no reason, or no answer and a reason."""
        if self._timeout is None:
            return self._attempt(*arguments)
        outcome: list[tuple[Any, str]] = []
        farewell: list[BaseException] = []

        def attempt() -> None:
            try:
                outcome.append(self._attempt(*arguments))
            except BaseException as error:  # it asks the whole process to end
                farewell.append(error)

        thread = threading.Thread(target=attempt, daemon=True)
        thread.start()
        thread.join(self._timeout)
        if farewell:
            raise farewell[0]
        if not outcome:
            return None, f"no answer after {self._timeout:g} s"
        return outcome[0]

    def _attempt(self, *arguments: Any) -> tuple[Any, str]:
        try:
            return self._function(*arguments), ""
        except Exception as error:  # whatever code that is not ours may raise
            return None, describe(error)


def describe(error: BaseException) -> str:
    """An exception in one line."""
    lines = str(error).strip().splitlines()
    message = f"{type(error).__name__}: {lines[0] if lines else ''}"
    return message.rstrip(": ")[:LONGEST]


def is_usable(values: np.ndarray, grads: np.ndarray) -> np.ndarray:
    """Where log densities and their gradients can be computed with."""
    with np.errstate(invalid="ignore"):
        return (np.abs(values) < HUGE) & (np.abs(grads) < HUGE).all(axis=1)


def complaint(value: float, grad: np.ndarray) -> str:
    """Why a log density and its gradient are of no use."""
    if not np.isfinite(value):
        return f"the log density is {value}"
    num_bad = int(np.sum(~np.isfinite(grad)))
    if num_bad:
        return f"{num_bad} of {len(grad)} entries of the gradient are not finite"
    largest = max(abs(value), float(np.abs(grad).max()))
    return f"the log density or its gradient is as large as {largest:.3g}"

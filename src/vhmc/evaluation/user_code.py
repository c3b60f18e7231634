"""Call the user's code; turn exceptions, timeouts and unusable numbers into reasons."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

NO_DENSITY = "the log density is -inf"
"""The one reason that is an answer: the point is outside the posterior's support."""
HUGE = 1e100
"""Largest usable magnitude: its square and its products stay finite."""
LONGEST = 200
"""Characters of a message that are kept."""


class Guarded:
    """The user's function, with exceptions and timeouts returned as reasons.

    A call returns the answer and an empty reason, or None and the reason why there is
    no answer. Picklable if the function is, so that workers can run it.

    function: the user's.
    timeout: seconds to wait for a call; no limit if None. Python cannot stop a running
        call: after the timeout it goes on in a background thread, its answer unused.
    """

    def __init__(self, function: Callable[..., Any], timeout: float | None = None):
        self._function, self._timeout = function, timeout

    def __call__(self, *arguments: Any) -> tuple[Any, str]:
        """The answer and no reason, or no answer and a reason."""
        if self._timeout is None:
            return self._attempt(*arguments)
        outcome: list[tuple[Any, str]] = []
        exits: list[BaseException] = []

        def attempt() -> None:
            try:
                outcome.append(self._attempt(*arguments))
            except BaseException as error:  # SystemExit, KeyboardInterrupt
                exits.append(error)

        thread = threading.Thread(target=attempt, daemon=True)
        thread.start()
        thread.join(self._timeout)
        if exits:
            raise exits[0]
        if not outcome:
            return None, f"no answer after {self._timeout:g} s"
        return outcome[0]

    def _attempt(self, *arguments: Any) -> tuple[Any, str]:
        try:
            return self._function(*arguments), ""
        except Exception as error:  # the user's code may raise anything
            return None, describe(error)


def describe(error: BaseException) -> str:
    """Type and first line of an exception."""
    lines = str(error).strip().splitlines()
    message = f"{type(error).__name__}: {lines[0] if lines else ''}"
    return message.rstrip(": ")[:LONGEST]


def is_usable(values: np.ndarray, grads: np.ndarray) -> np.ndarray:
    """Where log densities and gradients are finite and below `HUGE`."""
    with np.errstate(invalid="ignore"):
        return (np.abs(values) < HUGE) & (np.abs(grads) < HUGE).all(axis=1)


def is_of_numbers(reason: str) -> bool:
    """Whether a model has answered, with numbers that are not usable."""
    return "the log density" in reason or "entries of the gradient" in reason


def complaint(value: float, grad: np.ndarray) -> str:
    """Why a log density with its gradient is not usable."""
    if not np.isfinite(value):
        return f"the log density is {value}"
    num_bad = int(np.sum(~np.isfinite(grad)))
    if num_bad:
        return f"{num_bad} of {len(grad)} entries of the gradient are not finite"
    largest = max(abs(value), float(np.abs(grad).max()))
    return f"the log density or its gradient is as large as {largest:.3g}"

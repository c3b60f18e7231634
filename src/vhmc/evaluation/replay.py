"""A run told again from its ledger: what is on file is not asked for twice.

Given its seed and the model's answers a run is determined. So nothing else needs to be
kept: the same code runs again, and the ledger answers until it has no more to tell.
"""

from collections import deque

import numpy as np

from vhmc.evaluation.ledger import LedgerFile, Round

ASIDE = "probe", "outage"
"""Rounds that are no part of what a run was told."""


class Diverged(Exception):
    """The run asks for something else than it did when the ledger was written.

    Another machine, or another version of a library, rounds differently.
    """


class Replay:
    """Answers from a file first, and new ones written to it.

    file: the ledger; nothing is remembered without one.
    """

    def __init__(self, file: LedgerFile | None):
        self._file = file
        rounds = file.rounds() if file else []
        self._ahead = deque(entry for entry in rounds if entry.kind not in ASIDE)

    @property
    def is_over(self) -> bool:
        """Whether all that is on file has been told."""
        return not self._ahead

    def recall(self, kind: str, phase: str, thetas: np.ndarray) -> Round | None:
        """The answer on file, or nothing once the file has been told to its end.

        It may be for the first of the points only: the rest is then the next on file,
        or has not been asked for yet.
        """
        if not self._ahead:
            return None
        entry = self._ahead[0]
        is_same = (entry.kind, entry.phase) == (kind, phase)
        if not is_same or not np.array_equal(entry.theta, thetas[: len(entry.theta)]):
            raise Diverged
        return self._ahead.popleft()

    @property
    def is_kept(self) -> bool:
        """Whether what is recorded goes to a file."""
        return self._file is not None

    def record(self, entry: Round) -> None:
        """Write down what was asked anew."""
        if self._file:
            self._file.append(entry)

    def rest(self) -> list[Round]:
        """All that has not been told yet, to be used in another way."""
        rest = list(self._ahead)
        self._ahead.clear()
        return rest

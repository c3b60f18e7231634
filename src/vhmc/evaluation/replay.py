"""Answer evaluations from the ledger until its end, then record new ones.

A run is determined by its seed and the model's answers. So no other state is kept: the
same code runs again, and the ledger answers until its end is reached.
"""

from collections import deque

import numpy as np

from vhmc.evaluation.ledger import LedgerFile, Round

ASIDE = "probe", "outage"
"""Kinds of rounds that are not part of the run itself."""


class Diverged(Exception):
    """The run asks for other points than when the ledger was written.

    Another machine, or another version of a library, rounds differently.
    """


class Replay:
    """Evaluations from a file first, and new ones written to it.

    file: the ledger; without one nothing is replayed or recorded.
    """

    def __init__(self, file: LedgerFile | None):
        self._file = file
        rounds = file.rounds() if file else []
        self._ahead = deque(entry for entry in rounds if entry.kind not in ASIDE)

    @property
    def is_over(self) -> bool:
        """Whether all that is on file has been replayed."""
        return not self._ahead

    def recall(self, kind: str, phase: str, thetas: np.ndarray) -> Round | None:
        """The round on file, or nothing once all have been replayed.

        It may hold the first of the points only: the rest is then the next round, or
        has not been evaluated yet.
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
        """Whether there is a file."""
        return self._file is not None

    def record(self, entry: Round) -> None:
        """Write a new round down."""
        if self._file:
            self._file.append(entry)

    def rest(self) -> list[Round]:
        """Take all rounds that have not been replayed."""
        rest = list(self._ahead)
        self._ahead.clear()
        return rest

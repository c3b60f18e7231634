"""Follow a run: tell the display and the log what happens."""

import contextlib
import logging
from collections.abc import Iterator

from vhmc.report.display import Display, display_for
from vhmc.report.status import Moment, Status

LOG = logging.getLogger("vhmc")
LOG.addHandler(logging.NullHandler())  # who wants the log says where it goes
UNWRITABLE = OSError, ValueError
"""What a display raises that cannot be written to, which must not end a run."""


class Watch:
    """Listens to a run and passes on what happens.

    budget: evaluations, at most.
    display: where it is shown.
    """

    def __init__(self, budget: int, display: Display | None = None):
        self.status = Status(budget)
        self._display = display or Display()

    def phase(self, name: str) -> None:
        """Another phase begins."""
        if name == self.status.phase and self.status.spent:
            return
        self.status.phase = name
        LOG.info(
            "%s: %d of %d evaluations", name, self.status.spent, self.status.budget
        )
        self._update()

    def spent(self, number: int, is_replayed: bool) -> None:
        """Evaluations were made, or replayed from a file."""
        self.status.spent += number
        self.status.replayed += number if is_replayed else 0
        self._update()

    def round(self, moment: Moment) -> None:
        """A round of training is over."""
        self.status.history.append(moment)
        LOG.debug("score error %.3g, true acceptance %.2f", *moment[1:])
        self._update()

    def draws(self, number: int, wanted: int, ess: float = float("nan")) -> None:
        """Draws of the surrogate were made."""
        status = self.status
        status.num_draws, status.wanted_draws, status.ess = number, wanted, ess
        self._update()

    def end(self, outcome: str) -> None:
        """The run is over, and how."""
        self.status.phase, self.status.outcome = "done", outcome
        LOG.info("%s after %d evaluations", outcome, self.status.spent)

    def _update(self) -> None:
        with contextlib.suppress(*UNWRITABLE):
            self._display.update(self.status)


class _Handler(logging.Handler):
    """Warnings of any part of the library, on the display as they happen."""

    def __init__(self, display: Display):
        super().__init__(logging.WARNING)
        self._display = display

    def emit(self, record: logging.LogRecord) -> None:
        with contextlib.suppress(*UNWRITABLE):
            self._display.warn(record.getMessage())


@contextlib.contextmanager
def watching(budget: int, progress: bool) -> Iterator[Watch]:
    """A watch with a display that is closed in the end, whatever happens."""
    display = display_for(progress)
    watch, handler = Watch(budget, display), _Handler(display)
    LOG.addHandler(handler)
    try:
        yield watch
    finally:
        LOG.removeHandler(handler)
        with contextlib.suppress(*UNWRITABLE):
            display.close(watch.status)

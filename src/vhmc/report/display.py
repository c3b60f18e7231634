"""Where progress is shown: a terminal, a notebook, plain lines, or nowhere."""

import html
import sys
import time
from typing import Any

from vhmc.report.status import Status, details, headline

EVERY = 0.25
"""Seconds between two pictures."""
EVERY_LINE = 10.0
"""Seconds between two lines of a phase where nothing can be overwritten."""


class Display:
    """A picture of a run: this one shows nothing, others override what they show."""

    def update(self, status: Status) -> None:
        """Something has changed; called often."""

    def warn(self, sentence: str) -> None:
        """Something that should be known now."""

    def close(self, status: Status) -> None:
        """The run is over."""


class Lines(Display):
    """A line for every phase, and every ten seconds."""

    def __init__(self) -> None:
        self._phase, self._last = "", -EVERY_LINE

    def update(self, status: Status) -> None:
        now = time.monotonic()
        if status.phase == self._phase and now - self._last < EVERY_LINE:
            return
        self._phase, self._last = status.phase, now
        self._say(status)

    def close(self, status: Status) -> None:
        self._say(status)

    def warn(self, sentence: str) -> None:
        print(f"vhmc: warning: {sentence}", file=sys.stderr, flush=True)

    def _say(self, status: Status) -> None:
        parts = headline(status), details(status), status.outcome
        text = "; ".join(part for part in parts if part)
        print(f"vhmc: {text}", file=sys.stderr, flush=True)


class Terminal(Display):
    """A bar that is drawn over itself."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        self._status: Status | None = None
        # Drawn by a thread of its own: an evaluation may take minutes.
        self._live = Live(
            console=Console(stderr=True),
            get_renderable=self._picture,
            refresh_per_second=1 / EVERY,
            # What the model prints is the user's, and may go to a file.
            redirect_stdout=sys.stdout is not None and sys.stdout.isatty(),
        )

    def update(self, status: Status) -> None:
        if self._status is None:
            self._status = status
            self._live.start()

    def warn(self, sentence: str) -> None:
        from rich.text import Text

        warning = Text(f"vhmc: {sentence}", style="yellow")
        self._live.console.print(warning, soft_wrap=True)

    def close(self, status: Status) -> None:
        if self._status is not None:
            self._live.stop()

    def _picture(self) -> Any:
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        status = self._status
        if status is None:
            return ""
        lines = Table.grid()
        if not status.outcome:
            lines.add_row(ProgressBar(status.budget, status.spent, width=48))
        lines.add_row(Text(headline(status)))
        lines.add_row(Text(details(status), style="dim"))
        if status.outcome:
            lines.add_row(Text(status.outcome, style="bold"))
        return lines


class Notebook(Display):
    """A cell's output that is written over."""

    def __init__(self) -> None:
        from IPython.display import HTML, display

        self._html, self._last = HTML, -EVERY
        self._warnings: list[str] = []
        self._handle = display(HTML(""), display_id=True)

    def update(self, status: Status) -> None:
        now = time.monotonic()
        if now - self._last >= EVERY:
            self._last = now
            self._draw(status)

    def warn(self, sentence: str) -> None:
        self._warnings.append(sentence)

    def close(self, status: Status) -> None:
        self._draw(status)

    def _draw(self, status: Status) -> None:
        self._handle.update(self._html(as_html(status, self._warnings)))


def as_html(status: Status, warnings: list[str]) -> str:
    """A bar with its lines; nothing of it is taken for markup."""
    lines = [headline(status), details(status), status.outcome, *warnings]
    rows = "".join(f"<div>{html.escape(line)}</div>" for line in lines if line)
    return (
        f'<progress value="{status.spent}" max="{status.budget}" '
        f'style="width: 24em" aria-label="evaluations"></progress>{rows}'
    )


def display_for(progress: bool) -> Display:
    """What suits the place where we run."""
    if not progress or sys.stderr is None:  # as without a console
        return Display()
    if _is_notebook():
        return Notebook()
    return Terminal() if sys.stderr.isatty() else Lines()


def _is_notebook() -> bool:
    """Whether a kernel runs us; IPython in a terminal is a terminal."""
    interactive = sys.modules.get("IPython")
    shell = interactive.get_ipython() if interactive else None
    return shell is not None and "IPKernelApp" in getattr(shell, "config", {})

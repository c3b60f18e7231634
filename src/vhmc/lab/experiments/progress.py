"""What a person sees while an experiment runs, with an honest time left."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, ProgressColumn, Task, TextColumn
from rich.progress import Progress as Bar
from rich.text import Text


class Step:
    """Where a run stands among parts of known expected lengths.

    The time left is what the remaining parts are expected to take, times how wrong the
    expectations were so far.
    """

    def __init__(
        self,
        expected: Sequence[float],
        moved: Callable[["Step"], None] = lambda _: None,
    ):
        self._expected, self._moved = list(expected), moved
        self._began = self._part_began = time.perf_counter()
        self._number = 0
        self._share: float | None = None

    def share(self, share: float) -> None:
        """The current part knows how much of it is done."""
        self._share = share

    def done(self) -> None:
        """The current part is over."""
        self._number += 1
        self._part_began = time.perf_counter()
        self._share = None
        self._moved(self)

    @property
    def number(self) -> int:
        """Parts that are over."""
        return self._number

    def done_seconds(self) -> float:
        """Expected seconds of what is done, the current part's share included."""
        over = sum(self._expected[: self._number])
        if self._number == len(self._expected):
            return over
        current = self._expected[self._number]
        elapsed = time.perf_counter() - self._part_began
        share = min(elapsed / current, 0.95) if self._share is None else self._share
        return over + share * current

    def seconds_left(self) -> float:
        """Estimate, from the pace so far once a tenth is done."""
        total, over = sum(self._expected), self.done_seconds()
        pace = 1.0
        if over > 0.1 * total:
            pace = (time.perf_counter() - self._began) / over
        return max(total - over, 0.0) * pace


class Progress:
    """A bar on a terminal, a line a part elsewhere."""

    def __init__(self, console: Console, title: str):
        self._console, self._title = console, title

    def say(self, line: str) -> None:
        """A line of its own."""
        self._console.print(line, soft_wrap=True, markup=False, highlight=False)

    @contextmanager
    def over(self, parts: Sequence[tuple[str, float]]) -> Iterator[Step]:
        """Follow parts given by name and expected seconds."""
        expected = [seconds for _, seconds in parts]
        if parts and self._console.is_terminal:
            with Bar(console=self._console, transient=True) as bar:
                task = bar.add_task("", total=sum(expected), part=parts[0][0])

                def name_it(step: Step) -> None:
                    name = parts[min(step.number, len(parts) - 1)][0]
                    bar.update(task, part=name)

                step = Step(expected, name_it)
                bar.columns = (
                    TextColumn(self._title),
                    _Filled(step),
                    TextColumn("{task.fields[part]}"),
                    _TimeLeft(step),
                )
                yield step
            return

        def announce(step: Step) -> None:
            if step.number < len(parts):
                self.say(
                    f"{self._title}: {parts[step.number][0]} "
                    f"({step.number + 1} of {len(parts)}, about "
                    f"{duration(step.seconds_left())} left)"
                )

        step = Step(expected, announce)
        announce(step)
        yield step


class _Filled(BarColumn):
    """A bar that moves within a part, too."""

    def __init__(self, step: Step):
        super().__init__(bar_width=24)
        self._step = step

    def render(self, task: Task):
        task.completed = self._step.done_seconds()
        return super().render(task)


class _TimeLeft(ProgressColumn):
    max_refresh = 0.5

    def __init__(self, step: Step):
        super().__init__()
        self._step = step

    def render(self, task: Task) -> Text:
        return Text(f"about {duration(self._step.seconds_left())} left", style="dim")


def duration(seconds: float) -> str:
    """Seconds in words."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min"

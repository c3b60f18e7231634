"""Run an experiment in parts: each is stored when done, so that a run can resume."""

import json
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bar

import vhmc
from vhmc.report.status import shown_seconds

Numbers = dict[str, np.ndarray]


class Step:
    """Where a run stands among parts of known expected lengths.

    The time left is what the remaining parts are expected to take, times the ratio of
    actual to expected time so far.

    moved: called when a part is over.
    """

    def __init__(
        self, expected: Sequence[float], moved: Callable[[], None] = lambda: None
    ):
        self._expected, self._moved = list(expected), moved
        self.total = sum(expected)  # seconds
        self._began = self._part_began = time.perf_counter()
        self._fraction: float | None = None
        self.number = 0  # of parts that are over

    def advance_to(self, fraction: float) -> None:
        """Take note of how much of the current part is done."""
        self._fraction = fraction

    def done(self) -> None:
        """Go on to the next part."""
        self.number += 1
        self._part_began, self._fraction = time.perf_counter(), None
        self._moved()

    def done_seconds(self) -> float:
        """Expected seconds of what is done, of the current part what is done of it."""
        over = sum(self._expected[: self.number])
        if self.number == len(self._expected):
            return over
        current, fraction = self._expected[self.number], self._fraction
        if fraction is None:
            elapsed = time.perf_counter() - self._part_began
            fraction = min(elapsed / current, 0.95)
        return over + fraction * current

    def seconds_left(self) -> float:
        """Estimate, from the pace so far once a tenth is done."""
        over, pace = self.done_seconds(), 1.0
        if over > 0.1 * self.total:
            pace = (time.perf_counter() - self._began) / over
        return max(self.total - over, 0.0) * pace


class Progress:
    """A bar on a terminal; elsewhere a line when a part begins."""

    def __init__(self, console: Console, title: str):
        self._console, self._title = console, title

    def say(self, line: str) -> None:
        """Print a line of its own."""
        self._console.print(line, soft_wrap=True, markup=False, highlight=False)

    @contextmanager
    def over(self, parts: Sequence[tuple[str, float]]) -> Iterator[Step]:
        """Follow parts given by name and expected seconds."""
        names, expected = [name for name, _ in parts], [value for _, value in parts]
        if parts and self._console.is_terminal:
            step = Step(expected)
            with _StepBar(self._console, self._title, names, step):
                yield step
            return

        def announce() -> None:
            if (number := step.number) < len(parts):
                left = shown_seconds(step.seconds_left())
                place = f"{number + 1} of {len(parts)}, about {left} left"
                self.say(f"{self._title}: {names[number]} ({place})")

        step = Step(expected, announce)
        announce()
        yield step


class _StepBar(Bar):
    """A bar that shows a step, and moves within a part too."""

    def __init__(self, console: Console, title: str, names: list[str], step: Step):
        self._names, self._step = names, step
        columns = "{task.fields[part]}", "[dim]about {task.fields[left]} left"
        shown = TextColumn(title), BarColumn(24), *map(TextColumn, columns)
        super().__init__(*shown, console=console, transient=True)
        self.add_task("", total=step.total, part="", left="")

    def get_renderables(self):
        for task in self.tasks:
            number = min(self._step.number, len(self._names) - 1)
            task.completed = self._step.done_seconds()
            task.fields["part"] = self._names[number]
            task.fields["left"] = shown_seconds(self._step.seconds_left())
        return super().get_renderables()


class Part(NamedTuple):
    """A piece of work whose outcome is arrays.

    name: unique in the experiment; also shown while it runs.
    seconds: expected to be needed.
    run: does the work; may call its argument with the fraction done so far.
    """

    name: str
    seconds: float
    run: Callable[[Callable[[float], None]], Mapping[str, Any]]


def inputs(settings: Any, **more: str) -> dict[str, Any]:
    """All that outcomes depend on: settings, what else is given, and the version."""
    return {**asdict(settings), **more, "version": vhmc.__version__}


def run_parts(
    folder: Path, settings: Mapping[str, Any], parts: Sequence[Part], progress: Progress
) -> dict[str, Numbers]:
    """Run the parts that are not in the folder yet; load the others.

    settings: everything that the outcomes depend on; a folder with others is refused.
    """
    store = folder / "parts"
    store.mkdir(parents=True, exist_ok=True)
    _check_settings(store / "settings.json", settings)
    files = {part.name: store / f"{_slug(part.name)}.npz" for part in parts}
    waiting = [part for part in parts if not files[part.name].exists()]
    if len(waiting) < len(parts):
        progress.say(
            f"{len(parts) - len(waiting)} of {len(parts)} parts are in {folder} already"
        )
    with progress.over([(part.name, part.seconds) for part in waiting]) as step:
        for part in waiting:
            began = time.perf_counter()
            numbers = dict(part.run(step.advance_to))
            numbers["part_seconds"] = time.perf_counter() - began
            _replace(files[part.name], partial(np.savez, **numbers))
            step.done()
    return {name: _load(path) for name, path in files.items()}


def total_seconds(done: Iterable[Numbers]) -> float:
    """Seconds of all parts together, compilation included."""
    return sum(float(numbers["part_seconds"]) for numbers in done)


def costs(done: Mapping[str, Numbers]) -> dict[str, dict[str, float]]:
    """Passes over the data and seconds of each part, compilation included."""
    columns = {"passes_by_part": "evaluations", "seconds_by_part": "part_seconds"}
    return {
        title: {
            name: round(float(numbers[column]), 1)
            for name, numbers in done.items()
            if column in numbers
        }
        for title, column in columns.items()
    }


def _check_settings(path: Path, settings: Mapping[str, Any]) -> None:
    wanted = json.loads(json.dumps(settings))
    if not path.exists():
        _replace(path, lambda file: file.write(json.dumps(wanted, indent=2).encode()))
        return
    stored = json.loads(path.read_text())
    every = sorted(stored.keys() | wanted.keys())
    if names := [name for name in every if stored.get(name) != wanted.get(name)]:
        raise ValueError(
            f"{path.parent.parent} holds a run with other settings, of "
            f"{', '.join(names)}: choose another folder, or remove it"
        )


def _replace(path: Path, write: Callable[[Any], Any]) -> None:
    """Write a temporary file, then rename it: half a file is never found."""
    beside = path.with_suffix(".tmp")
    with beside.open("wb") as file:
        write(file)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)


def _load(path: Path) -> Numbers:
    with np.load(path) as file:
        return dict(file)


def _slug(name: str) -> str:
    return re.sub("[^a-z0-9.]+", "-", name.lower()).strip("-")

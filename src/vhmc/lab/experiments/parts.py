"""An experiment in parts: each is stored when it is done, so a run can go on."""

import json
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from vhmc.lab.experiments.progress import Progress

Numbers = dict[str, np.ndarray]


class Part(NamedTuple):
    """A piece of work whose outcome is arrays.

    name: unique in the experiment; also shown while it runs.
    seconds: that it is expected to take.
    run: gets a function to call with the share that is done, if it knows it.
    """

    name: str
    seconds: float
    run: Callable[[Callable[[float], None]], Mapping[str, Any]]


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
            numbers = dict(part.run(step.share))
            numbers["part_seconds"] = time.perf_counter() - began
            _save(files[part.name], numbers)
            step.done()
    return {name: _load(path) for name, path in files.items()}


def costs(done: Mapping[str, Numbers]) -> dict[str, dict[str, float]]:
    """Passes over the data and seconds of each part, compilation included."""
    return {
        "passes_by_part": {
            name: round(float(numbers["evaluations"]), 1)
            for name, numbers in done.items()
            if "evaluations" in numbers
        },
        "seconds_by_part": {
            name: round(float(numbers["part_seconds"]), 1)
            for name, numbers in done.items()
        },
    }


def _check_settings(path: Path, settings: Mapping[str, Any]) -> None:
    wanted = json.loads(json.dumps(settings))
    if not path.exists():
        _replace(path, lambda file: file.write(json.dumps(wanted, indent=2).encode()))
        return
    stored = json.loads(path.read_text())
    names = sorted(
        name
        for name in stored.keys() | wanted.keys()
        if stored.get(name) != wanted.get(name)
    )
    if names:
        raise ValueError(
            f"{path.parent.parent} holds a run with other settings, of "
            f"{', '.join(names)}:"
            " choose another folder, or remove it"
        )


def _save(path: Path, numbers: Mapping[str, Any]) -> None:
    _replace(path, lambda file: np.savez(file, **numbers))


def _replace(path: Path, write: Callable[[Any], Any]) -> None:
    """Write beside the file, then rename: half a file is never found."""
    beside = path.with_suffix(".tmp")
    with beside.open("wb") as file:
        write(file)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)


def _load(path: Path) -> Numbers:
    with np.load(path) as file:
        return {name: file[name] for name in file.files}


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-")

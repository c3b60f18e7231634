"""Write the results of experiments: figures, tables, settings and a page."""

import base64
import csv
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib.figure import Figure

from vhmc.report.facts import versions
from vhmc.report.page import template

HELD, IN_PART, NOT_HELD = "held", "held in part", "not held"


class Claim(NamedTuple):
    """What the paper claims, and what came out here.

    sentence: the claim in our words.
    status: `HELD`, `IN_PART` or `NOT_HELD`.
    numbers: what the status rests on.
    """

    sentence: str
    status: str
    numbers: str


class Panel(NamedTuple):
    """A figure with its claims.

    image: PNG file.
    alt: the figure in words, for readers who cannot see it.
    remarks: what its numbers can and cannot show.
    """

    title: str
    image: Path
    alt: str
    claims: tuple[Claim, ...]
    remarks: tuple[str, ...]


class Story(NamedTuple):
    """An experiment on the page.

    lead: what was done, in a few sentences.
    table: rows with the same keys.
    facts: settings, data and costs, by name.
    """

    title: str
    lead: str
    panels: tuple[Panel, ...]
    table: tuple[Mapping[str, Any], ...]
    facts: Mapping[str, Any]
    is_quick: bool


def save_figure(folder: Path, name: str, figure: Figure) -> list[Path]:
    """Write a figure as PNG for the screen and as PDF for print."""
    paths = [folder / f"{name}.png", folder / f"{name}.pdf"]
    for path in paths:
        # No date in the PDF: the same run writes the same file.
        metadata = {"CreationDate": None} if path.suffix == ".pdf" else None
        figure.savefig(path, dpi=160, metadata=metadata)
    return paths


def save_table(folder: Path, name: str, rows: Sequence[Mapping[str, Any]]) -> Path:
    """Write rows with the same keys as CSV."""
    path = folder / f"{name}.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def save_run(
    folder: Path,
    name: str,
    settings: Any,
    is_quick: bool,
    seconds: float,
    claims: Sequence[Claim],
    /,
    **details: Any,
) -> None:
    """Write `run.json`: an experiment's settings, claims, seconds and other details."""
    record = {
        "experiment": name,
        "is_quick": is_quick,
        "settings": asdict(settings),
        **details,
        "seconds": round(seconds, 1),
        "claims": [claim._asdict() for claim in claims],
    }
    save_record(folder, "run", record)


def page_facts(settings: Any, seconds: float, /, **more: str) -> dict[str, str]:
    """Settings, further facts, seconds and versions, for the end of a page."""
    return {
        **{name: str(value) for name, value in asdict(settings).items()},
        **more,
        "seconds": f"{seconds:.0f}",
        **versions(),
    }


def save_record(folder: Path, name: str, record: Mapping[str, Any]) -> Path:
    """Write settings, seeds and costs as JSON, with the versions they were run with."""
    path = folder / f"{name}.json"
    full = {**record, "versions": versions(), "cores": os.cpu_count()}
    path.write_text(json.dumps(full, indent=2) + "\n")
    return path


def judge(holds: Sequence[bool]) -> str:
    """Status of a claim, from the comparisons that it makes."""
    if all(holds):
        return HELD
    return IN_PART if any(holds) else NOT_HELD


def shown(value: float, form: str) -> str:
    """A number for a table; if not finite, the method did not finish in time."""
    return format(value, form) if math.isfinite(value) else "not done"


def write_page(path: Path, stories: Sequence[Story]) -> Path:
    """Write stories as one page that needs no other file and no network."""
    page = template("vhmc.lab.experiments").render(stories=stories, embedded=_embedded)
    path.write_text(page, encoding="utf-8")
    return path


def _embedded(image: Path) -> str:
    data = base64.b64encode(image.read_bytes()).decode()
    return f"data:image/png;base64,{data}"

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
    claims: tuple[Claim, ...] = ()
    remarks: tuple[str, ...] = ()


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


def save_figure(folder: Path, name: str, figure: Figure) -> Path:
    """Write a figure as PNG for the screen, whose path is returned, and as PDF."""
    path = folder / f"{name}.png"
    figure.savefig(path, dpi=160)
    # No date in the PDF: the same run writes the same file.
    figure.savefig(path.with_suffix(".pdf"), dpi=160, metadata={"CreationDate": None})
    return path


def save_table(folder: Path, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows with the same keys as CSV."""
    with (folder / f"{name}.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def save_run(
    folder: Path,
    name: str,
    settings: Any,
    seconds: float,
    story: Story,
    /,
    **details: Any,
) -> Story:
    """Write `run.json`; return the story with all facts for the end of its page.

    details: what the record has beside settings, claims and seconds.
    """
    claims = [claim._asdict() for panel in story.panels for claim in panel.claims]
    record = {
        "experiment": name,
        "is_quick": story.is_quick,
        "settings": asdict(settings),
        **details,
        "seconds": round(seconds, 1),
        "claims": claims,
    }
    save_record(folder, "run", record)
    chosen = {name: str(value) for name, value in asdict(settings).items()}
    more = {**story.facts, "seconds": f"{seconds:.0f}", **versions()}
    return story._replace(facts=chosen | more)


def save_record(folder: Path, name: str, record: Mapping[str, Any]) -> None:
    """Write settings, seeds and costs as JSON, with the versions they were run with."""
    full = {**record, "versions": versions(), "cores": os.cpu_count()}
    (folder / f"{name}.json").write_text(json.dumps(full, indent=2) + "\n")


def judge(holds: Sequence[bool]) -> str:
    """Status of a claim, from the comparisons that it makes."""
    if all(holds):
        return HELD
    return IN_PART if any(holds) else NOT_HELD


def shown(value: Any, form: str) -> str:
    """A number for a table; if not finite, the method did not finish in time."""
    return format(float(value), form) if math.isfinite(value) else "not done"


def write_page(path: Path, stories: Sequence[Story]) -> Path:
    """Write stories as one page that needs no other file and no network."""

    def embedded(image: Path) -> str:
        data = base64.b64encode(image.read_bytes()).decode()
        return f"data:image/png;base64,{data}"

    page = template("vhmc.lab.experiments").render(stories=stories, embedded=embedded)
    path.write_text(page, encoding="utf-8")
    return path

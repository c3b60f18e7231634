"""One page a person can read: each figure beside what the paper says about it."""

import base64
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jinja2

HELD, IN_PART, NOT_HELD = "held", "held in part", "not held"


class Claim(NamedTuple):
    """What the paper claims, and what came out here.

    sentence: the claim in our words.
    status: one of the three above.
    numbers: what it rests on.
    """

    sentence: str
    status: str
    numbers: str


class Panel(NamedTuple):
    """A figure with its claims.

    image: PNG file.
    alt: the figure in words, for who cannot see it.
    remarks: what its numbers can show, and what they cannot.
    """

    title: str
    image: Path
    alt: str
    claims: tuple[Claim, ...]
    remarks: tuple[str, ...]


class Story(NamedTuple):
    """An experiment on the page.

    lead: what was done, in a few sentences.
    table: rows that share their keys.
    facts: settings, data, costs: name and value.
    """

    title: str
    lead: str
    panels: tuple[Panel, ...]
    table: tuple[Mapping[str, Any], ...]
    facts: Mapping[str, Any]
    is_quick: bool


def judge(holds: Sequence[bool]) -> str:
    """Held, in part or not at all, from the comparisons that a claim makes."""
    if all(holds):
        return HELD
    return IN_PART if any(holds) else NOT_HELD


def shown(value: float, form: str) -> str:
    """A number for a table; what is not known was not done in time."""
    return format(value, form) if math.isfinite(value) else "not done"


def write_page(path: Path, stories: Sequence[Story]) -> Path:
    """Write a page that needs no other file and no network."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("vhmc.lab.experiments", "."), autoescape=True
    )
    environment.filters["embedded"] = _embedded
    page = environment.get_template("page.html").render(stories=stories)
    path.write_text(page, encoding="utf-8")
    return path


def _embedded(image: Path) -> str:
    data = base64.b64encode(image.read_bytes()).decode()
    return f"data:image/png;base64,{data}"

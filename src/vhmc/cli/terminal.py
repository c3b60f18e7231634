"""What the commands share: lines on the terminal, lists in options, errors."""

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any, NoReturn

import typer
from rich.console import Console

console = Console()
_is_debugging = ContextVar("is_debugging", default=False)


def say(line: str) -> None:
    """A line as it is."""
    console.print(line, soft_wrap=True, markup=False, highlight=False)


def fail(error: Any, code: int = 2) -> NoReturn:
    """One line in red, and the code: 2 for bad input.

    Within `debugging` the error is raised as it is, with its traceback.
    """
    if _is_debugging.get() and isinstance(error, BaseException):
        raise error
    Console(stderr=True).print(
        f"vhmc: {error}", style="red", soft_wrap=True, markup=False, highlight=False
    )
    raise typer.Exit(code)


@contextlib.contextmanager
def debugging(is_on: bool) -> Iterator[None]:
    """Whether errors are shown with where they came from."""
    token = _is_debugging.set(is_on)
    try:
        yield
    finally:
        _is_debugging.reset(token)


def names(text: str | None) -> tuple[str, ...] | None:
    """A list with commas between."""
    return None if text is None else tuple(part.strip() for part in text.split(","))


def numbers(
    option: str, text: str | None, kind: type, count: int | None = None
) -> tuple[Any, ...] | None:
    """Numbers with commas between."""
    if text is None:
        return None
    try:
        found = tuple(kind(part) for part in text.split(","))
    except ValueError:
        fail(f"{option} takes numbers with commas between them, got {text}")
    if count not in (None, len(found)):
        fail(f"{option} takes {count} numbers, got {text}")
    return found

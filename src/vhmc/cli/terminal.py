"""What the commands share: lines on the terminal, lists in options, errors."""

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

    With --debug the error is raised as it is, with its traceback.
    """
    if is_debugging() and isinstance(error, BaseException):
        raise error
    complain(error)
    raise typer.Exit(code)


def complain(error: Any, hint: str = "") -> None:
    """One line on standard error; of a long message the first and the last.

    hint: what to do to learn more.
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[0] if lines else type(error).__name__
    if len(lines) > 1:
        text, hint = f"{text} ... {lines[-1]}", "vhmc --debug shows all"
    text += f" ({hint})" if hint else ""
    Console(stderr=True).print(
        f"vhmc: {text}", style="red", soft_wrap=True, markup=False, highlight=False
    )


def debug(is_on: bool) -> None:
    """Show errors with where they came from, or no longer."""
    _is_debugging.set(is_on)


def is_debugging() -> bool:
    """Whether tracebacks are wanted."""
    return _is_debugging.get()


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

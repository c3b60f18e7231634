"""Print lines and errors, and parse lists in options, for all commands."""

from contextvars import ContextVar
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console

console = Console()
is_debugging = ContextVar("is_debugging", default=False)
"""Whether errors show their tracebacks."""
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
Budget = Annotated[int, typer.Option(help="Maximum number of evaluations.")]
Seed = Annotated[int, typer.Option(help="Seed of all random numbers.")]


def say(line: str) -> None:
    """Print a line without markup or wrapping."""
    console.print(line, soft_wrap=True, markup=False, highlight=False)


def fail(error: Any, code: int = 2) -> NoReturn:
    """Print the error in one line and exit, by default with 2, the code of bad input.

    With --debug an exception is raised with its traceback instead.
    """
    if is_debugging.get() and isinstance(error, BaseException):
        raise error
    complain(error)
    raise typer.Exit(code)


def complain(error: Any, hint: str = "") -> None:
    """Print one line on standard error: the first and last line of the message.

    hint: how to learn more.
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[0] if lines else type(error).__name__
    if len(lines) > 1:
        text, hint = f"{text} ... {lines[-1]}", "vhmc --debug shows all"
    text += f" ({hint})" if hint else ""
    Console(stderr=True).print(
        f"vhmc: {text}", style="red", soft_wrap=True, markup=False, highlight=False
    )


def names(text: str | None) -> tuple[str, ...] | None:
    """Names of a comma-separated list."""
    return None if text is None else tuple(part.strip() for part in text.split(","))


def numbers(
    option: str, text: str | None, kind: type, count: int | None = None
) -> tuple[Any, ...] | None:
    """Numbers of a comma-separated list; exit with an error if they are not.

    option: for the message.
    kind: `int` or `float`.
    count: how many there must be, if that matters.
    """
    if text is None:
        return None
    try:
        found = tuple(kind(part) for part in text.split(","))
    except ValueError:
        fail(f"{option} takes numbers with commas between them, got {text}")
    if count not in (None, len(found)):
        fail(f"{option} takes {count} numbers, got {text}")
    return found

"""Arguments of public functions: what cannot be is refused in one clear sentence."""

import os
from typing import Any

import numpy as np

LONGEST = 60
"""Characters of a wrong argument that a message shows."""


def shown(value: Any) -> str:
    """A value in one short line."""
    text = " ".join(repr(value).split())
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


def whole(name: str, value: Any, least: int = 0) -> int:
    """A whole number of Python's or NumPy's, or a ValueError that names it."""
    is_whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not is_whole:
        raise ValueError(f"{name} must be a whole number, got {shown(value)}")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {value}")
    return int(value)


def positive(name: str, value: Any) -> float:
    """A positive, finite number, or a ValueError that names it."""
    is_number = isinstance(value, int | float | np.integer | np.floating)
    if not is_number or isinstance(value, bool) or not 0 < value < np.inf:
        raise ValueError(f"{name} must be positive, got {shown(value)}")
    return float(value)


def path_or_none(name: str, value: Any) -> str | None:
    """The path of a file, or None."""
    if value is None:
        return None
    if not isinstance(value, str | os.PathLike):
        raise ValueError(f"{name} must be the path of a file, got {shown(value)}")
    path = os.fspath(value)
    if not isinstance(path, str) or not path.strip() or "\0" in path:
        raise ValueError(f"{name} must be the path of a file, got {shown(path)}")
    return path

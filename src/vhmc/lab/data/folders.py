"""Data that live beside the repository, never in it."""

import os
from pathlib import Path


def find_folder(variable: str, name: str, landmark: str) -> Path:
    """Folder that a variable names, or ../shared/`name` of here or of the code.

    landmark: a file that must be in it.
    """
    candidates = candidate_folders(variable, name)
    for candidate in candidates:
        if (candidate / landmark).is_file():
            return candidate
    raise FileNotFoundError(
        f"no {landmark} in {' or '.join(map(str, candidates))}: set {variable} to the "
        f"folder of the {name}"
    )


def candidate_folders(variable: str, name: str) -> list[Path]:
    """Where to look: the variable's folder alone if it is set."""
    if variable in os.environ:
        return [Path(os.environ[variable])]
    roots = [Path.cwd(), Path(__file__).resolve().parents[4]]
    return [root.parent / "shared" / name for root in roots]

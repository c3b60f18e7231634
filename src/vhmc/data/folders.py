"""Data that live beside the repository, never in it."""

import os
from pathlib import Path


def find_folder(variable: str, name: str, landmark: str) -> Path:
    """Folder that a variable names, or ../shared/`name` of here or of the code.

    landmark: a file that must be in it.
    """
    if variable in os.environ:
        candidates = [Path(os.environ[variable])]
    else:
        roots = [Path.cwd(), Path(__file__).resolve().parents[3]]
        candidates = [root.parent / "shared" / name for root in roots]
    for candidate in candidates:
        if (candidate / landmark).is_file():
            return candidate
    raise FileNotFoundError(
        f"no {landmark} in {' or '.join(map(str, candidates))}: set {variable} to the "
        f"folder of the {name}"
    )

"""A data set, with where it came from and whether it is the real one."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pooch

from vhmc.lab.data.folders import candidate_folders

REAL, STAND_IN = "real", "SIMULATED STAND-IN"


class Dataset(NamedTuple):
    """Rows and what must be said about them.

    x: one row an observation.
    y: labels 0 and 1, or nothing.
    kind: `real`, or in capitals that it is not.
    source: file or address it was read from.
    sha256: of that file, or of the array where the file is not in a fixed form.
    note: what a reader of a figure should know.
    """

    x: np.ndarray
    y: np.ndarray | None
    kind: str
    source: str
    sha256: str
    note: str

    @property
    def record(self) -> dict[str, str]:
        """Everything but the numbers."""
        return {
            "kind": self.kind,
            "source": self.source,
            "sha256": self.sha256,
            "note": self.note,
        }


def find(
    given: Path | None,
    name: str,
    read: Callable[[Path], Dataset],
    fetch: Callable[[], Dataset],
    simulate: Callable[[], Dataset],
) -> Dataset:
    """The file that is given, the one of a data folder, a download, a stand-in.

    given: a file of the user, or the folder it is in.
    name: of the file in a data folder.
    """
    if given is not None:
        path = given / name if given.is_dir() else given
        if not path.is_file():
            raise FileNotFoundError(f"there is no data file {path}")
        return read(path)
    for folder in candidate_folders("VHMC_DATA", "data"):
        if (folder / name).is_file():
            return read(folder / name)
    try:
        return fetch()
    except OSError:  # no network, or no answer
        return simulate()


def download(url: str, name: str, sha256: str | None) -> Path:
    """The user's cache, filled from the public origin; another content is an error."""
    known = None if sha256 is None else f"sha256:{sha256}"
    folder = pooch.os_cache("vhmc")
    pooch.get_logger().setLevel("WARNING")
    return Path(pooch.retrieve(url, known, fname=name, path=folder))


def labels(rng: np.random.Generator, logits: np.ndarray) -> np.ndarray:
    """Labels 0 and 1 of a logistic model, for data that are simulated."""
    return (rng.uniform(size=len(logits)) < 1 / (1 + np.exp(-logits))).astype(float)


def file_digest(path: Path) -> str:
    """SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def array_digest(array: np.ndarray) -> str:
    """SHA-256 of numbers in 64 bits, row by row."""
    return hashlib.sha256(np.ascontiguousarray(array, "<f8").tobytes()).hexdigest()

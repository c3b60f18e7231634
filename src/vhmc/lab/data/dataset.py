"""Find data sets, and say of each where it came from and whether it is real."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pooch

REAL, STAND_IN = "real", "SIMULATED STAND-IN"


class Dataset(NamedTuple):
    """Observations, and what must be said about them.

    x: one row per observation.
    y: labels 0 and 1, or none.
    kind: `real`, or in capitals that the data are simulated.
    source: file or address they were read from.
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
        names = "kind", "source", "sha256", "note"
        return {name: getattr(self, name) for name in names}


def find(
    given: Path | None,
    name: str,
    read: Callable[[Path], Dataset],
    fetch: Callable[[], Dataset] | None,
    simulate: Callable[[], Dataset],
) -> Dataset:
    """The first of: the file given, the data folder's, a download, a stand-in.

    given: a file of the user, or the folder it is in.
    name: of the file in a folder.
    fetch: if there is a server that has the data.
    """
    if given is not None:
        path = given / name if given.is_dir() else given
        if not path.is_file():
            raise FileNotFoundError(f"there is no data file {path}")
        return read(path)
    path = data_folder("VHMC_DATA") / name
    if path.is_file():
        return read(path)
    try:
        return fetch() if fetch else simulate()
    except OSError:  # no network, or no answer
        return simulate()


def data_folder(variable: str) -> Path:
    """The folder that an environment variable names, or else the user's cache."""
    return Path(os.environ.get(variable) or pooch.os_cache("vhmc"))


def find_folder(variable: str, landmark: str) -> Path:
    """The data folder, refused if the file `landmark` is not in it."""
    folder = data_folder(variable)
    if not (folder / landmark).is_file():
        raise FileNotFoundError(
            f"no {landmark} in {folder}: set {variable} to the folder that holds it"
        )
    return folder


def download(url: str, name: str, sha256: str | None) -> Path:
    """A file of the user's cache, downloaded if missing; a wrong digest is an error."""
    known = None if sha256 is None else f"sha256:{sha256}"
    pooch.get_logger().setLevel("WARNING")
    folder = pooch.os_cache("vhmc")
    return Path(pooch.retrieve(url, known, fname=name, path=folder))


def labels(rng: np.random.Generator, logits: np.ndarray) -> np.ndarray:
    """Simulated labels 0 and 1 of a logistic model."""
    return (rng.uniform(size=len(logits)) < 1 / (1 + np.exp(-logits))).astype(float)

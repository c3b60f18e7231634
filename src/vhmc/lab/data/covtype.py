"""Forest cover types of Roosevelt National Forest (Blackard and Dean, 1998; UCI)."""

import gzip
import hashlib
from pathlib import Path

import numpy as np

from vhmc.lab.data.dataset import (
    REAL,
    STAND_IN,
    Dataset,
    download,
    file_digest,
    find,
    labels,
)

URL = (
    "https://archive.ics.uci.edu/ml/machine-learning-databases/covtype/covtype.data.gz"
)
SHA256 = "0a9371cef7c964b5475d6053cc3e0894a5aa6f65ad1ed3ecb01c45aa96217945"
"""Of the text inside."""
NUM_ROWS, NUM_COLUMNS = 581_012, 54
LODGEPOLE = 2
"""The commonest type: the usual task is to tell it from the others."""


def load_covtype(given: Path | None = None) -> Dataset:
    """581,012 patches of forest with 54 features each; lodgepole pine or not?

    given: `covtype.npz`, or the folder it is in.
    """
    return find(given, "covtype.npz", _read, _fetch, _simulated)


def _read(path: Path) -> Dataset:
    with np.load(path) as file:
        x, kind = file["X"].astype(float), file["cover_type"]
    return _labelled(x, kind, path.name, file_digest(path))


def _labelled(x: np.ndarray, kind: np.ndarray, source: str, digest: str) -> Dataset:
    y = (kind == LODGEPOLE).astype(float)
    return Dataset(x, y, REAL, source, digest, "Covertype, UCI")


def _fetch() -> Dataset:
    path = download(URL, "covtype.data.gz", None)
    text = gzip.decompress(path.read_bytes())
    if hashlib.sha256(text).hexdigest() != SHA256:
        raise ValueError(f"{URL} is not the file that was expected")
    numbers = np.array(text.replace(b"\n", b",").split(b",")[:-1], dtype=float)
    rows = numbers.reshape(-1, NUM_COLUMNS + 1)
    return _labelled(rows[:, :-1], rows[:, -1], URL, SHA256)


def _simulated() -> Dataset:
    """Features and labels of the same shape, from a logistic model."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((NUM_ROWS, NUM_COLUMNS))
    logits = x @ rng.normal(0, 0.2, NUM_COLUMNS)
    y = labels(rng, logits)
    note = "Covertype was not to be had: simulated numbers of its shape"
    return Dataset(x, y, STAND_IN, "simulated, seed 0", "", note)

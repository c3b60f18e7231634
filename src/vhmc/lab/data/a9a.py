"""The a9a data: who earns more than 50,000 dollars (UCI Adult, compiled by LIBSVM)."""

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

URL = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/a9a"
SHA256 = "f5d5ffd8d865ff41328e7ee043e4b020816914ff6843ff15b98905ddbedce906"
NUM_ROWS, NUM_COLUMNS = 32561, 123


def load_a9a(given: Path | None = None) -> Dataset:
    """Training part: 32,561 rows of 123 binary features.

    given: `a9a.npz`, the original text, or a folder with the first.
    """
    return find(given, "a9a.npz", _read, _fetch, _simulated)


def _read(path: Path) -> Dataset:
    if path.suffix == ".npz":
        with np.load(path) as file:
            x, y = file["X_train"].astype(float), (file["y_train"] > 0).astype(float)
    else:
        x, y = _parse(path)
    return Dataset(x, y, REAL, path.name, file_digest(path), "a9a, training part")


def _fetch() -> Dataset:
    path = download(URL, "a9a.svmlight", SHA256)
    return _read(path)._replace(source=URL)


def _parse(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Rows of `label index:1 index:1 ...`, indices from 1."""
    lines = path.read_text().splitlines()
    x, y = np.zeros((len(lines), NUM_COLUMNS)), np.zeros(len(lines))
    for row, line in enumerate(lines):
        label, *entries = line.split()
        y[row] = float(label) > 0
        for entry in entries:
            column, value = entry.split(":")
            x[row, int(column) - 1] = float(value)
    return x, y


def _simulated() -> Dataset:
    """Binary features and labels of the same shape, from a logistic model."""
    rng = np.random.default_rng(0)
    shares = rng.uniform(0.02, 0.4, NUM_COLUMNS)
    x = (rng.uniform(size=(NUM_ROWS, NUM_COLUMNS)) < shares).astype(float)
    logits = x @ rng.normal(0, 0.5, NUM_COLUMNS) - 1.5
    y = labels(rng, logits)
    note = "a9a was not to be had: simulated numbers of its shape"
    return Dataset(x, y, STAND_IN, "simulated, seed 0", "", note)

"""Three tables with labels 0 and 1: a9a, Covertype and nycflights13.

Each loader takes `given`, a file or the folder that holds it, and otherwise looks where
`vhmc.lab.data.dataset.find` says.
"""

import gzip
import hashlib
from functools import partial
from pathlib import Path

import numpy as np
import pooch

from vhmc.lab.data.dataset import REAL, STAND_IN, Dataset, download, find, labels

A9A_URL = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/a9a"
A9A_SHA256 = "f5d5ffd8d865ff41328e7ee043e4b020816914ff6843ff15b98905ddbedce906"
A9A_SHAPE = 32_561, 123
COVTYPE_URL = (
    "https://archive.ics.uci.edu/ml/machine-learning-databases/covtype/covtype.data.gz"
)
COVTYPE_SHA256 = "0a9371cef7c964b5475d6053cc3e0894a5aa6f65ad1ed3ecb01c45aa96217945"
"""Of the decompressed text."""
COVTYPE_SHAPE = 581_012, 54
LODGEPOLE = 2
"""The commonest cover type: the usual task is to tell it from the others."""
FLIGHTS_SHAPE = 325_724, 42


def load_a9a(given: Path | None = None) -> Dataset:
    """Who earns more than 50,000 dollars (UCI Adult, compiled by LIBSVM).

    The training part: 32,561 people with 123 binary features.

    given: `a9a.npz` or its folder, or LIBSVM's text file.
    """
    return find(given, "a9a.npz", _read_a9a, _fetch_a9a, _simulated_a9a)


def load_covtype(given: Path | None = None) -> Dataset:
    """Lodgepole pine or not (Blackard and Dean, 1998; UCI).

    581,012 patches of Roosevelt National Forest with 54 features.

    given: `covtype.npz` or its folder.
    """
    simulate = partial(_normal_stand_in, "Covertype", COVTYPE_SHAPE, 0.0)
    return find(given, "covtype.npz", _read_covtype, _fetch_covtype, simulate)


def load_nycflights(given: Path | None = None) -> Dataset:
    """Flights out of New York in 2013: late by more than a quarter of an hour or not.

    325,724 flights with 42 features, the weather by the hour among them. The table was
    derived from two others, and no server has it.

    given: `nycflights13_delay.npz` or its folder.
    """
    simulate = partial(_normal_stand_in, "nycflights13", FLIGHTS_SHAPE, -1.2)
    return find(given, "nycflights13_delay.npz", _read_flights, None, simulate)


def _read_a9a(path: Path) -> Dataset:
    if path.suffix == ".npz":
        with np.load(path) as file:
            x, y = file["X_train"].astype(float), (file["y_train"] > 0).astype(float)
    else:
        x, y = _parse_svmlight(path)
    return Dataset(x, y, REAL, path.name, pooch.file_hash(path), "a9a, training part")


def _fetch_a9a() -> Dataset:
    path = download(A9A_URL, "a9a.svmlight", A9A_SHA256)
    return _read_a9a(path)._replace(source=A9A_URL)


def _parse_svmlight(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Lines of `label index:1 index:1 ...`, indices from 1."""
    lines = [line.split() for line in path.read_text().splitlines()]
    x = np.zeros((len(lines), A9A_SHAPE[1]))
    for row, (_, *entries) in zip(x, lines, strict=True):
        for column, value in (entry.split(":") for entry in entries):
            row[int(column) - 1] = float(value)
    return x, np.array([float(label) > 0 for label, *_ in lines], dtype=float)


def _simulated_a9a() -> Dataset:
    """Binary features of different frequencies, labels from a logistic model."""
    rng = np.random.default_rng(0)
    frequencies = rng.uniform(0.02, 0.4, A9A_SHAPE[1])
    x = (rng.uniform(size=A9A_SHAPE) < frequencies).astype(float)
    logits = x @ rng.normal(0, 0.5, A9A_SHAPE[1]) - 1.5
    return _stand_in("a9a", x, labels(rng, logits))


def _read_covtype(path: Path) -> Dataset:
    with np.load(path) as file:
        x, kind = file["X"].astype(float), file["cover_type"]
    return _covtype(x, kind, path.name, pooch.file_hash(path))


def _fetch_covtype() -> Dataset:
    path = download(COVTYPE_URL, "covtype.data.gz", None)
    text = gzip.decompress(path.read_bytes())
    if hashlib.sha256(text).hexdigest() != COVTYPE_SHA256:
        raise ValueError(f"{COVTYPE_URL} is not the file that was expected")
    numbers = np.array(text.replace(b"\n", b",").split(b",")[:-1], dtype=float)
    rows = numbers.reshape(-1, COVTYPE_SHAPE[1] + 1)
    return _covtype(rows[:, :-1], rows[:, -1], COVTYPE_URL, COVTYPE_SHA256)


def _covtype(x: np.ndarray, kind: np.ndarray, source: str, digest: str) -> Dataset:
    y = (kind == LODGEPOLE).astype(float)
    return Dataset(x, y, REAL, source, digest, "Covertype, UCI")


def _read_flights(path: Path) -> Dataset:
    with np.load(path) as file:
        x, y = file["X"].astype(float), file["y"].astype(float)
    return Dataset(x, y, REAL, path.name, pooch.file_hash(path), "nycflights13")


def _normal_stand_in(name: str, shape: tuple[int, int], intercept: float) -> Dataset:
    """Normal features, labels from a logistic model."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal(shape)
    logits = x @ rng.normal(0, 0.2, shape[1]) + intercept
    return _stand_in(name, x, labels(rng, logits))


def _stand_in(name: str, x: np.ndarray, y: np.ndarray) -> Dataset:
    note = f"{name} could not be found or downloaded: simulated data of its shape"
    return Dataset(x, y, STAND_IN, "simulated, seed 0", "", note)

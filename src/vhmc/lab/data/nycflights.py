"""Arrival delays of flights out of New York in 2013 (nycflights13), by the hour."""

from pathlib import Path

import numpy as np

from vhmc.lab.data.dataset import REAL, STAND_IN, Dataset, file_digest, find, labels

NUM_ROWS, NUM_COLUMNS = 325_724, 42


def load_nycflights(given: Path | None = None) -> Dataset:
    """325,724 flights with 42 features each; late by more than a quarter of an hour?

    given: `nycflights13_delay.npz`, or the folder it is in.
    """
    return find(given, "nycflights13_delay.npz", _read, _fetch, _simulated)


def _read(path: Path) -> Dataset:
    with np.load(path) as file:
        x, y = file["X"].astype(float), file["y"].astype(float)
    return Dataset(x, y, REAL, path.name, file_digest(path), "nycflights13")


def _fetch() -> Dataset:
    raise OSError("the table is derived from two others, and served nowhere")


def _simulated() -> Dataset:
    """Features and labels of the same shape, from a logistic model."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((NUM_ROWS, NUM_COLUMNS))
    logits = x @ rng.normal(0, 0.2, NUM_COLUMNS) - 1.2
    y = labels(rng, logits)
    note = "nycflights13 was not to be had: simulated numbers of its shape"
    return Dataset(x, y, STAND_IN, "simulated, seed 0", "", note)

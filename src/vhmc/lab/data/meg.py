"""Ten channels of the magnetoencephalogram of Vigario et al. (1997)."""

import hashlib
from pathlib import Path

import numpy as np
import pooch

from vhmc.lab.data.dataset import STAND_IN, Dataset, download, find

URL = (
    "https://raw.githubusercontent.com/maurilorenzo/sgbd/"
    "58201eeff6e137991ec69577e4a266c83c1c9c56/ica/data/MEG_data_reduced.csv"
)
SHA256_OF_NUMBERS = "c7039cf47219ce94d54b85ad43b593d44e96c34dc6c71951b3bb210e914dc5dc"
NUM_ROWS, NUM_CHANNELS = 17730, 10
KIND = "real, 10 of 122 channels"
NOTE = (
    "that these are the first channels of the recording, in their order, is not "
    "verified; channels are centred and scaled to unit variance here"
)


def load_meg(num_channels: int = 5, given: Path | None = None) -> Dataset:
    """The first channels, standardised: 17,730 rows.

    given: `meg_vigario_10ch.npz`, or a folder with it.
    """
    if not 1 <= num_channels <= NUM_CHANNELS:
        raise ValueError(f"there are {NUM_CHANNELS} channels, not {num_channels}")
    found = find(given, "meg_vigario_10ch.npz", _read, _fetch, _simulated)
    x = found.x[:, :num_channels]
    return found._replace(x=(x - x.mean(axis=0)) / x.std(axis=0))


def _read(path: Path) -> Dataset:
    with np.load(path) as file:
        x = file["X"].T
    return Dataset(x, None, KIND, path.name, pooch.file_hash(path), NOTE)


def _fetch() -> Dataset:
    path = download(URL, "meg_vigario_10ch.csv", None)
    x = np.loadtxt(path, delimiter=",", skiprows=1)
    digest = hashlib.sha256(np.ascontiguousarray(x, "<f8").tobytes()).hexdigest()
    if digest != SHA256_OF_NUMBERS:
        raise ValueError(f"{path} from {URL} does not hold the numbers expected")
    return Dataset(x.T, None, KIND, URL, digest, NOTE)


def _simulated() -> Dataset:
    """Heavy-tailed sources, mixed."""
    rng = np.random.default_rng(0)
    sources = rng.logistic(size=(NUM_ROWS, NUM_CHANNELS))
    sources *= rng.gamma(2.0, size=(NUM_ROWS, 1))
    x = sources @ rng.standard_normal((NUM_CHANNELS, NUM_CHANNELS))
    missing = "the recording could not be found or downloaded"
    note = f"{missing}: simulated data of its shape; {NOTE}"
    return Dataset(x, None, STAND_IN, "simulated, seed 0", "", note)

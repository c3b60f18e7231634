"""Read the data of a structured posterior."""

import json

import numpy as np

from vhmc.lab.data.dataset import find_folder


def read(name: str) -> dict[str, np.ndarray]:
    """Arrays of a JSON file in the folder that VHMC_POSTERIORS names."""
    path = f"structured/data/{name}.json"
    text = (find_folder("VHMC_POSTERIORS", path) / path).read_text()
    return {key: np.array(value) for key, value in json.loads(text).items()}

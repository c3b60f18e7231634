"""The user's names and values on one side, a flat free vector on the other."""

import abc
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


class Space(abc.ABC):
    """How the parameters of a model lie in the vector that the method works on.

    names, shapes: of the parameters, in the user's space.
    free_sizes: of the parameters, in the free vector.
    start: initial values as a free vector.
    dims, coords: names of axes, and labels along them, as ArviZ takes them.
    """

    names: list[str]
    shapes: dict[str, tuple[int, ...]]
    free_sizes: list[int]
    start: np.ndarray
    dims: dict[str, list[str]]
    coords: dict[str, Any]

    @property
    def dim(self) -> int:
        """Length of the free vector."""
        return len(self.start)

    def label(self, index: int) -> str:
        """Parameter that an entry of the free vector belongs to, and its place."""
        for name, size in zip(self.names, self.free_sizes, strict=True):
            if index < size:
                labels = self.labels(name, self.shapes[name])
                # A simplex, say, has fewer free entries than entries.
                return labels[index] if len(labels) == size else name
            index -= size
        raise IndexError("beyond the last parameter")

    def labels(self, name: str, shape: tuple[int, ...]) -> list[str]:
        """Names of the entries of a parameter, as ArviZ's tables have them."""
        if not shape:
            return [name]
        dims = self.dims.get(name) or [""] * len(shape)
        axes = [
            [str(entry) for entry in self.coords.get(dim, range(size))]
            for dim, size in zip(dims, shape, strict=True)
        ]
        return [f"{name}[{', '.join(place)}]" for place in itertools.product(*axes)]

    @abc.abstractmethod
    def constrain(self, thetas: np.ndarray) -> dict[str, np.ndarray]:
        """Parameters in the user's space, for vectors along the last axis."""

    def expand(self, thetas: np.ndarray) -> dict[str, np.ndarray]:
        """Parameters and all that the model derives from them, by name.

        It may run the model's forward part once for each vector, not counted.
        """
        return self.constrain(thetas)

    def log_likelihood(self, thetas: np.ndarray) -> dict[str, np.ndarray]:
        """Log likelihoods of single observations by name; none where unknown."""
        return {}

    def flatten(self, init: Any) -> np.ndarray:
        """Values in the user's space as a free vector."""
        raise ValueError("this model takes no values to start at")

    def values(self, thetas: np.ndarray) -> np.ndarray:
        """All parameters in the user's space, flat along the last axis."""
        draws = self.constrain(thetas)
        leading = thetas.shape[:-1]
        return np.concatenate([v.reshape(*leading, -1) for v in draws.values()], -1)


def in_words(shapes: Mapping[str, Sequence[int]]) -> str:
    """Names with their shapes, `mu, theta[8]`."""
    return ", ".join(f"{n}{list(s) if s else ''}" for n, s in shapes.items())

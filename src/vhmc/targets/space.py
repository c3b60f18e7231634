"""The user's names and values on one side, a flat free vector on the other."""

import abc
from typing import Any

import numpy as np


class Space(abc.ABC):
    """How the parameters of a model lie in the vector that the method works on.

    names, shapes: of the parameters, in the user's space.
    start: initial values as a free vector.
    dims, coords: names of axes, and labels along them, as ArviZ takes them.
    """

    names: list[str]
    shapes: dict[str, tuple[int, ...]]
    start: np.ndarray
    dims: dict[str, list[str]]
    coords: dict[str, Any]

    @property
    def dim(self) -> int:
        """Length of the free vector."""
        return len(self.start)

    @abc.abstractmethod
    def label(self, index: int) -> str:
        """Name of the parameter that an entry of the free vector belongs to."""

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

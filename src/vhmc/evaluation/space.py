"""Translate between the user's named parameters and the sampler's flat vector."""

import abc
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np


class Space(abc.ABC):
    """Layout of a model's parameters in one unconstrained vector.

    A front end sets the attributes and defines `constrain`. The other methods have
    defaults; it overrides those for which its library offers more.

    names: of the parameters, in order.
    shapes: of the parameters in the user's space, by name.
    unconstrained_sizes: entries of the unconstrained vector that each parameter takes.
    start: initial values as an unconstrained vector.
    dims, coords: names of axes, and labels along them, as ArviZ takes them.
    """

    names: list[str]
    shapes: dict[str, tuple[int, ...]]
    unconstrained_sizes: list[int]
    start: np.ndarray
    dims: dict[str, list[str]]
    coords: dict[str, Any]

    @property
    def dim(self) -> int:
        """Length of the unconstrained vector."""
        return len(self.start)

    def label(self, index: int) -> str:
        """Name of the parameter, with indices, that an unconstrained entry is part of.

        The name alone where entries do not correspond one to one, as in a simplex.
        """
        for name, size in zip(self.names, self.unconstrained_sizes, strict=True):
            if index < size:
                labels = self.labels(name, self.shapes[name])
                return labels[index] if len(labels) == size else name
            index -= size
        raise IndexError("beyond the last parameter")

    def labels(self, name: str, shape: tuple[int, ...]) -> list[str]:
        """Names of the entries of a parameter, as in ArviZ's tables."""
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
        """Parameters in the user's space, by name.

        thetas: unconstrained vectors along the last axis, after any number of axes
            (chains and draws, usually), which the values have in front as well.
        """

    def expand(self, thetas: np.ndarray) -> dict[str, np.ndarray]:
        """Parameters and every quantity that the model derives from them, by name.

        May run the forward part of the model once per vector; not counted as
        evaluations.
        """
        return self.constrain(thetas)

    def log_likelihood(self, thetas: np.ndarray) -> dict[str, np.ndarray]:
        """Pointwise log likelihoods by name; empty if the model does not give them."""
        return {}

    def draw_prior(self, rng: np.random.Generator, number: int) -> np.ndarray | None:
        """Unconstrained draws of the prior, one a row; None where it is not known."""
        return None

    def flatten(self, init: Any) -> np.ndarray:
        """Unconstrained vector of values in the user's space."""
        raise ValueError("this model takes no values to start at")

    def values(self, thetas: np.ndarray) -> np.ndarray:
        """All parameters in the user's space, flat along the last axis."""
        draws = self.constrain(thetas)
        leading = thetas.shape[:-1]
        return np.concatenate([v.reshape(*leading, -1) for v in draws.values()], -1)

    def map_rows(
        self, function: Callable[[np.ndarray], Mapping[str, Any]], thetas: np.ndarray
    ) -> dict[str, np.ndarray]:
        """Apply a function of vectors of shape (n, dim) under any leading axes.

        function: returns named arrays whose first axis has length n.
        """
        thetas = np.asarray(thetas)
        leading = thetas.shape[:-1]
        values = function(thetas.reshape(-1, self.dim))
        return {
            name: np.asarray(value).reshape(*leading, *np.shape(value)[1:])
            for name, value in values.items()
        }


def in_words(shapes: Mapping[str, Sequence[int]]) -> str:
    """Names with their shapes, such as `mu, theta[8]`."""
    return ", ".join(f"{n}{list(s) if s else ''}" for n, s in shapes.items())

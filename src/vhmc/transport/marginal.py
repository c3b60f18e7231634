"""The abstract marginal energy of hubs, all other parameters integrated out."""

import abc

import numpy as np


class AbstractMarginal(abc.ABC):
    """Marginal energy of hubs.

    low, high: range of hubs in which it may be used.
    scale: width of the evaluated hubs; zero if it does not bound the density's own.
    """

    low: np.ndarray
    high: np.ndarray
    scale: np.ndarray

    @abc.abstractmethod
    def __call__(self, c: np.ndarray) -> np.ndarray:
        """Energies of hubs, one point a row."""

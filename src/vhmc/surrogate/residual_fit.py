"""How a family of residuals is fitted: the abstract class, and its held-out error."""

import abc
from typing import NamedTuple

import numpy as np

from vhmc.surrogate.residual import AbstractResidual
from vhmc.surrogate.training_set import TrainingSet

WORST = 8.0
"""Times the mean error that the worst coordinate may have."""


class Fitted(NamedTuple):
    """A residual, and its mean squared score error by dimension on held-out points."""

    residual: AbstractResidual
    error: float


class AbstractResidualFit(abc.ABC):
    """Fits one family of residuals to a training set that grows from fit to fit."""

    @abc.abstractmethod
    def fit(
        self,
        rng: np.random.Generator,
        training: TrainingSet,
        is_out: np.ndarray,
        *,
        redraw: bool,
        choose_anew: bool,
        least_ridge: float,
    ) -> Fitted:
        """The residual of this family for all points.

        is_out: points to be held out wherever something is chosen.
        redraw: the transport map has changed, so nothing of the last fit holds.
        choose_anew: choose hyper-parameters again.
        least_ridge: raised while draws of the surrogate fall where it is too low.
        """

    @property
    def needs_affine(self) -> bool:
        """Whether a curved map would keep the family from being fitted."""
        return False

    @abc.abstractmethod
    def reset(self) -> None:
        """Forget the last fit: the transport map does without a residual for now."""


def hold_out(rng: np.random.Generator, training: TrainingSet) -> np.ndarray:
    """Which points to hold out: a quarter of the typical ones."""
    return training.is_typical & (rng.uniform(size=len(training.weight)) < 0.25)


def zero_error(training: TrainingSet, is_out: np.ndarray) -> float:
    """Held-out score error without a residual; infinite if the points are too few."""
    if is_out.sum() < 4:
        return np.inf
    return mean_error(training.grad[is_out], training.weight[is_out])


def mean_error(errors: np.ndarray, weight: np.ndarray) -> float:
    """Weighted mean of squared score errors by dimension.

    That of the worst coordinate counts as well: means of hubs depend on a few
    coordinates among many.

    errors: one row a point.
    """
    by_coordinate = weight @ errors**2 / weight.sum()
    return float(max(np.mean(by_coordinate), np.max(by_coordinate) / WORST))

"""Fit the residual of a model that a quantity separates from its data."""

from typing import NamedTuple

import numpy as np

from vhmc.structure.separated import Separated
from vhmc.surrogate.observable_fit import affine_layer
from vhmc.surrogate.residual import ZeroResidual
from vhmc.surrogate.residual_fit import AbstractResidualFit, Fitted, mean_error
from vhmc.surrogate.separable import SeparableEnergy, SeparableResidual
from vhmc.surrogate.separable_fit import Group, fit_separable, groups_of
from vhmc.surrogate.training_set import TrainingSet
from vhmc.transport.graph import Graph

FEWEST = 32
"""Points to which the energy is fitted, at least."""
MAX_POINTS = 160
"""The same at most: each datum has one unknown, all else is shared."""
USABLE = 0.1
"""Weight of a point that is used, over the largest one."""
ACCURATE = 1e-3
"""Squared score error by dimension at which the energy is not fitted again."""


class Model(NamedTuple):
    """What is known of a separable model.

    separated: the quantity.
    groups: of effects.
    scalars: parameters that have functions of their own.
    """

    separated: Separated
    groups: list[Group]
    scalars: tuple[int, ...]


def separable_model(graph: Graph, dim: int) -> Model | None:
    """The model of a graph; None if it has links that no effects explain."""
    if graph.separated is None:
        return None
    groups = groups_of(graph.separated, dim, graph.links)
    return None if groups is None else Model(graph.separated, groups, graph.scalars)


class SeparatedFit(AbstractResidualFit):
    """Fits of a separable energy; the map must be affine.

    model: that is fitted.
    """

    def __init__(self, model: Model):
        self._model = model
        self._energy: SeparableEnergy | None = None

    @property
    def needs_affine(self) -> bool:
        return True

    def reset(self) -> None:
        """Nothing: the energy is one of the parameters, whatever the map."""

    def serves(self, training: TrainingSet) -> bool:
        """Whether there is what it takes: an affine map, and points."""
        is_affine = affine_layer(training) is not None
        return is_affine and len(_usable(training)) >= FEWEST

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
        """The energy so far where it predicts the points held out, else a new one."""
        if redraw:
            self._energy = None  # later points tell more of the tails
        error = self.error_of(rng, training, is_out)
        if self._energy is None:
            return Fitted(ZeroResidual(), np.inf)
        return Fitted(self._residual(training), error)

    def error_of(
        self, rng: np.random.Generator, training: TrainingSet, is_out: np.ndarray
    ) -> float:
        """Score error at the points held out; fits a new energy if it is large."""
        if not is_out.any():
            return np.inf
        error = self._error(training, training.where(is_out))
        if not error <= ACCURATE:
            self._refit(rng, training.where(~is_out))
            error = self._error(training, training.where(is_out))
        return error

    def _refit(self, rng: np.random.Generator, training: TrainingSet) -> None:
        layer, usable = affine_layer(training), _usable(training)
        assert layer is not None
        chosen = rng.permutation(usable)[:MAX_POINTS]
        x = training.x[chosen]
        grads = layer.push_forward(x, training.grad[chosen] + x)
        model = self._model
        try:
            self._energy = fit_separable(
                *(model.separated, model.groups, layer.forward(x), grads),
                model.scalars,
            )
        except np.linalg.LinAlgError:
            self._energy = None

    def _residual(self, training: TrainingSet) -> SeparableResidual:
        layer = affine_layer(training)
        assert layer is not None and self._energy is not None
        raw = SeparableResidual(self._energy, np.zeros(()), layer)
        some = np.flatnonzero(training.is_typical)[-FEWEST:]
        origin = np.median(raw.energies(training.x[some]) - training.energy[some])
        return SeparableResidual(self._energy, np.asarray(origin), layer)

    def _error(self, training: TrainingSet, out: TrainingSet) -> float:
        if self._energy is None:
            return np.inf
        residual = self._residual(training)
        return mean_error(out.grad - residual.grads(out.x), out.weight)


def _usable(training: TrainingSet) -> np.ndarray:
    heavy = training.weight > USABLE * training.weight.max(initial=0.0)
    return np.flatnonzero(heavy & training.is_typical)

"""Let two families of residuals compete by their held-out score error."""

from typing import Any

import numpy as np

from vhmc.evaluation.observable import Observable
from vhmc.surrogate.network_fit import NetworkFit
from vhmc.surrogate.observable_fit import ObservableFit
from vhmc.surrogate.residual_fit import AbstractResidualFit, Fitted
from vhmc.surrogate.separated_fit import Model, SeparatedFit
from vhmc.surrogate.training_set import TrainingSet

ENOUGH = 0.01
"""Squared score error of a separable energy that a network would hardly lower."""


class CompetingFit(AbstractResidualFit):
    """A family that knows the model against a network.

    The better one is used until the next comparison.

    informed: emulated outputs, or a separable energy.
    capacity: nodes of the network, at most.
    enough: error of that family at which no network is tried.
    """

    def __init__(
        self,
        informed: ObservableFit | SeparatedFit,
        capacity: int,
        enough: float = 0.0,
    ):
        self._informed_fit = informed
        self._network_fit = NetworkFit(capacity)
        self._is_informed, self._enough = True, enough

    @property
    def needs_affine(self) -> bool:
        """Until the network has won: only an affine map serves the other family."""
        return self._is_informed

    def reset(self) -> None:
        self._informed_fit.reset()
        self._network_fit.reset()

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
        """Fit both where something is chosen, else the one that was better."""
        options: dict[str, Any] = {"redraw": redraw, "choose_anew": choose_anew}
        options["least_ridge"] = least_ridge
        is_open = redraw or choose_anew
        informed = networked = None
        if self._informed_fit.serves(training) and (is_open or self._is_informed):
            informed = self._informed_fit.fit(rng, training, is_out, **options)
            if informed.error <= self._enough:
                self._is_informed = True
                return informed
        if informed is None or is_open or not self._is_informed:
            networked = self._network_fit.fit(rng, training, is_out, **options)
        if informed is None:
            assert networked is not None
            return networked
        if networked is not None:
            self._is_informed = informed.error < networked.error
        if not self._is_informed:
            assert networked is not None
            return networked
        return informed


def default_fit(
    observable: Observable | None, capacity: int, model: Model | None = None
) -> AbstractResidualFit:
    """The family of a target: a network, against one that knows the model if any does.

    observable: of a target whose outputs are known.
    model: of a target that a quantity separates from its data.
    """
    if observable is not None:
        return CompetingFit(ObservableFit(observable), capacity)
    if model is not None:
        return CompetingFit(SeparatedFit(model), capacity, ENOUGH)
    return NetworkFit(capacity)

"""Let two families of residuals compete by their held-out score error."""

from typing import Any

import numpy as np

from vhmc.evaluation.observable import Observable
from vhmc.surrogate.network_fit import NetworkFit
from vhmc.surrogate.observable_fit import ObservableFit
from vhmc.surrogate.residual_fit import AbstractResidualFit, Fitted
from vhmc.surrogate.training_set import TrainingSet


class CompetingFit(AbstractResidualFit):
    """Emulated outputs against a network; the better one until the next comparison.

    observable: data and prior of the target.
    capacity: nodes of the network, at most.
    """

    def __init__(self, observable: Observable, capacity: int):
        self._observable_fit = ObservableFit(observable)
        self._network_fit = NetworkFit(capacity)
        self._emulates = True

    @property
    def needs_affine(self) -> bool:
        """Until the network has won: only an affine map serves the emulator."""
        return self._emulates

    def reset(self) -> None:
        self._observable_fit.reset()
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
        emulated = networked = None
        if self._observable_fit.serves(training) and (is_open or self._emulates):
            emulated = self._observable_fit.fit(rng, training, is_out, **options)
        if emulated is None or is_open or not self._emulates:
            networked = self._network_fit.fit(rng, training, is_out, **options)
        if emulated is None:
            assert networked is not None
            return networked
        if networked is not None:
            self._emulates = emulated.error < networked.error
        if not self._emulates:
            assert networked is not None
            return networked
        return emulated


def default_fit(observable: Observable | None, capacity: int) -> AbstractResidualFit:
    """The family of a target: both if its outputs are known."""
    if observable is None:
        return NetworkFit(capacity)
    return CompetingFit(observable, capacity)

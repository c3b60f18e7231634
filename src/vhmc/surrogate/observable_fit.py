"""Fit the residual of a target with known normal errors, by emulating its outputs."""

import numpy as np

from vhmc.evaluation.observable import Observable
from vhmc.surrogate.emulator_fit import Design, Measured, design, influence, solved
from vhmc.surrogate.observable import ObservableResidual
from vhmc.surrogate.residual import ZeroResidual
from vhmc.surrogate.residual_fit import AbstractResidualFit, Fitted, mean_error
from vhmc.surrogate.training_set import TrainingSet
from vhmc.transport.affine import Affine

FEWEST = 24
"""Points with outputs below which none are emulated."""
INCONSISTENT = 1e-3
"""Spread of an energy less prior and misfit, over that of the energy, which shows that
outputs and energies are of different models."""


class ObservableFit(AbstractResidualFit):
    """Fits of emulated outputs; the map must be affine.

    observable: data and prior.
    """

    def __init__(self, observable: Observable):
        self._observable = observable
        self._design: Design | None = None
        self._error = np.inf
        self._is_checked = False

    def reset(self) -> None:
        """Forget the last design."""
        self._design = None

    def serves(self, training: TrainingSet) -> bool:
        """Whether there is what it takes: outputs, and an affine map."""
        return (
            training.outputs is not None
            and affine_layer(training) is not None
            and int(has_outputs(training).sum()) >= FEWEST
        )

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
        """Choose groups, weights and ridges if asked, then solve for all points."""
        layer, known = affine_layer(training), has_outputs(training)
        if layer is None or not known.any() or (is_out & known).sum() < 4:
            return Fitted(ZeroResidual(), np.inf)
        points = self._measured(training, layer, known)
        if redraw or choose_anew or self._design is None:
            self._design, trial = design(rng, points, is_out[known])
            out = training.where(is_out & known)
            residual = self._residual(trial, layer)
            errors = out.grad - residual.grads(out.x)
            self._error = mean_error(errors, out.weight)
        return Fitted(self._residual(solved(self._design, points), layer), self._error)

    def _residual(self, emulator, layer: Affine) -> ObservableResidual:
        _, _, prior, prior_rows = self._observable
        return ObservableResidual(emulator, layer, prior, prior_rows)

    def _measured(
        self, training: TrainingSet, layer: Affine, known: np.ndarray
    ) -> Measured:
        assert training.outputs is not None
        theta = layer.forward(training.x[known])
        misfit = self._observable.misfit(training.outputs[known])
        if not self._is_checked:
            self._check(training.where(known), theta, misfit)
        return Measured(theta, misfit, influence(misfit))

    def _check(
        self, training: TrainingSet, theta: np.ndarray, misfit: np.ndarray
    ) -> None:
        """Refuse outputs that do not give the energies."""
        energy = training.energy + 0.5 * np.sum(training.x**2, axis=1)
        rest = energy - self._observable.prior_rows(theta)[0]
        rest -= 0.5 * np.sum(misfit**2, axis=1)
        if np.std(rest) > INCONSISTENT * max(np.std(energy), 1.0):
            raise ValueError(
                "the outputs do not give the model's energies: prior and misfit are "
                f"off by {np.std(rest):.3g} nats from point to point"
            )
        self._is_checked = True


def affine_layer(training: TrainingSet) -> Affine | None:
    """The transport map, if it is one affine layer."""
    layers = () if training.transport is None else training.transport.layers
    first = layers[0] if len(layers) == 1 else None
    return first if isinstance(first, Affine) else None


def has_outputs(training: TrainingSet) -> np.ndarray:
    """Which points have outputs, and an energy that the map did not lose."""
    assert training.outputs is not None
    is_measured = np.isfinite(training.outputs).all(axis=1)
    return is_measured & np.isfinite(training.energy) & (training.weight > 0)

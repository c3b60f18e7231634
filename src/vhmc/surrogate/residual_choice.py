"""The residual of least held-out error: random features, or a trained network."""

import numpy as np

from vhmc.surrogate.network_fit import NetworkFit
from vhmc.surrogate.residual_fit import AbstractResidualFit, Fitted
from vhmc.surrogate.trained_network_fit import TrainedNetworkFit
from vhmc.surrogate.training_set import TrainingSet

FEWEST_DIMENSIONS = 4
"""Below it random features cover the space, and nothing is left to be trained."""
FEWEST_POINTS = 150
"""Typical points below which no network is trained: a quarter of them judges it."""
BETTER = 0.9
"""Fraction of the simpler family's error that the trained one must be below."""
GOOD = 0.01
"""Error of the simpler family at which nothing is left to gain."""
GROWTH = 1.15
"""Times the points after which the families compete again on the same map."""


class ResidualChoice(AbstractResidualFit):
    """Fits random features, and a trained network where that has a chance to be better.

    The families compete whenever the map is new, choices are made anew, or the points
    have grown by `GROWTH`; between these fits only the one chosen is fitted.

    simple: the family that is used unless the other is better.
    trained: the other.
    """

    def __init__(
        self, simple: AbstractResidualFit, trained: AbstractResidualFit | None = None
    ):
        self._simple = simple
        self._trained = TrainedNetworkFit() if trained is None else trained
        self._is_trained = False
        self._is_out = np.zeros(0, dtype=bool)
        self._num_points = 0

    def reset(self) -> None:
        self._simple.reset()
        self._trained.reset()
        self._is_trained = False

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
        """The residual of the family that wins, or won the last time."""
        # A point that was held out stays so: a network that starts warm must not be
        # judged by what it has seen.
        is_out = is_out.copy()
        is_out[: len(self._is_out)] = self._is_out
        self._is_out = is_out
        is_grown = len(training.x) >= GROWTH * self._num_points
        is_contest = redraw or choose_anew or is_grown
        if is_contest:
            self._num_points = len(training.x)

        def fitted(family: AbstractResidualFit) -> Fitted:
            return family.fit(
                rng,
                training,
                is_out,
                redraw=redraw,
                choose_anew=choose_anew,
                least_ridge=least_ridge,
            )

        if self._is_trained and not is_contest:
            return fitted(self._trained)
        simple = fitted(self._simple)
        if not (is_contest and self._is_worth(training, simple.error)):
            self._is_trained = self._is_trained and not is_contest
            return simple
        trained = fitted(self._trained)
        self._is_trained = trained.error < BETTER * simple.error
        return trained if self._is_trained else simple

    def _is_worth(self, training: TrainingSet, error: float) -> bool:
        """Whether a trained network has a chance to be better."""
        is_many = training.is_typical.sum() >= FEWEST_POINTS
        return bool(
            is_many and training.x.shape[1] >= FEWEST_DIMENSIONS and error > GOOD
        )


def competing_fit(capacity: int, dim: int) -> AbstractResidualFit:
    """Random features, and the trained network beside them where it is ever tried.

    capacity: of the random features.
    """
    simple = NetworkFit(capacity)
    return ResidualChoice(simple) if dim >= FEWEST_DIMENSIONS else simple

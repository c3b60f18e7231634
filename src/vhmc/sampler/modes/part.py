"""The evaluations of one mode: a part of space, and a share of the budget."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from vhmc.evaluation.evaluator import EvaluationLog, Evaluator
from vhmc.evaluation.target import Evaluations
from vhmc.evaluation.user_code import NO_DENSITY
from vhmc.transport.transport_map import TransportMap


@runtime_checkable
class Evaluates(Protocol):
    """What training needs of an evaluator."""

    @property
    def left(self) -> int:
        """Points that may still be evaluated."""
        ...

    @property
    def spent(self) -> int:
        """Evaluations made so far, of the whole run."""
        ...

    @property
    def log(self) -> EvaluationLog:
        """Points evaluated so far."""
        ...

    def evaluate(self, thetas: np.ndarray, phase: str) -> Evaluations:
        """True energies and gradients."""
        ...


class Partition:
    """The space divided among modes: a point is of the mode whose map is closest.

    whole: the evaluator of the run.
    transports: a map for each mode.
    """

    def __init__(self, whole: Evaluator, transports: Sequence[TransportMap]):
        self.whole, self._transports = whole, transports
        self._labels = np.zeros(0, dtype=int)

    def label(self, thetas: np.ndarray) -> np.ndarray:
        """The mode of every point."""
        energies = []
        for transport in self._transports:
            with np.errstate(all="ignore"):
                x, log_det = transport.inverse_and_log_det(thetas)
                energy = 0.5 * np.sum(x**2, axis=1) + log_det
            energies.append(np.nan_to_num(energy, nan=np.inf))
        return np.argmin(energies, axis=0)

    def log(self, number: int) -> EvaluationLog:
        """Points of a mode, of all that were evaluated."""
        log = self.whole.log
        new = self.label(log.theta[len(self._labels) :])
        self._labels = np.concatenate([self._labels, new])
        return log.where(self._labels == number)


class Part:
    """One mode's view of the evaluator: the density is zero beyond its part of space.

    So the chains of a mode stay in it, and its surrogate is fitted to nothing else.

    partition: of the space.
    number: of the mode.
    """

    def __init__(self, partition: Partition, number: int):
        self._partition, self._number = partition, number
        self._whole, self._left = partition.whole, 0

    @property
    def left(self) -> int:
        """Points of this mode that may still be evaluated."""
        return min(self._left, self._whole.left)

    @property
    def spent(self) -> int:
        """Evaluations made so far, of the whole run."""
        return self._whole.spent

    @property
    def log(self) -> EvaluationLog:
        """Points of this mode."""
        return self._partition.log(self._number)

    def allow(self, share: int, reserve: int) -> None:
        """Let this mode have its share of what is left beyond a reserve.

        share: modes that it is for.
        """
        self._left = (self._whole.left - reserve) // share + reserve

    def evaluate(self, thetas: np.ndarray, phase: str) -> Evaluations:
        """True energies and gradients, and none beyond this mode's part of space."""
        answer = self._whole.evaluate(thetas, phase)
        self._left -= len(thetas)
        is_beyond = self._partition.label(thetas) != self._number
        reason = np.where(is_beyond, NO_DENSITY, answer.reason)
        return answer._replace(
            energy=np.where(is_beyond, np.inf, answer.energy),
            grad=np.where(is_beyond[:, None], 0.0, answer.grad),
            reason=reason,
        )

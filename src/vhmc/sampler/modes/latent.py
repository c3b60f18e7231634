"""The energy in latent coordinates of a mode that is known, to look for others from."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from vhmc.evaluation.evaluator import Evaluator
from vhmc.evaluation.target import Evaluations
from vhmc.sampler.descents import Evaluated
from vhmc.transport.transport_map import TransportMap

NEAR = 3.0
"""Latent distance from zero, in low dimensions, at which a point is in the mode."""
NEAR_BY_ROOT = 0.5
"""What is added to it for every root of the number of dimensions."""
BESIDE = 1e-4
"""Latent way to a point beside one, over the length of its own, at least of one."""
LOWER = 1.0
"""Nats that an energy may be off before it is noise."""


class End(NamedTuple):
    """Where a descent ended.

    theta, energy, grad: in the coordinates of the evaluator.
    arrived: whether Newton's step is short there, by the descent's own curvature.
    is_over: whether it gained nothing any more.
    """

    theta: np.ndarray
    energy: float
    grad: np.ndarray
    arrived: bool
    is_over: bool = True


class Latent:
    """The energy in latent coordinates of a known mode.

    What a map along a graph conditions on is held: given its scales, a hierarchical
    model has modes; with them free its energy may fall without bound.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        transport: TransportMap,
        others: Sequence[TransportMap],
    ):
        self._evaluator, self._transport = evaluator, transport
        self._others = others
        self.held = transport.hubs
        self._answers: dict[bytes, tuple[np.ndarray, float, np.ndarray]] = {}

    @property
    def num_free(self) -> int:
        """Dimensions that are not held."""
        return self._transport.dim - len(self.held)

    def evaluate(self, x: np.ndarray) -> Evaluations:
        """Latent energies and gradients, those of what is held left out."""
        with np.errstate(all="ignore"):
            theta = self._transport.forward(x)
        # A map of exponentials overflows at a hundred standard deviations.
        theta = np.nan_to_num(theta, nan=1e300, posinf=1e300, neginf=-1e300)
        answer = self._evaluator.evaluate(theta, "look")
        with np.errstate(all="ignore"):
            _, grad, log_det = self._transport.pulled_back(theta, answer.grad)
            energy = answer.energy - log_det
        is_lost = ~np.isfinite(energy + grad.sum(axis=1))
        energy, grad = np.where(is_lost, np.inf, energy), grad.copy()
        grad[is_lost] = 0.0
        grad[:, self.held] = 0.0
        rows = zip(x, theta, answer.energy, answer.grad, strict=True)
        for one, *known in rows:
            self._answers[one.tobytes()] = tuple(known)
        return answer._replace(energy=energy, grad=grad)

    def believable(self, x: np.ndarray, lowest: float) -> Evaluations:
        """Energies and gradients, none where a low energy is noise of rounding.

        Far out the digits of a model may cancel, such as those of the difference of two
        log gammas of large numbers. An energy below `lowest` must change as its own
        gradient says, at one more point beside it.
        """
        before = self._evaluator.num_points
        answer = self.evaluate(x)
        low = np.flatnonzero(answer.energy < lowest - LOWER)
        if not len(low):
            return answer
        grad = answer.grad[low]
        scale = BESIDE * np.maximum(1.0, np.linalg.norm(x[low], axis=1))
        length = np.maximum(np.linalg.norm(grad, axis=1), 1e-300)
        step = -(scale / length)[:, None] * grad
        beside = self.evaluate(x[low] + step)
        expected = np.sum(step * (grad + beside.grad), axis=1) / 2
        change = beside.energy - answer.energy[low]
        is_noise = ~(np.abs(change - expected) <= LOWER + np.abs(expected) / 2)
        lost = low[is_noise]
        beside_lost = before + len(x) + np.flatnonzero(is_noise)
        self._evaluator.distrust(np.concatenate([before + lost, beside_lost]))
        energy, grads = answer.energy.copy(), answer.grad.copy()
        energy[lost], grads[lost] = np.inf, 0.0
        return answer._replace(energy=energy, grad=grads)

    def evaluated(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Points and energies of the evaluator, for latent points."""
        answers = [self._answers[row.tobytes()] for row in x]
        return np.array([one[0] for one in answers]), np.array(
            [one[1] for one in answers]
        )

    def end(self, point: Evaluated, arrived: bool, is_over: bool) -> End:
        """A latent point as one of the evaluator's."""
        theta, energy, grad = self._answers[point.theta.tobytes()]
        return End(theta, float(energy), grad, arrived, is_over)

    def is_home(self, x: np.ndarray) -> np.ndarray:
        """Whether latent points are in a mode that is known."""
        is_near = self._lengths(x) < self.reach
        for other in self._others:
            with np.errstate(all="ignore"):
                there = other.inverse(self._transport.forward(x))
            is_near |= np.linalg.norm(there, axis=1) < self.reach
        return is_near

    @property
    def reach(self) -> float:
        """Latent distance within which points are in one mode."""
        return NEAR + NEAR_BY_ROOT * np.sqrt(max(self.num_free, 1))

    def is_near(self, x: np.ndarray, place: np.ndarray) -> np.ndarray:
        """Whether latent points are in the mode that another one is in."""
        return self._lengths(x - place) < self.reach

    def leaders(self, x: np.ndarray) -> list[int]:
        """The first of the points that are in one mode, for each."""
        chosen: list[int] = []
        for i in range(len(x)):
            if not np.any(self.is_near(x[chosen], x[i])):
                chosen.append(i)
        return chosen

    def _lengths(self, x: np.ndarray) -> np.ndarray:
        return np.linalg.norm(np.delete(x, self.held, axis=1), axis=1)

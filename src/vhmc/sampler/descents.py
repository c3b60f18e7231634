"""Several descents in step, which learn from each other's gradients."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from vhmc.evaluation.target import Evaluations
from vhmc.sampler.curvature import Curvature

MAX_FAILED = 12
"""Steps in a row that did not lower the energy, after which a descent ends."""
SHORTER = 0.5
"""Least cut of a step after one that led up."""
WALL = 0.25
"""The same after one that led where there is no energy; squared if again, and so on."""
LONGER = 2.0
"""Growth of the steps after one that was cut."""
STEEP = 0.5
"""Slope left after a step, over that before, at which the next one is stretched."""
STRETCH = 2.0
SAME = 0.05
"""Squared distance of two descents, over that to the mode, at which one does."""
LEAST_WAY = 0.1
"""Squared distance to the mode, in standard deviations, below which it is as good."""
MAX_STRETCH = 256.0
UNEVEN = 0.003
"""Error of the trapezoidal rule for the energy between two points, over the curvature
between them, up to which it counts as quadratic."""
ROUGH, MAX_ROUGH = 10.0, 3
"""Change of the energy over that which the slopes at both ends tell, beyond which one
of them is noise; steps with such a change after which a descent is given up."""
HOPE, LEAST_HOPE = 2.0, 100.0
"""Fall that the slope may promise of a step, over the energy and these nats."""


class Evaluated(NamedTuple):
    """A point with its energy and gradient."""

    theta: np.ndarray
    energy: float
    grad: np.ndarray


class Pool:
    """Points with energies and gradients, of all descents that share a posterior."""

    def __init__(self) -> None:
        self.points: list[np.ndarray] = []
        self.energies: list[float] = []
        self.grads: list[np.ndarray] = []
        self._owners: list[int] = []

    def add(self, point: Evaluated, owner: int = 0) -> None:
        """Keep a point of a descent."""
        self.points.append(point.theta)
        self.energies.append(point.energy)
        self.grads.append(point.grad)
        self._owners.append(owner)

    def curvature(
        self, at: Evaluated, scales: np.ndarray | None = None, owner: int = 0
    ) -> Curvature:
        """The curvature at a point, as far as all points tell it.

        Points of other descents count where the energy between is quadratic. Elsewhere
        they may be in another basin, and would lead all descents to the same end.
        """
        points, grads = np.array(self.points), np.array(self.grads)
        moves, turns = at.theta - points, at.grad - grads
        with np.errstate(all="ignore"):
            rise = at.energy - np.array(self.energies)
            # Exact for a parabola: Simpson's error is of third order.
            error = rise - 0.5 * np.sum(moves * (at.grad + grads), axis=1)
            is_even = np.abs(error) < UNEVEN * np.sum(moves * turns, axis=1)
        counts = is_even | (np.array(self._owners) == owner)
        return Curvature(at.theta, at.grad, points[counts], grads[counts], scales)


class Descent:
    """Quasi-Newton steps in a trust region, answered one question at a time.

    Many of them advance together, and any can be paused and resumed.

    path: points that lowered the energy.
    decrement: squared length of Newton's step from the last of them, in standard
        deviations as far as the pool tells them; infinite before it is known.
    num_pairs: directions in which the curvature is known there.
    """

    def __init__(
        self,
        start: np.ndarray,
        pool: Pool | None = None,
        scales: np.ndarray | None = None,
    ):
        self.path: list[Evaluated] = []
        self.num_asked = 0
        self.is_done = False
        self.decrement = np.inf
        self.num_pairs = 0
        self.num_rough = 0
        self._pool = Pool() if pool is None else pool
        self._scales = scales
        self._start = start
        self._question: np.ndarray | None = None
        self._direction = np.zeros_like(start)
        self._limit: np.ndarray | None = None
        self._stretch, self._num_failed = 1.0, 0

    @property
    def question(self) -> np.ndarray:
        """The point whose energy is wanted next."""
        self.prepare()
        return self._start if self._question is None else self._question

    @property
    def theta(self) -> np.ndarray:
        """The lowest point found."""
        return self.path[-1].theta

    @property
    def energy(self) -> float:
        """The energy there, infinite before the first."""
        return self.path[-1].energy if self.path else np.inf

    def curvature(self) -> Curvature:
        """That at the lowest point, as far as all descents tell it."""
        return self._pool.curvature(self.path[-1], self._scales, id(self))

    def tell(self, energy: float, grad: np.ndarray) -> None:
        """Answer the question."""
        self.num_asked += 1
        asked = self.question
        is_known = bool(np.isfinite(energy) and np.isfinite(grad).all())
        if is_known:
            self._pool.add(Evaluated(asked, energy, grad), id(self))
        if not self.path:
            self.is_done = not is_known  # no descent begins where there is no energy
        else:
            self._judge(asked - self.theta, energy, grad, is_known)
        if is_known and energy < self.energy:
            self.path.append(Evaluated(asked, energy, grad))
        self._question = None

    def prepare(self) -> None:
        """Take the next step's direction, now that all others have been answered."""
        if self.path and not self.is_done and self._question is None:
            self._question = self._next()

    def _next(self) -> np.ndarray:
        """The end of the next step."""
        here = self.path[-1]
        curvature = self.curvature()
        direction = -curvature.times(here.grad)
        self.decrement = float(max(-direction @ here.grad, 0.0))
        self.num_pairs = curvature.num_pairs
        step = self._stretch * direction
        hope = HOPE * (abs(here.energy) + LEAST_HOPE)
        step = step * min(1.0, hope / max(-step @ here.grad, 1e-300))
        if self._limit is not None:
            most, length = curvature.length(self._limit), curvature.length(step)
            step = step * min(1.0, most / max(length, 1e-300))
        self._direction = direction
        question = here.theta + step
        self.is_done |= bool(np.all(question == here.theta))
        self.is_done |= not np.isfinite(question).all()
        return question

    def _judge(
        self, step: np.ndarray, energy: float, grad: np.ndarray, is_known: bool
    ) -> None:
        """Bound the next step by how this one went."""
        here = self.path[-1]
        self._doubt(step, energy, grad, is_known)
        if not is_known:
            self._fail(WALL ** min(self._num_failed + 1, 3) * step)
            return
        slope, left = step @ here.grad, step @ grad
        if not energy < here.energy:
            # Where the parabola through both energies and the first slope is least.
            bend = 2 * (energy - here.energy - slope)
            cut = -slope / bend if bend > 0 else SHORTER
            most = min(SHORTER, WALL ** min(self._num_failed, 3))
            self._fail(float(np.clip(cut, min(0.02, most), most)) * step)
            return
        self._num_failed = 0
        # Both slopes are negative; a longer step than the curvature asked for that is
        # still too short says that the energy grows faster than a parabola.
        is_steep = left < (STEEP * slope if self._stretch == 1 else 0.0)
        if self._limit is not None:
            self._limit = (LONGER * LONGER if is_steep else LONGER) * step
        if is_steep:
            self._stretch = min(STRETCH * self._stretch, MAX_STRETCH)
        else:
            self._stretch = 1.0

    def _doubt(
        self, step: np.ndarray, energy: float, grad: np.ndarray, is_known: bool
    ) -> None:
        """Count short steps along which energy and slopes contradict each other."""
        here = self.path[-1]
        if not (is_known and self._num_failed):
            return
        slopes = max(abs(step @ here.grad), abs(step @ grad))
        if abs(energy - here.energy) > ROUGH * slopes + 1.0:
            self.num_rough += 1
            self.is_done |= self.is_rough

    @property
    def is_rough(self) -> bool:
        """Whether the energy is noise of rounding where the descent is."""
        return self.num_rough >= MAX_ROUGH

    def _fail(self, limit: np.ndarray) -> None:
        self._limit, self._stretch = limit, 1.0
        self._num_failed += 1
        self.is_done |= self._num_failed >= MAX_FAILED


def is_copy(descent: Descent, others: list[Descent]) -> bool:
    """Whether another one is lower and close, compared with the way that is left."""
    for other in others:
        is_lower = other.energy < descent.energy
        if other is descent or not (other.path and descent.path and is_lower):
            continue
        here, there = descent.path[-1], other.path[-1]
        with np.errstate(all="ignore"):
            apart = (here.theta - there.theta) @ (here.grad - there.grad)
        if abs(apart) < SAME * max(descent.decrement, LEAST_WAY):
            return True
    return False


def descend(
    descents: list[Descent],
    evaluate: Callable[[np.ndarray], Evaluations],
    num_each: int,
    is_finished: Callable[[Descent], bool],
) -> None:
    """Advance all descents by at most `num_each` evaluations, a batch at a time."""
    limits = {id(descent): descent.num_asked + num_each for descent in descents}

    def is_going(descent: Descent) -> bool:
        return (
            not descent.is_done
            and descent.num_asked < limits[id(descent)]
            and not is_finished(descent)
        )

    while going := [descent for descent in descents if is_going(descent)]:
        answers = evaluate(np.stack([descent.question for descent in going]))
        for descent, energy, grad, _ in zip(going, *answers[:3], strict=True):
            descent.tell(float(energy), grad)
        for descent in going:
            descent.prepare()

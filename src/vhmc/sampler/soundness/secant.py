r"""Compare differences of energies with what the gradients say of them.

Along a step $\delta$ from $a$ to $b$ a right gradient satisfies

$$U(b) - U(a) = \tfrac12 (g_a + g_b) \cdot \delta + O(|\delta|^3).$$
"""

from typing import NamedTuple

import numpy as np

from vhmc.evaluation.evaluator import Evaluate
from vhmc.sampler.descents import Evaluated

PHASE = "soundness"
"""Phase of evaluations that are made to check the model."""
CHANGE = 1e-3
"""Change of the energy by parameter, in nats, at which the gradient is checked."""
ROUNDING = 1e5
"""The same over the rounding error of the energy."""
LONGEST = 1e-3
"""Longest step by parameter, over its size or one, where the gradient is small."""
TOLERANCE = 3e-3
"""Relative error of a slope that is no reason for a doubt."""
LEAST_TOLERANCE = 2e-4
"""The same for the change along a step of many parameters, at least."""
LENGTHS = 1.0, 0.5, 8.0
"""Steps at which a wrong gradient has the same relative error. An error of truncation
falls to a quarter at half the step; one of noise falls at a longer step."""
CONSISTENT = 0.3
"""Relative difference of these errors that counts as none."""
SIGMAS = 6.0
"""Standard deviations of the noise in energies that are no reason for a doubt."""
ABOVE_NOISE = 300.0
"""Change of the energy over its noise, at which gradients can be checked."""
LONGEST_STEP = 300.0
"""Growth of the step for the sake of noise beyond which nothing is checked."""
ROUNDS_OFF = 20 * np.finfo(float).eps
"""Relative error of an energy by rounding alone."""


class Secant(NamedTuple):
    """A step with the change of energy that was seen, and the predicted one.

    end: of the step.
    change: of the energy.
    predicted: by the gradients at both ends.
    noise: rounding error of the change.
    num_moved: parameters that the step changes.
    """

    end: Evaluated
    change: float
    predicted: float
    noise: float
    num_moved: int

    @property
    def error(self) -> float:
        """What the gradients do not explain."""
        return self.change - self.predicted

    @property
    def relative(self) -> float:
        """The error over the larger change."""
        size = max(abs(self.change), abs(self.predicted))
        return self.error / size if size > 0 else 0.0

    @property
    def is_right(self) -> bool:
        """Whether the gradients explain the change."""
        size = max(abs(self.change), abs(self.predicted))
        # Any one of the parameters may be wrong.
        tolerance = max(TOLERANCE / self.num_moved, LEAST_TOLERANCE)
        return bool(abs(self.error) <= tolerance * size + self.noise)


def secant(base: Evaluated, end: Evaluated, sd: float = 0.0) -> Secant:
    """Compare energies and gradients at both ends of a step.

    sd: of the noise in energies.
    """
    step = end.theta - base.theta
    predicted = 0.5 * (base.grad + end.grad) @ step
    noise = ROUNDS_OFF * (abs(base.energy) + abs(end.energy)) + SIGMAS * sd
    num_moved = max(int(np.count_nonzero(step)), 1)
    change = float(end.energy - base.energy)
    return Secant(end, change, float(predicted), float(noise), num_moved)


def downhill(base: Evaluated) -> np.ndarray:
    r"""A short step along which every parameter lowers the energy by as much.

    With a target $\tau$ by parameter $\delta_j = -\tau u_j / g_j$: this has no unit,
    and errors of several parameters do not cancel, as the factors $u_j$ differ.
    """
    rounding = np.finfo(float).eps * abs(base.energy)
    target = max(CHANGE, ROUNDING * rounding / len(base.theta))
    longest = LONGEST * np.maximum(1.0, np.abs(base.theta))
    with np.errstate(divide="ignore"):
        lengths = np.minimum(target / np.abs(base.grad), longest)
    return np.where(base.grad > 0, -1.0, 1.0) * factors(len(lengths)) * lengths


def factors(dim: int) -> np.ndarray:
    """Numbers between a half and three halves: multiples of the golden ratio.

    Without the run's random numbers, which a check must not change.
    """
    return 0.5 + np.mod(0.618034 * np.arange(1, dim + 1), 1.0)


def move(
    evaluate: Evaluate, base: Evaluated, steps: np.ndarray, sd: float = 0.0
) -> list[Secant | None]:
    """Evaluate the model at the ends of steps; none where it has no answer.

    sd: of the noise in energies.
    """
    answer = evaluate(base.theta + steps, PHASE)
    return [
        secant(base, Evaluated(theta, float(energy), grad), sd)
        if np.isfinite(energy)
        else None
        for theta, energy, grad in zip(
            base.theta + steps, answer.energy, answer.grad, strict=True
        )
    ]


class Compared(NamedTuple):
    """Whether the gradient at a point is right, as far as a few steps tell.

    is_wrong: the relative error is the same for steps of several lengths.
    step: along which the gradient was judged.
    """

    is_wrong: bool
    step: np.ndarray


def compare(
    evaluate: Evaluate, base: Evaluated, most: int, sd: float = 0.0
) -> Compared:
    """Judge the gradient at a point: by one step if it is right, by up to four if not.

    most: evaluations.
    sd: of the noise in energies.
    """
    step = downhill(base)
    least = ABOVE_NOISE * sd / (CHANGE * len(step))
    if least > LONGEST_STEP:
        return Compared(False, step)
    step = max(1.0, least) * step
    seen: list[Secant] = []
    for length in LENGTHS[:most]:
        (found,) = move(evaluate, base, length * step[None], sd)
        # A change of exactly zero has been rounded off.
        if found is None or found.is_right or found.change == 0:
            return Compared(False, step)
        seen.append(found)
    if len(seen) < len(LENGTHS):
        return Compared(False, step)
    # A kink at the point itself, where searches end, is behind the shortest steps.
    beyond = secant(seen[0].end, seen[-1].end, sd)
    errors = np.array([one.relative for one in (*seen, beyond)])
    apart = np.abs(errors - errors[0])
    return Compared(bool(np.all(apart < CONSISTENT * abs(errors[0]))), step)

"""Whether the model answers the same twice, and to how many digits."""

from typing import NamedTuple

import numpy as np

from vhmc.evaluation.evaluator import Evaluate, EvaluationLog
from vhmc.sampler.descents import Evaluated
from vhmc.sampler.soundness.secant import PHASE, ROUNDS_OFF

MORE = 3
"""Further evaluations of a point whose two answers differ: they give the sd."""
HARMLESS = 0.05
"""Nats of noise in the log density that the fit and the verdict do not notice."""
HARMLESS_SLOPE = 1e-3
"""The same for the gradient, over its size."""
STALE = 0.1
"""Errors of energies with the gradients of the next evaluation, over those with their
own, below which the gradients are late."""
LATE = 0.2
"""Relative error of predicted changes of energies above which a delay is looked for."""
FEWEST = 8
"""Points that are enough to see either."""
ROUGH_SENTENCE = (
    "the log density is rough: on a short step it changes by {size:.2g} nats that its "
    "gradient does not explain, though it does on a long one; tighten the tolerances "
    "of a solver"
)
LATE_SENTENCE = (
    "the gradient is late: it is that of the evaluation before; is an array filled "
    "again by the next call, or a cache not renewed?"
)


class Repeated(NamedTuple):
    """Several answers of the model at one point.

    value: sd of the log density, in nats.
    slope: sd of the gradient, over its size.
    number: of answers.
    is_late: whether the gradient is that of the evaluation before: it then stays the
        same from the third of these answers on.
    """

    value: float
    slope: float
    number: int
    is_late: bool = False

    def concerns(self) -> list[tuple[str, str]]:
        """What is to be said of it."""
        about = f"evaluated {self.number} times at one point"
        found = []
        if self.value > HARMLESS:
            found.append(
                f"the log density is noisy: {about} it has an sd of {self.value:.2g} "
                "nats; fix the random numbers of the model, or make it more accurate"
            )
        if self.slope > HARMLESS_SLOPE:
            found.append(
                f"the gradient is noisy: {about} it has an sd of {self.slope:.1%} of "
                "its size; give the gradient of all data, or fix the random numbers"
            )
        return [("caution", sentence) for sentence in found]


NOT_REPEATED = Repeated(0.0, 0.0, 1)


def repeat(evaluate: Evaluate, base: Evaluated, most: int) -> Repeated:
    """Evaluate a point again, and more often if the answers differ."""
    energies, grads = [base.energy], [base.grad]
    for number in (1, MORE):
        if most < number:
            break
        answer = evaluate(np.tile(base.theta, (number, 1)), PHASE)
        most -= number
        known = np.isfinite(answer.energy)
        energies += list(answer.energy[known])
        grads += list(answer.grad[known])
        repeated = _spread(np.array(energies), np.array(grads))
        if repeated.value == 0 and repeated.slope < HARMLESS_SLOPE:
            break
    return _spread(np.array(energies), np.array(grads))


def _spread(energies: np.ndarray, grads: np.ndarray) -> Repeated:
    if len(energies) < 2:
        return NOT_REPEATED
    value = float(np.std(energies, ddof=1))
    size = float(np.sqrt(np.mean(grads**2, axis=0).sum()))
    spread = float(np.sqrt(np.var(grads, axis=0, ddof=1).sum()))
    value = 0.0 if value < ROUNDS_OFF * np.abs(energies).max() else value
    slope = spread / size if size > 0 else 0.0
    is_same = len(grads) > 3 and bool(np.all(grads[2:] == grads[-1]))
    is_late = value == 0 and slope > HARMLESS_SLOPE and is_same
    return Repeated(value, slope, len(energies), is_late)


def is_late(log: EvaluationLog) -> bool:
    """Whether every gradient is that of the evaluation before.

    Changes of energies are then explained by the gradients of one row later.
    """
    known = log.is_finite
    first = np.flatnonzero(known[:-2] & known[1:-1] & known[2:])
    if len(first) < FEWEST:
        return False
    grads = [log.grad[first + i] for i in range(3)]
    moves = log.theta[first + 1] - log.theta[first]
    changes = log.energy[first + 1] - log.energy[first]
    own = 0.5 * np.sum((grads[0] + grads[1]) * moves, axis=1)
    later = 0.5 * np.sum((grads[1] + grads[2]) * moves, axis=1)
    size = np.maximum(np.abs(changes), 1e-300)
    apart, delayed = (
        float(np.median(np.abs(changes - said) / size)) for said in (own, later)
    )
    return apart > LATE and delayed < STALE * apart


def rounding_step(energies: np.ndarray) -> float:
    """Distance of neighbouring values of the log density."""
    size = float(np.median(np.abs(energies))) if len(energies) else 0.0
    step = float(np.spacing(size))
    if np.array_equal(energies, _single(energies)):
        step = float(np.spacing(np.float32(size)))
    is_whole = np.array_equal(energies, np.round(energies)) and np.ptp(energies) > 0
    return max(step, 1.0) if is_whole else step


def _single(energies: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return energies.astype(np.float32)


def rounding(energies: np.ndarray) -> tuple[str, str] | None:
    """A concern, if the log density comes with few digits.

    energies: finite ones.
    """
    if len(energies) < FEWEST:
        return None
    if np.ptp(energies) == 0 and np.spacing(abs(energies[0])) < HARMLESS:
        return "bad", (
            "the log density is the same at all points that were evaluated: does it "
            "depend on the parameters?"
        )
    step = rounding_step(energies)
    if step < HARMLESS:
        return None
    size = float(np.median(np.abs(energies)))
    is_single = np.array_equal(energies, _single(energies))
    if is_single and np.spacing(np.float32(size)) >= HARMLESS:
        what = "are in 32 bits"
    elif np.spacing(size) >= HARMLESS:
        what = f"are near {size:.1g}"
    else:
        what = "are integers"
    return "caution", (
        f"values of the log density {what}, so that they are rounded to {step:.2g} "
        "nats; leave out the constant, and compute it in 64 bits"
    )

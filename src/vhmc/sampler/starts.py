"""Where descents begin."""

from collections.abc import Callable

import numpy as np

from vhmc.evaluation.evaluator import most_common
from vhmc.evaluation.target import Evaluations
from vhmc.evaluation.user_code import is_of_numbers
from vhmc.sampler.descents import Descent, Pool, descend

HALF_WIDTH = 2.0
"""Of the box of random starts, as in Stan."""
CLOSER = 0.2
"""Distance from the centre of a start that is tried again, over that of the last."""
WIDE = 3.0
"""Standard deviations at an end by which new starts are spread at least."""


def starts(
    rng: np.random.Generator, origin: np.ndarray, number: int
) -> list[np.ndarray]:
    """The user's start, then random ones: around zero and around it in turn."""
    boxes = rng.uniform(-HALF_WIDTH, HALF_WIDTH, (number, len(origin)))
    centers = [origin if i % 2 else np.zeros_like(origin) for i in range(number)]
    return [
        origin if i == 0 else center + box
        for i, (center, box) in enumerate(zip(centers, boxes, strict=True))
    ]


def no_start(origin: np.ndarray, reasons: list[np.ndarray]) -> ValueError:
    """The error where no descent can begin.

    reasons: why the model failed, by batch.
    """
    return ValueError(
        f"the log density or its gradient is not finite at the start {origin} and "
        f"around it ({most_common(np.concatenate(reasons))}): mend the model, or give "
        "other initial values"
    )


def wide_starts(
    rng: np.random.Generator, best: Descent, number: int
) -> list[np.ndarray]:
    """Random starts as wide as a descent went, around its first point and its end.

    The way is in the units of the parameters, which a box knows nothing of.
    """
    first, last = best.path[0].theta, best.theta
    sd = np.linalg.norm(best.curvature().factor(), axis=1)
    width = np.hypot(last - first, WIDE * sd)
    z = rng.standard_normal((number, len(first)))
    return [(last if i % 2 else first) + width * row for i, row in enumerate(z)]


def begun(
    rng: np.random.Generator,
    origin: np.ndarray,
    places: list[np.ndarray],
    pool: Pool,
    evaluate: Callable[[np.ndarray], Evaluations],
    allowance: int,
) -> list[Descent]:
    """Descents that share their gradients, from where there is an energy.

    A start without one is moved towards the first that has one. While there is none,
    half of them are moved towards zero, and the others are drawn again. A model that
    raises everywhere is not asked more than twice.
    """
    descents: list[Descent] = []
    waiting, reasons = places, list[str]()

    def kept(thetas: np.ndarray) -> Evaluations:
        answer = evaluate(thetas)
        reasons.extend(answer.reason)
        return answer

    while waiting and allowance >= len(waiting):
        is_hopeless = not descents and not any(map(is_of_numbers, reasons))
        if len(reasons) > len(places) and is_hopeless:
            break
        trials = [Descent(place, pool) for place in waiting]
        allowance -= len(trials)
        descend(trials, kept, 1, lambda descent: False)
        descents += [trial for trial in trials if trial.path]
        failed = [trial.question for trial in trials if not trial.path]
        centre = descents[0].path[0].theta if descents else np.zeros_like(origin)
        waiting = [centre + CLOSER * (place - centre) for place in failed]
        if not descents:
            waiting[::2] = starts(rng, origin, len(waiting) + 1)[1:][::2]
    return descents

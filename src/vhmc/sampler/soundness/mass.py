r"""Whether the posterior has a finite mass along some directions.

On almost every line the density of a proper posterior has a finite integral, so that
its energy rises faster than $\log r$ in the end. Wide priors do so late: the model is
evaluated a thousand and a million standard deviations away.
"""

from collections.abc import Sequence

import numpy as np

from vhmc.evaluation.evaluator import Evaluate
from vhmc.sampler.soundness.secant import PHASE

NEAR, FAR = 1e3, 1e6
"""Distances in sd at which the energy is compared."""
LEAST_RISE = 0.95
r"""Rise of the energy over that of $\log r$ below which a line has no finite mass."""
NEGLIGIBLE = 60.0
"""Nats above the mass, at the nearer point, at which a flat line does not matter."""
FLAT = 1e-8
"""Slope along a direction, over that along others, that is none."""
NAMED = 0.1
"""Part of a parameter in a direction, over the largest one, that is named."""
MOST_TRIED = 2
"""Parameters that are tried alone."""
MOST_NAMED = 6
"""Parameters that are named one by one."""


def flat_directions(grads: np.ndarray) -> np.ndarray:
    """Directions along which no gradient has a slope, one a row.

    Of the length that changes the energy by about one in parameters that it depends
    on. Products of parameters, which are flat along curves, are not found.

    grads: one a row, of more points than there are parameters.
    """
    number, dim = grads.shape
    unit = np.sqrt(np.mean(grads**2, axis=0))
    if number < dim + 2:
        return np.eye(dim)[unit == 0]
    # A few points far away have gradients beside which all others are rounded off.
    for _ in range(2):
        unit = np.where(unit > 0, unit, 1.0)
        norms = np.linalg.norm(grads / unit, axis=1)
        grads = grads / np.maximum(norms / max(np.median(norms), 1e-300), 1.0)[:, None]
        unit = np.sqrt(np.mean(grads**2, axis=0))
    unit = np.where(unit > 0, unit, 1.0)
    _, values, rows = np.linalg.svd(grads / unit, full_matrices=False)
    return rows[values <= FLAT * max(values[0], 1e-300)] / unit


def without_mass(
    evaluate: Evaluate,
    bases: tuple[np.ndarray, float],
    directions: np.ndarray,
    labels: Sequence[str],
) -> str | None:
    """A sentence on the first direction along which the energy does not rise.

    Evaluates the model at four points a direction, and where that has no finite mass at
    up to eight more, to see whether a parameter alone has none.

    bases: a point near the mass, no mode, and its energy.
    directions: one a row, as long as a standard deviation.
    """
    theta, energy = bases
    for direction in directions:
        lengths = np.array([NEAR, FAR, -NEAR, -FAR])
        answer = evaluate(theta + lengths[:, None] * direction, PHASE)
        for near, far in answer.energy.reshape(2, 2).tolist():
            if not (np.isfinite(near) and np.isfinite(far)):
                continue
            if not _is_massive(near - energy, far - energy):
                continue
            return _narrowed(evaluate, bases, direction, (near, far), labels)
    return None


def _is_massive(near: float, far: float) -> bool:
    """Whether a line with these energies, above the mass, has no finite integral."""
    return bool(far - near < LEAST_RISE * np.log(FAR / NEAR) and near < NEGLIGIBLE)


def _narrowed(
    evaluate: Evaluate,
    bases: tuple[np.ndarray, float],
    direction: np.ndarray,
    energies: tuple[float, float],
    labels: Sequence[str],
) -> str:
    """The sentence, with one parameter if that alone has no finite mass."""
    theta, energy = bases
    places = _places(direction)
    if 1 < len(places):
        for place in places[:MOST_TRIED]:
            one = np.zeros_like(direction)
            one[place] = direction[place]
            for sign in (1.0, -1.0):
                steps = sign * np.array([[NEAR], [FAR]]) * one
                near, far = evaluate(theta + steps, PHASE).energy.tolist()
                known = np.isfinite(near) and np.isfinite(far)
                if known and _is_massive(near - energy, far - energy):
                    return _sentence(near - energy, far - energy, one, labels)
    near, far = energies
    return _sentence(near - energy, far - energy, direction, labels)


def _places(direction: np.ndarray) -> list[int]:
    """Parameters that a direction moves, the most moved first."""
    size = np.abs(direction) / np.abs(direction).max()
    return [int(place) for place in np.argsort(-size) if size[place] > NAMED]


def _sentence(
    near: float, far: float, direction: np.ndarray, labels: Sequence[str]
) -> str:
    places = _places(direction)
    names = ", ".join(labels[place] for place in sorted(places[:MOST_NAMED]))
    more = f" and {len(places) - MOST_NAMED} more" if len(places) > MOST_NAMED else ""
    how = "moves alone" if len(places) == 1 else "move together, along one direction"
    return (
        f"the posterior has no finite mass: if {names}{more} {how}, the log "
        f"density {_course(near, far)}; give them proper priors"
    )


def _course(near: float, far: float) -> str:
    """What the log density does on the way out.

    near, far: energies above that of the mass.
    """
    if abs(near) < 1e-6 and abs(far) < 1e-6:
        return "does not change at all"
    if far < min(near, 0) - 1:
        return f"grows (by {-far:.3g} nats a million sd away)"
    return (
        f"changes by {abs(far - near):.2g} nats only between a thousand and a million "
        "sd from the mass"
    )

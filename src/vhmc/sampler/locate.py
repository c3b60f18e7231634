"""Locate the posterior: descents from several starts, and a first Gaussian."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from vhmc.evaluation.evaluator import Evaluate
from vhmc.sampler.descents import Descent, Pool, descend
from vhmc.sampler.first_gaussian import NEWTON_STEPS, first_layer, layers_on_path
from vhmc.sampler.race import has_arrived, height, is_finished, race
from vhmc.sampler.starts import begun, no_start, starts, wide_starts
from vhmc.transport.affine import Affine

MAX_STARTS = 8
PER_START = 40
"""Evaluations of the allowance for every start."""
LEG = 10
"""Evaluations of a descent before it is compared with the others again."""
MORE_STARTS = 2
"""Descents that begin once the first ones have ended early."""


class Modes(NamedTuple):
    """Where the descents ended.

    Those that were cut off count as well: they may have been on their way to a mode
    that no other descent found.

    ends: lowest point of every descent, one a row.
    energies: true energies there.
    grads: their true gradients there, zero along what was held.
    arrived: whether a descent has come to a mode, as far as its own curvature tells.
    has_mode: whether the energy curves upwards at the best end.
    held: coordinates that each descent held at the values of its start.
    """

    ends: np.ndarray
    energies: np.ndarray
    grads: np.ndarray
    arrived: np.ndarray
    has_mode: bool
    held: tuple[int, ...] = ()


class Located(NamedTuple):
    """Gaussians around the best end of the descents, and all ends.

    layer: Gaussian around the best point, as an affine layer.
    others: Gaussians around points on the way there.
    modes: ends of all descents.
    """

    layer: Affine
    others: list[Affine]
    modes: Modes


def locate(
    rng: np.random.Generator,
    evaluate: Evaluate,
    origin: np.ndarray,
    allowance: int,
    hessian: Callable[[np.ndarray], np.ndarray] | None = None,
    price: int = 0,
    spare: int = 0,
    places: Sequence[np.ndarray] = (),
) -> Located:
    """Descend from several starts and measure the curvature at the best end.

    origin: the first start, unconstrained.
    allowance: evaluations for the descents and Newton's steps after them.
    hessian: of the energy at a point; without one the descents' own curvature serves.
    price: evaluations that a second Hessian costs; 0 if there may be none.
    spare: evaluations beyond the allowance if no descent has arrived with it.
    places: where to begin instead, if there are any.
    """
    num_starts = int(np.clip(allowance // PER_START, 1, MAX_STARTS))
    places = list(places) or starts(rng, origin, num_starts)
    left = allowance - (NEWTON_STEPS if hessian else 0)
    reasons: list[np.ndarray] = []

    def counted(thetas):
        nonlocal left
        left -= len(thetas)
        answer = evaluate(thetas, "search")
        reasons.append(answer.reason)
        return answer

    pool = Pool()
    most = min(left, max(5 * len(places), left // 2))
    descents = begun(rng, origin, places, pool, counted, most)
    if not descents:
        raise no_start(origin, reasons)
    leg = min(LEG, max(1, left // len(descents)))
    race(descents, counted, leg, lambda: left)
    while left >= max(2 * LEG, allowance // 3):
        # Easily found, so there is time to look for another mode, or a lower one.
        best = min(descents, key=height)
        if hessian and not has_arrived(best):
            break  # a Hessian will show the way
        places = wide_starts(rng, best, MORE_STARTS)
        more = begun(rng, origin, places, pool, counted, left // 2)
        if not more:
            break
        descents += more
        race(descents, counted, LEG, lambda: left)
    best = min(descents, key=height)
    if left > 0:
        descend([best], counted, left, is_finished)
    most = NEWTON_STEPS + max(left, 0) + spare
    layer, is_convex = first_layer(evaluate, best, hessian, most, price)
    modes = modes_of(descents, len(origin), is_convex)
    others = sorted(descents, key=height)[:2]
    return Located(layer, layers_on_path(others), modes)


def modes_of(
    descents: list[Descent],
    dim: int,
    has_mode: bool,
    held: tuple[int, ...] = (),
) -> Modes:
    """Where these descents ended; each has a path."""
    return Modes(
        np.array([descent.theta for descent in descents]).reshape(-1, dim),
        np.array([descent.energy for descent in descents]),
        np.array([descent.path[-1].grad for descent in descents]).reshape(-1, dim),
        np.array([has_arrived(descent) for descent in descents], dtype=bool),
        has_mode,
        held,
    )

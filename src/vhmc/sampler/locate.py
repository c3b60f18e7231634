"""Locate the posterior: descents from several starts, and a first Gaussian."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from vhmc.evaluation.evaluator import Evaluate, most_common
from vhmc.evaluation.target import Evaluations
from vhmc.numerics.gaussian import positive_definite
from vhmc.sampler.descents import Descent, Evaluated, Pool, descend, is_copy
from vhmc.transport.affine import Affine, affine_from_precision

MAX_STARTS = 8
FIRST_LEG = 20
"""Evaluations after which the two best descents go on alone."""
LEG = 10
"""Evaluations of a descent before it is compared with the others again."""
BOTTOMLESS = -1e11
"""Energy at which a descent has fallen out of sight: a nat is lost in rounding."""
WIDE = 3.0
"""Standard deviations at an end by which new starts are spread at least."""
MORE_STARTS = 2
"""Descents that begin once the first ones have ended early."""
PATIENCE = 6
LEAST_FALL = 0.05
"""A descent that fell by less than this (nats) in the last accepted steps has ended."""
NUM_PLACES = 8
"""Points along a descent that may be better than its end."""
NEWTON_STEPS = 3
"""Evaluations that are set aside for the steps after the Hessian."""
CLOSER = 0.2
"""Distance from the centre of a start that is tried again, over that of the last."""
CLOSE = 0.01
"""Squared distance from the mode, in standard deviations, that is close enough."""
ARRIVED = 0.1
"""Squared distance from the mode, in standard deviations a dimension, of an arrival."""
NEAR = 1.0
"""Squared way from where the Hessian was taken, by dimension, that needs no other."""
HALF_WIDTH = 2.0
"""Of the box of random starts, as in Stan."""


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
) -> Located:
    """Descend from several starts and measure the curvature at the best end.

    origin: the first start, unconstrained.
    allowance: evaluations for the descents and Newton's steps after them.
    hessian: of the energy at a point; without one the descents' own curvature serves.
    price: evaluations that a second Hessian costs; 0 if there may be none.
    spare: evaluations beyond the allowance if no descent has arrived with it.
    """
    num_starts = int(np.clip(allowance // (2 * FIRST_LEG), 1, MAX_STARTS))
    left = allowance - (NEWTON_STEPS if hessian else 0)
    reasons: list[np.ndarray] = []

    def counted(thetas):
        nonlocal left
        left -= len(thetas)
        answer = evaluate(thetas, "search")
        reasons.append(answer.reason)
        return answer

    pool = Pool()
    places = starts(rng, origin, num_starts)
    most = min(left, max(5 * num_starts, left // 2))
    descents = begun(rng, origin, places, pool, counted, most)
    if not descents:
        raise no_start(origin, reasons)
    leg = min(LEG, max(1, left // len(descents)))
    race(descents, counted, leg, lambda: left)
    while left >= 2 * LEG:
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


def height(descent: Descent) -> float:
    """Energy by which descents are compared: infinite where it fell out of sight."""
    is_lost = descent.energy < BOTTOMLESS or descent.is_rough
    return np.inf if is_lost else descent.energy


def race(
    descents: list[Descent],
    evaluate: Callable[[np.ndarray], Evaluations],
    leg: int,
    left: Callable[[], int],
) -> None:
    """Advance descents until all are over: all, then two, then the lowest alone.

    When it has ended the next lowest goes on.

    left: evaluations, now.
    """

    def is_over(descent: Descent) -> bool:
        if descent.is_done or descent.energy < BOTTOMLESS:
            return True
        return is_finished(descent) or is_copy(descent, descents)

    most = len(descents)
    while left() > 0:
        going = [one for one in descents if not is_over(one)]
        going = sorted(going, key=height)[: min(most, left())]
        if not going:
            break
        each = min(leg, left() // len(going))
        descend(going, evaluate, each, is_over)
        most = min(2, most) if most > 2 else 1


def wide_starts(
    rng: np.random.Generator, best: Descent, number: int
) -> list[np.ndarray]:
    """Random starts as wide as the way of a descent, around its first point and its end.

    The way is in the units of the parameters, which a box knows nothing of.
    """
    first, last = best.path[0].theta, best.theta
    sd = np.linalg.norm(best.curvature().factor(), axis=1)
    width = np.hypot(last - first, WIDE * sd)
    z = rng.standard_normal((number, len(first)))
    return [
        (last if i % 2 else first) + width * row for i, row in enumerate(z)
    ]


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


def has_arrived(descent: Descent) -> bool:
    """Whether Newton's step at the end of a descent is short, in standard deviations.

    By the curvature that all descents saw.
    """
    grad = descent.path[-1].grad
    if not grad.any():
        return True
    curvature = descent.curvature()
    is_seen = curvature.num_pairs > 0
    return bool(is_seen and grad @ curvature.times(grad) < ARRIVED * len(grad))


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
    half of them are moved towards zero, and the others are drawn again.
    """
    descents: list[Descent] = []
    waiting = places
    while waiting and allowance >= len(waiting):
        trials = [Descent(place, pool) for place in waiting]
        allowance -= len(trials)
        descend(trials, evaluate, 1, lambda descent: False)
        descents += [trial for trial in trials if trial.path]
        failed = [trial.question for trial in trials if not trial.path]
        centre = descents[0].path[0].theta if descents else np.zeros_like(origin)
        waiting = [centre + CLOSER * (place - centre) for place in failed]
        if not descents:
            waiting[::2] = starts(rng, origin, len(waiting) + 1)[1:][::2]
    return descents


def is_finished(descent: Descent) -> bool:
    """Whether the last steps gained nothing that a sampler would notice."""
    path = descent.path
    if len(path) <= 1:
        return False
    is_known = descent.num_pairs >= len(descent.theta)
    if is_known and descent.decrement < CLOSE:
        return True
    if len(path) <= PATIENCE:
        return False
    return path[-1 - PATIENCE].energy - path[-1].energy < LEAST_FALL


def first_layer(
    evaluate: Evaluate,
    descent: Descent,
    hessian: Callable[[np.ndarray], np.ndarray] | None,
    most: int = NEWTON_STEPS,
    price: int = 0,
) -> tuple[Affine, bool]:
    """Laplace's Gaussian at the end of a descent, and whether it is a mode.

    The descent goes on from there in coordinates in which the curvature is one.

    most: evaluations for that.
    """
    theta, energy, grad = descent.path[-1]
    if hessian is None:
        return Affine(theta, descent.curvature().factor()), True
    while True:
        matrix = hessian(theta)
        if not np.isfinite(matrix).all():
            # The model may fail next to the end, which says nothing of the end itself.
            return Affine(theta, descent.curvature().factor()), True
        if not np.abs(matrix).max() > 0:
            return Affine(theta, descent.curvature().factor()), False
        layer, is_convex = laplace(theta, matrix)
        on = Descent(np.zeros_like(theta), scales=np.ones(len(theta)))
        on.tell(energy, layer.pull_back(on.question[None], grad[None])[0])

        def evaluate_white(x: np.ndarray, layer=layer) -> Evaluations:
            answer = evaluate(layer.forward(x), "search")
            return answer._replace(grad=layer.pull_back(x, answer.grad))

        on.prepare()
        leg = min(most, max(2 * len(theta), NEWTON_STEPS)) if price else most
        descend([on], evaluate_white, leg, lambda descent: descent.decrement < CLOSE)
        most -= on.num_asked - 1
        has_come = on.decrement < CLOSE
        is_near = on.theta @ on.theta < NEAR * len(theta)
        if not price or (has_come and is_near) or most < price + NEWTON_STEPS:
            break
        most -= price
        theta = layer.forward(on.theta[None])[0]
        energy = on.energy
        grad = layer.push_forward(on.theta[None], on.path[-1].grad[None])[0]
    has_mode = is_convex or has_come
    if len(on.path) == 1:
        return layer, has_mode
    return layer.compose(Affine(on.theta, on.curvature().factor())), has_mode


def laplace(theta: np.ndarray, matrix: np.ndarray) -> tuple[Affine, bool]:
    """The Gaussian of a Hessian, and whether that is positive definite.

    In units in which its diagonal is one: else small scales are lost in rounding.
    """
    diagonal = np.abs(np.diag(matrix))
    least = diagonal[diagonal > 0].min() if (diagonal > 0).any() else 1.0
    root = np.sqrt(np.where(diagonal > 0, diagonal, least))
    precision, repairs = positive_definite(matrix / np.outer(root, root))
    white = affine_from_precision(np.zeros(len(theta)), precision)
    return Affine(theta, white.factor / root[:, None]), not repairs


def layers_on_path(descents: list[Descent]) -> list[Affine]:
    """Gaussians on the way of descents.

    Where the energy falls without bound, or into a neck, the posterior has next to no
    volume: its mass is somewhere on the way (Pathfinder's idea, Zhang et al. 2022).
    """
    return [
        path_layer(descent.path[:end])
        for descent in descents
        for end in np.unique(np.linspace(2, len(descent.path), NUM_PLACES).astype(int))
        if len(descent.path) >= 2
    ]


def path_layer(path: list[Evaluated]) -> Affine:
    """Gaussian from the curvature that a descent itself saw on its way."""
    pool = Pool()
    for point in path[:-1]:
        pool.add(point)
    if len(path) == 1:
        return Affine(path[-1].theta, np.eye(len(path[-1].theta)))
    return Affine(path[-1].theta, pool.curvature(path[-1]).factor())

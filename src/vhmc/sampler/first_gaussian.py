"""Gaussians around the end of a descent, and around points on the way there."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from vhmc.evaluation.evaluator import Evaluate
from vhmc.evaluation.target import Evaluations
from vhmc.numerics.gaussian import positive_definite
from vhmc.sampler.descents import Descent, Evaluated, Pool, descend
from vhmc.sampler.race import CLOSE
from vhmc.transport.affine import Affine, affine_from_precision

NUM_PLACES = 8
"""Points along a descent that may be better than its end."""
NEWTON_STEPS = 3
"""Evaluations that are set aside for the steps after the Hessian."""
NEAR = 1.0
"""Squared way from where the Hessian was taken, by dimension, that needs no other."""


def first_layer(
    evaluate: Evaluate,
    descent: Descent,
    hessian: Callable[[np.ndarray], np.ndarray] | None,
    most: int = NEWTON_STEPS,
    price: int = 0,
) -> tuple[Affine, bool]:
    """Laplace's Gaussian at the end of a descent, and whether it is a mode.

    The descent goes on from there in coordinates in which the curvature is one. Where
    it does not arrive, or far away, the curvature is another: then Hessians are taken
    until it has come to rest next to the last one.

    most: evaluations for that, further Hessians included.
    price: of another Hessian; 0 if there may be none.
    """
    at = descent.path[-1]
    own = Affine(at.theta, descent.curvature().factor())
    matrix = None if hessian is None else hessian(at.theta)
    if matrix is None or not np.isfinite(matrix).all():
        # The model may fail next to the end, which says nothing of the end itself.
        return own, True
    if not np.abs(matrix).max() > 0:
        return own, False
    while True:
        leg = min(most, max(2 * len(at.theta), NEWTON_STEPS)) if price else most
        found = _from_hessian(evaluate, at, matrix, leg)
        most -= found.cost + price
        at = found.end
        if not price or found.is_at_rest or most < NEWTON_STEPS:
            return found.layer, found.has_mode
        assert hessian is not None
        matrix = hessian(at.theta)
        if not (np.isfinite(matrix).all() and np.abs(matrix).max() > 0):
            return found.layer, found.has_mode


class _Leg(NamedTuple):
    """A descent from where a Hessian was taken, in coordinates that it whitens.

    end: its lowest point.
    layer: Gaussian there.
    has_mode: whether the energy curves upwards.
    is_at_rest: whether the descent has come to a mode close by.
    cost: evaluations.
    """

    end: Evaluated
    layer: Affine
    has_mode: bool
    is_at_rest: bool
    cost: int


def _from_hessian(
    evaluate: Evaluate, at: Evaluated, matrix: np.ndarray, most: int
) -> _Leg:
    layer, is_convex = laplace(at.theta, matrix)
    on = Descent(np.zeros_like(at.theta), scales=np.ones(len(at.theta)))
    on.tell(at.energy, layer.pull_back(on.question[None], at.grad[None])[0])

    def evaluate_white(x: np.ndarray) -> Evaluations:
        answer = evaluate(layer.forward(x), "search")
        return answer._replace(grad=layer.pull_back(x, answer.grad))

    on.prepare()
    descend([on], evaluate_white, most, lambda descent: descent.decrement < CLOSE)
    has_come = on.decrement < CLOSE
    is_near = on.theta @ on.theta < NEAR * len(on.theta)
    x, cost = on.theta[None], on.num_asked - 1
    grad = layer.push_forward(x, on.path[-1].grad[None])[0]
    end = Evaluated(layer.forward(x)[0], on.energy, grad)
    if len(on.path) > 1:
        layer = layer.compose(Affine(on.theta, on.curvature().factor()))
    return _Leg(end, layer, is_convex or has_come, has_come and bool(is_near), cost)


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

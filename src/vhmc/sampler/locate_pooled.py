"""Locate a posterior with many effects: from nearly complete pooling outwards.

Where each effect is linked to many others, as abilities are to the slopes and places of
all items, a mode is far from the mass even with the scales held: it fits the effects to
the data and to each other. With small scales there is nothing to fit. In non-centred
coordinates the effects are close to standard normal there, without a search, and a
Gaussian that follows gradients at its own draws grows with the scales as far as the
data want it.
"""

import numpy as np

from vhmc.evaluation.evaluator import Evaluate
from vhmc.evaluation.target import Evaluations
from vhmc.sampler.descents import Descent, descend
from vhmc.sampler.effects import Effects, NonCentred
from vhmc.sampler.first_gaussian import path_layer
from vhmc.sampler.locate import Located, modes_of
from vhmc.sampler.race import is_finished
from vhmc.sampler.warm_up import FEWEST, not_narrower
from vhmc.transport.affine import Affine, divergence
from vhmc.transport.affine_fit import fit_affine
from vhmc.transport.influence import influence

POOLED = 2.0
"""Logarithm by which the scales of the first Gaussian are below those of the start."""
WIDTH = 0.3
"""Of the logarithms of these scales."""
NUM_DESCENT = 20
"""Evaluations of the descent with the scales held, at most."""
NUM_BATCH = 8
"""Draws of each Gaussian."""
WINDOW = 8
"""Batches to which the next one is fitted."""
SETTLED = 0.003
"""Divergence by dimension from one Gaussian to the next at which it has settled."""
NUM_DRAWS = 20
"""Draws by dimension of the last one, which give its moments in the parameters."""
NON_CENTRED = 0.5
"""Share of the evaluations for Gaussians in non-centred coordinates."""
WIDENING = 0.3
"""Share for Gaussians of the parameters that may not become narrower."""


def locate_pooled(
    rng: np.random.Generator,
    evaluate: Evaluate,
    origin: np.ndarray,
    allowance: int,
    groups: tuple[Effects, ...],
) -> Located | None:
    """A Gaussian around the mass; None if the model fails where it should begin.

    Once the data determine the effects, the scales follow them in non-centred
    coordinates more and more slowly, and in the parameters themselves more quickly.

    allowance: evaluations.
    groups: of all effects.
    """
    outer, dim = NonCentred(groups), len(origin)
    num_descent = min(NUM_DESCENT, allowance // 2)
    layer = _pooled(evaluate, origin, num_descent, outer)
    if layer is None:
        return None
    left = allowance - num_descent
    first, second = int(NON_CENTRED * left), int(WIDENING * left)
    layer = _followed(rng, evaluate, layer, outer, first)
    draws = outer.forward(layer.forward(rng.standard_normal((NUM_DRAWS * dim, dim))))
    if not np.isfinite(draws).all():
        return None
    layer = Affine(draws.mean(axis=0), np.linalg.cholesky(np.cov(draws.T)))
    same = NonCentred(())
    layer = _followed(rng, evaluate, layer, same, second, may_narrow=False)
    layer = _followed(rng, evaluate, layer, same, left - first - second)
    # No mode was looked for, so none is said to be there: the verdict heeds that.
    return Located(layer, [], modes_of([], dim, has_mode=False))


def _followed(
    rng: np.random.Generator,
    evaluate: Evaluate,
    layer: Affine,
    outer: NonCentred,
    allowance: int,
    may_narrow: bool = True,
) -> Affine:
    """The Gaussian refitted again and again to gradients at its latest draws.

    layer: in the coordinates of `outer`.
    """
    # Draws of small scales may be far from the mass, as points of a search are.
    phase = "search" if outer.groups else "warm-up"
    points: list[np.ndarray] = []
    grads: list[np.ndarray] = []
    num_settled = 0
    for _ in range(allowance // NUM_BATCH):
        u = layer.forward(rng.standard_normal((NUM_BATCH, len(layer.mean))))
        answer = evaluate(outer.forward(u), phase)
        known = np.isfinite(answer.energy)
        if not known.any():
            layer = Affine(layer.mean, layer.factor / 2)
            continue
        points.append(u[known])
        grads.append(outer.pull_back(u[known], answer.grad[known]))
        x = layer.inverse(np.concatenate(points[-WINDOW:]))
        pulled = layer.pull_back(x, np.concatenate(grads[-WINDOW:]))
        change = fit_affine(x, pulled, influence(x, pulled))
        change = change if may_narrow else not_narrower(change)
        layer = layer.compose(change)
        is_settled = divergence(change) < SETTLED * len(layer.mean)
        num_settled = num_settled + 1 if is_settled else 0
        if num_settled == FEWEST:
            break
    return layer


def _pooled(
    evaluate: Evaluate, origin: np.ndarray, allowance: int, outer: NonCentred
) -> Affine | None:
    """The Gaussian of small scales around the mode that there is with these held."""
    scales = [one.scale for one in outer.groups]
    start = origin.copy()
    for one in outer.groups:
        start[one.members] = 0.0
        start[one.scale] -= POOLED * 2 / one.power

    def evaluate_held(u: np.ndarray) -> Evaluations:
        answer = evaluate(outer.forward(u), "search")
        grad = outer.pull_back(u, answer.grad)
        grad[:, scales] = 0.0
        return answer._replace(energy=answer.energy - outer.log_det(u), grad=grad)

    descent = Descent(start)
    descend([descent], evaluate_held, allowance, is_finished)
    if not np.isfinite(descent.energy):
        return None
    # Effects are standard normal while nothing is fitted to the data yet.
    seen = path_layer(descent.path).factor
    widths = np.sqrt(np.sum(seen**2, axis=1))
    for one in outer.groups:
        widths[one.members], widths[one.scale] = 1.0, WIDTH
    return Affine(descent.theta, np.diag(widths))

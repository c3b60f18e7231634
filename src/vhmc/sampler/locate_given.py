"""Locate a hierarchical posterior: descents in which its scales are held.

The energy of such a model may fall without bound while its scales shrink, and a mode
that there is lies far from the mass. Given the scales there is one, as a rule, and it
is close to the mass at these scales. Descents hold different ones: draws around their
ends say which are the best.
"""

from collections.abc import Callable, Sequence

import numpy as np

from vhmc.evaluation.evaluator import Evaluate
from vhmc.evaluation.target import Evaluations
from vhmc.sampler.descents import Descent, descend
from vhmc.sampler.first_gaussian import first_layer, path_layer
from vhmc.sampler.locate import MAX_STARTS, Located, modes_of
from vhmc.sampler.race import is_finished
from vhmc.sampler.starts import no_start, starts
from vhmc.transport.affine import evidence_bound

FEWEST = 3
"""Descents, if the allowance suffices for so many."""
PER_DESCENT, PER_DIM = 40, 1.4
"""Evaluations for each descent, at least and by dimension. They share no gradients, as
each holds other values: with 40 those of a Poisson mixed model in 45 dimensions did not
arrive."""
NUM_DRAWS = 6
"""At the end of each descent."""


def locate_given(
    rng: np.random.Generator,
    evaluate: Evaluate,
    origin: np.ndarray,
    allowance: int,
    held: Sequence[int],
    hessian: Callable[[np.ndarray], np.ndarray] | None = None,
    places: Sequence[np.ndarray] = (),
) -> Located:
    """Descend with some coordinates held, and measure the curvature at the best end.

    origin, allowance, hessian, places: as in `locate`.
    held: coordinates that keep the values of each start.
    """
    most = max(PER_DESCENT, PER_DIM * len(origin))
    least = int(np.clip(allowance // PER_DESCENT, 1, FEWEST))
    number = int(np.clip(allowance // most, least, MAX_STARTS))
    chosen = list(places)[:number] or starts(rng, origin, number)
    descents = [Descent(start) for start in chosen]
    reasons: list[np.ndarray] = []

    def evaluate_held(thetas: np.ndarray) -> Evaluations:
        answer = evaluate(thetas, "search")
        reasons.append(answer.reason)
        grad = answer.grad.copy()
        grad[:, held] = 0.0
        return answer._replace(grad=grad)

    num_each = max(1, allowance // len(chosen) - NUM_DRAWS)
    descend(descents, evaluate_held, num_each, is_finished)
    found = [descent for descent in descents if np.isfinite(descent.energy)]
    if not found:
        raise no_start(origin, reasons)
    layers = [path_layer(descent.path) for descent in found]
    x = rng.standard_normal((len(found), NUM_DRAWS, len(origin)))
    x[:, :, held] = 0.0  # what no descent has moved has no width that is known
    draws = np.concatenate(
        [layer.forward(rows) for layer, rows in zip(layers, x, strict=True)]
    )
    energies = evaluate(draws, "screening").energy.reshape(len(found), NUM_DRAWS)
    bounds = [evidence_bound(*pair) for pair in zip(layers, energies, strict=True)]
    best = found[int(np.argmax(np.nan_to_num(bounds, nan=-np.inf)))]
    layer, _ = first_layer(evaluate, best, hessian)
    arrived = [descent for descent in found if is_finished(descent)]
    modes = modes_of(arrived, len(origin), has_mode=True, held=tuple(held))
    return Located(layer, [], modes)

"""Check draws of the surrogate against the model: what the verdict rests on."""

import numpy as np

from vhmc.evaluation.evaluator import Evaluate
from vhmc.evaluation.target import joined
from vhmc.sampler.check import Check, Chosen, Values, checked, tempered_efficiency
from vhmc.sampler.verdict import FEWEST_CHECKS
from vhmc.surrogate.surrogate import Surrogate

CLEAR_EFFICIENCY, CLEAR_SCORE, CLEAR_ERROR = 0.95, 0.05, 0.08
"""Efficiencies, squared score error, and errors of means and sds, in sds, of a half of
the checks that leave no doubt: far within the limits of the verdict."""


def check(
    surrogate: Surrogate,
    evaluate: Evaluate,
    values: Values,
    chosen: Chosen,
    tempered: np.ndarray,
) -> Check:
    """Evaluate the model at draws of the surrogate and of the tempered one.

    At half of its own first; where these leave no doubt the others would tell nothing.
    Tempered ones are few, and each may be the only one in a place that is left out.

    tempered: draws of the tempered surrogate, unconstrained, one a row.
    """
    half = len(chosen.theta) // 2
    first, later = chosen.where(slice(half)), chosen.where(slice(half, None))
    answer = evaluate(np.concatenate([first.theta, tempered]), "check")
    own = answer.where(slice(half))
    wide = tempered_efficiency(surrogate, tempered, answer.where(slice(half, None)))
    if half >= FEWEST_CHECKS:
        found = checked(surrogate, values, first, own, wide)
        if is_clear(found):
            return found
    own = joined([own, evaluate(later.theta, "check")])
    return checked(surrogate, values, chosen, own, wide)


def is_clear(found: Check) -> bool:
    """Whether a surrogate is so close to the posterior that no more checks are due."""
    errors = (
        *(found.weighted_mean_errors, found.weighted_sd_errors),
        *(found.stein_mean_errors, found.stein_sd_errors),
    )
    largest = max(float(np.max(np.abs(one))) for one in errors)
    efficiencies = found.importance_efficiency, found.tempered_efficiency
    return bool(
        np.min(efficiencies) >= CLEAR_EFFICIENCY  # not where one is not known
        and found.hole_fraction == 0
        and found.score_error <= CLEAR_SCORE
        and largest <= CLEAR_ERROR
    )

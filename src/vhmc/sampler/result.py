"""The posterior of a run, in the parameters of the model as it is written."""

from typing import Any

import numpy as np

from vhmc.evaluation.evaluator import Evaluator
from vhmc.sampler.attempt import Attempt
from vhmc.sampler.correction import NONE, Corrected
from vhmc.sampler.evidence import Evidence, log_evidence
from vhmc.sampler.model_graph import labels_of
from vhmc.sampler.modes.record import modes_of
from vhmc.sampler.parameter_errors import long_tail, parameter_errors
from vhmc.sampler.posterior import Posterior
from vhmc.sampler.reasons import Circumstances
from vhmc.sampler.spread import changing_spread
from vhmc.structure.record import Structure
from vhmc.surrogate.surrogate import Surrogate


def result(
    evaluator: Evaluator,
    attempt: Attempt,
    corrected: Corrected,
    *,
    correction: str,
    structure: Structure,
    **more: Any,
) -> Posterior:
    """The posterior from draws and a surrogate in the evaluator's coordinates.

    correction: the name of that which the draws have.
    more: fields of the posterior that are the same in all coordinates.
    """
    theta, verdict = corrected
    surrogate, check = attempt.surrogate.outside(evaluator.layer), attempt.check
    outer = evaluator.outward(theta.reshape(-1, theta.shape[-1]))
    if correction == NONE and isinstance(surrogate, Surrogate):
        # Known since they were drawn, up to the determinant of the map.
        log_det = surrogate.transport.inverse_and_log_det(outer)[1]
        energies = attempt.drawn.energy.ravel() + log_det
    else:
        energies = surrogate.energies(outer)
    outer_check = None if check is None else check.outside(evaluator.layer)
    uncorrected = evaluator.outward(attempt.theta)
    space = evaluator.target.parameters
    if outer_check is not None:
        ess, is_corrected = attempt.drawn.ess, correction != NONE
        if verdict.exact_statistics is not None:
            ess = verdict.exact_statistics.exact_ess
        elif is_corrected:
            ess = min(ess, outer_check.effective_size)
        concerns = verdict.concerns
        found = parameter_errors(outer_check, space, ess, is_corrected, concerns)
        verdict = verdict._replace(parameters=found)
    if verdict.status != "good":
        labels = labels_of(space)
        worst = "" if verdict.statistics is None else verdict.statistics.worst_parameter
        spread = changing_spread(evaluator.evaluation_log, labels)
        tail = "" if outer_check is None else long_tail(outer_check, space, ess)
        known = Circumstances(evaluator.budget, worst, spread, tail)
        verdict = verdict.explained(known)
    return Posterior(
        parameters=evaluator.target.parameters,
        unconstrained=outer.reshape(theta.shape),
        stats={"surrogate_lp": -energies.reshape(theta.shape[:2])},
        costs=dict(evaluator.costs),
        surrogate=surrogate.log_density,
        warnings=verdict.reasons,
        verdict=verdict,
        correction=correction,
        modes=modes_of(surrogate, outer_check, evaluator.target.parameters),
        check=outer_check,
        uncorrected=uncorrected,
        evaluation_log=evaluator.evaluation_log,
        structure=structure.with_hubs(surrogate.hubs),
        evidence=_evidence(attempt),
        constants=evaluator.target.constants,
        **more,
    )


def _evidence(attempt: Attempt) -> Evidence | None:
    """The evidence, if any draw was checked."""
    if attempt.check is None:
        return None
    # With numbers of its own, so that a run that goes on has the same draws.
    rng = np.random.default_rng(0)
    return log_evidence(rng, attempt.surrogate, attempt.drawn, attempt.check)

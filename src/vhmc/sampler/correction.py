"""Corrections of the surrogate's draws, each an entry of the table `CORRECTIONS`."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from vhmc.evaluation.evaluator import Evaluate
from vhmc.numerics.effective_size import FEWEST_DRAWS, bulk_ess
from vhmc.sampler.accept_step import Proposal, States, accept
from vhmc.sampler.assessment import exact_statistics
from vhmc.sampler.check import Check
from vhmc.sampler.drawing import Drawn, Mixed
from vhmc.sampler.verdict import Verdict, judge_exact
from vhmc.surrogate.mixture import Mixture
from vhmc.surrogate.moves import Pace
from vhmc.surrogate.surrogate import Surrogate

TRANSITIONS = 10, 100
"""Fewest and most surrogate transitions between two exact draws."""
LEAST_EFFECTIVE = 20
"""Effective checked draws below which resampling is not considered."""


class Uncorrected(NamedTuple):
    """Draws of a surrogate with all that a correction may use.

    surrogate, drawn, check: the surrogate, its draws and what the model says of them.
    theta: the draws, unconstrained, shape (chain, draw, dim).
    evaluate: of the model.
    allowance: evaluations that the correction may make.
    """

    surrogate: Surrogate | Mixture
    drawn: Drawn | Mixed
    check: Check
    theta: np.ndarray
    evaluate: Evaluate
    allowance: int


class Corrected(NamedTuple):
    """Draws of a correction.

    theta: unconstrained, shape (chain, draw, dim).
    verdict: on them.
    """

    theta: np.ndarray
    verdict: Verdict


class Estimate(NamedTuple):
    """An expectation, its standard error and how it was estimated.

    kind: `draws` for the mean of the uncorrected draws, `control variate` for that
        mean moved by what the importance weights say of its bias, `exact draws` for
        the mean of those, `no mean` where there is none: value and error are not a
        number then. The error of a mean without an sd is infinite.
    """

    value: np.ndarray
    error: np.ndarray
    kind: np.ndarray


class Correction(NamedTuple):
    """One way to correct draws.

    share: of the budget that is set aside for it.
    draw: makes the draws and judges them.
    error: estimated mean squared error of means and sds, in posterior sd; `auto` takes
        the correction that has the least, of those without a share.
    max_ess: bound of the effective size of the draws, from the check.
    is_exact: whether the law of the draws is the posterior, so that means are those of
        the draws; else the importance weights of the checked draws improve them.
    """

    share: float
    draw: Callable[[np.random.Generator, Uncorrected, Verdict], Corrected]
    error: Callable[[Check, np.ndarray], float]
    max_ess: Callable[[Check], float] = lambda check: np.inf
    is_exact: bool = False


def draw_none(
    rng: np.random.Generator, made: Uncorrected, verdict: Verdict
) -> Corrected:
    """The draws of the surrogate."""
    return Corrected(made.theta, verdict)


def draw_importance(
    rng: np.random.Generator, made: Uncorrected, verdict: Verdict
) -> Corrected:
    """Checked draws resampled by their weights, as chains of draws."""
    check, shape = made.check, made.drawn.energy.shape
    chosen = rng.choice(len(check.theta), shape, p=check.weights)
    return Corrected(check.theta[chosen], verdict)


def draw_exact(
    rng: np.random.Generator, made: Uncorrected, verdict: Verdict
) -> Corrected:
    """Chains of delayed acceptance from checked draws, resampled by their weights."""
    surrogate, drawn, check = made.surrogate, made.drawn, made.check
    chains = max(1, min(len(made.theta), made.allowance // 10))
    chosen = rng.choice(len(check.theta), chains, p=check.weights)
    length = drawn.pace.num_transitions * 2 / max(drawn.ess_per_draw, 0.02)
    pace = drawn.pace._replace(num_transitions=int(np.clip(length, *TRANSITIONS)))
    states = States(check.theta[chosen], check.energy[chosen], check.grad[chosen])
    kept, accepted = [], []
    for _ in range(made.allowance // chains):
        states, accept_prob = exact_step(rng, surrogate, made.evaluate, states, pace)
        kept.append(states.theta)
        accepted.append(accept_prob)
    theta = np.stack(kept, axis=1)
    statistics = exact_statistics(theta, float(np.mean(accepted)))
    return Corrected(theta, judge_exact(verdict, statistics))


def exact_step(
    rng: np.random.Generator,
    surrogate: Surrogate | Mixture,
    evaluate: Evaluate,
    states: States,
    pace: Pace,
) -> tuple[States, np.ndarray]:
    """One step of delayed acceptance, with one evaluation a chain.

    The posterior is its law whatever the surrogate. Also acceptance probabilities.

    pace: of the transitions on the surrogate, and their number.
    """
    theta = surrogate.walk(rng, states.theta, pace)
    change = surrogate.energies(theta) - surrogate.energies(states.theta)
    answer = evaluate(theta, "correction")
    return accept(rng, states, Proposal(theta, change), answer)


def bias_error(check: Check, draws: np.ndarray) -> float:
    """Mean squared bias of the uncorrected draws, as the weights show it.

    draws: uncorrected, unconstrained, one a row.
    """
    shift, noise = _shift(_moments(check, draws), check.probability, check.weights)
    return float(np.mean(np.maximum(shift**2 - noise**2, 0.0)))


def resampling_error(check: Check, draws: np.ndarray) -> float:
    """Mean squared error of resampling: the noise of the weights, and of fewer draws.

    A handful of draws with all the weight shows nothing, its own noise least of all.
    """
    if check.effective_size < LEAST_EFFECTIVE:
        return np.inf
    values, weights = _moments(check, draws), check.weights
    return max(
        float(np.mean(weights**2 @ (values - weights @ values) ** 2)),
        float(np.mean(values.var(axis=0)) / check.effective_size),
    )


NONE, IMPORTANCE, EXACT, AUTO = "none", "importance", "exact", "auto"
CORRECTIONS = {
    NONE: Correction(0.0, draw_none, bias_error),
    IMPORTANCE: Correction(
        0.0, draw_importance, resampling_error, lambda check: check.effective_size
    ),
    EXACT: Correction(0.4, draw_exact, lambda check, draws: 0.0, is_exact=True),
}
"""By name."""
CHOICES = (AUTO, *CORRECTIONS)
"""What a user may ask for."""


def budget_share(name: str) -> float:
    """Fraction of the budget that a choice sets aside."""
    return 0.0 if name == AUTO else CORRECTIONS[name].share


def resolve(name: str, check: Check, draws: np.ndarray) -> str:
    """The name of a correction for a choice; `auto` takes that of the least error.

    draws: uncorrected, unconstrained, one a row.
    """
    if name != AUTO:
        return name
    errors = {
        name: row.error(check, draws)
        for name, row in CORRECTIONS.items()
        if not row.share
    }
    return min(errors, key=lambda name: errors[name])


def expect(
    values: np.ndarray,
    checked: np.ndarray,
    probability: np.ndarray,
    weights: np.ndarray,
    ess: float,
) -> Estimate:
    """Means of quantities, with the uncorrected draws as a control variate.

    values, checked: at the uncorrected and at the checked draws, one row a draw.
    probability, weights: of the checked draws, for the surrogate and the posterior.
    ess: effective size of the uncorrected draws.
    """
    shift, noise = _shift(checked, probability, weights)
    mean, chance = values.mean(axis=0), values.std(axis=0) / np.sqrt(max(ess, 1.0))
    bias = np.sqrt(np.maximum(shift**2 - noise**2, 0.0))
    is_moved = bias > noise
    return Estimate(
        value=np.where(is_moved, mean + shift, mean),
        error=np.sqrt(chance**2 + np.where(is_moved, noise**2, bias**2)),
        kind=np.where(is_moved, "control variate", "draws"),
    )


def mean_of_chains(values: np.ndarray) -> Estimate:
    """Means of exact draws.

    values: shape (chain, draw, quantity).
    """
    is_long = values.shape[1] >= FEWEST_DRAWS
    ess = bulk_ess(values) if is_long else np.ones(values.shape[-1])
    error = values.std(axis=(0, 1)) / np.sqrt(np.maximum(ess, 1.0))
    kind = np.full(error.shape, "exact draws")
    return Estimate(values.mean(axis=(0, 1)), error, kind)


def without_moments(estimate: Estimate, moments: np.ndarray) -> Estimate:
    """Means that exist, with errors that exist.

    moments: how many each quantity has (`num_moments`).
    """
    error = np.select([moments < 1, moments < 2], [np.nan, np.inf], estimate.error)
    return Estimate(
        value=np.where(moments < 1, np.nan, estimate.value),
        error=error,
        kind=np.where(moments < 1, "no mean", estimate.kind),
    )


def quantile_at(
    values: np.ndarray, probability: float, below: Estimate
) -> tuple[np.ndarray, np.ndarray]:
    """Quantiles and their standard errors.

    values: draws, one a row.
    below: estimates of the probability that lies up to their quantiles. What it is off
        by and its error are carried over to the quantiles by ranks of draws.
    """
    middle = 2 * probability - below.value
    ranks = np.clip([middle, middle - below.error, middle + below.error], 0.0, 1.0)
    columns = [np.quantile(*pair) for pair in zip(values.T, ranks.T, strict=True)]
    value, low, high = np.array(columns).reshape(-1, 3).T
    return value, (high - low) / 2


def _moments(check: Check, draws: np.ndarray) -> np.ndarray:
    """Standardised values and half their squares less one, at the checked draws."""
    scale = draws.std(axis=0)
    scaled = (check.theta - draws.mean(axis=0)) / np.where(scale > 0, scale, 1.0)
    return np.concatenate([scaled, (scaled**2 - 1) / 2], axis=1)


def _shift(
    values: np.ndarray, probability: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Posterior's less surrogate's mean, and the standard error of that difference."""
    weighted, plain = weights @ values, probability @ values
    influence = weights[:, None] * (values - weighted) - probability[:, None] * (
        values - plain
    )
    # One draw with all the weight has no spread of its own, and yet it is chance.
    unevenness = np.sum(weights**2) - np.sum(probability**2)
    least = max(unevenness, 0.0) * (probability @ (values - plain) ** 2)
    noise = np.sqrt(np.maximum(np.sum(influence**2, axis=0), least))
    return weighted - plain, noise

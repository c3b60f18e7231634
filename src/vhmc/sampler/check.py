"""True values at draws of the frozen surrogate: what the verdict rests on."""

from typing import NamedTuple

import numpy as np

from vhmc.evaluation.space import Space
from vhmc.numerics.importance import (
    delayed_acceptance,
    efficiency,
    normalised,
    pareto_smooth,
)
from vhmc.sampler.rounds import audit_temperature
from vhmc.surrogate.trainer import HOLE, Learner

LEVERAGE_SHARE = 0.4
"""Of the checked draws, chosen by what they contribute to a standard deviation."""


class Chosen(NamedTuple):
    """Draws to check, and what each stands for.

    theta: unconstrained, one a row.
    share: weights under which they represent all draws; they add up to one.
    """

    theta: np.ndarray
    share: np.ndarray


class Check(NamedTuple):
    r"""Draws of the surrogate with the truth there.

    theta, energy, grad: points, true energies and gradients.
    share: weights under which the points represent the surrogate.
    log_weights: $\log$ of share times $e^{V - U}$, up to a constant, Pareto-smoothed;
        minus infinity where the model had no finite answer.
    efficiency: of the importance weights $e^{V - U}$.
    delayed_acceptance: of independent draws.
    spread: standard deviation of $V - U$.
    low_share: share of draws with $V - U$ far below its median: the surrogate's holes.
    high: how far the largest $V - U$ is above the median: what it hardly covers.
    pareto_k: shape of the weights' tail.
    wide_efficiency: importance efficiency as draws of the heated surrogate see it,
        which go where its own do not.
    score_error: mean squared error of the score, by dimension, whitened.
    mean_errors, sd_errors: first-order estimates of the errors of means, in posterior
        sd, and of relative errors of sds, by parameter (see `stein_errors`).
    mean_shifts, sd_shifts: the same errors as the importance weights see them, of all
        values in the user's space.
    parameter_errors: root mean squared score errors in posterior sd, by parameter.
    """

    theta: np.ndarray
    energy: np.ndarray
    grad: np.ndarray
    share: np.ndarray
    log_weights: np.ndarray
    efficiency: float
    delayed_acceptance: float
    spread: float
    low_share: float
    high: float
    pareto_k: float
    wide_efficiency: float
    score_error: float
    mean_errors: np.ndarray
    sd_errors: np.ndarray
    mean_shifts: np.ndarray
    sd_shifts: np.ndarray
    parameter_errors: np.ndarray

    @property
    def weights(self) -> np.ndarray:
        """Smoothed importance weights that add up to one."""
        return normalised(self.log_weights)


def choose(
    rng: np.random.Generator, parameters: Space, draws: np.ndarray, number: int
) -> Chosen:
    """Choose draws to check: some at random, some by what hangs on them.

    A standard deviation may rest on one draw in a hundred, far out in a parameter that
    is an exponential. Such draws are chosen more often, and count for less each.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        leverage = np.max(standardised(parameters.values(draws)) ** 2, axis=1)
        leverage = leverage / leverage.sum()
    uniform = np.full(len(draws), 1 / len(draws))
    if not np.isfinite(leverage).all():  # draws beyond all measure, or all the same
        leverage = uniform
    chance = (1 - LEVERAGE_SHARE) * uniform + LEVERAGE_SHARE * leverage
    chosen = rng.choice(len(draws), number, p=chance / chance.sum())
    share = 1 / chance[chosen]
    return Chosen(draws[chosen], share / share.sum())


def standardised(values: np.ndarray) -> np.ndarray:
    """Columns with mean zero and sd one; zeros where that cannot be."""
    with np.errstate(invalid="ignore", divide="ignore"):
        scaled = (values - values.mean(axis=0)) / values.std(axis=0)
    return np.nan_to_num(scaled, nan=0.0, posinf=0.0, neginf=0.0)


def check(
    learner: Learner, parameters: Space, chosen: Chosen, hot: np.ndarray
) -> Check:
    """Pay for the truth at draws of the surrogate and of the heated one.

    hot: draws of the heated surrogate, unconstrained, one a row.
    """
    draws, share = chosen
    answer = learner.account.evaluate(np.concatenate([draws, hot]), "checking")
    # Where the model failed nothing was checked; the verdict counts that apart.
    own, others = np.split(answer.is_answered, [len(draws)])
    own = own if own.any() else ~own
    wide = _wide_efficiency(learner, hot[others], answer.energy[len(draws) :][others])
    energy, grad = answer.energy[: len(draws)][own], answer.grad[: len(draws)][own]
    draws, share = draws[own], share[own] / share[own].sum()
    raw = learner.energies(draws) - energy
    known = np.isfinite(energy)
    if not known.any():
        return Check(
            *(draws, energy, grad, share, np.zeros(len(draws))),
            *(0.0, 0.0, np.inf, 1.0, np.inf, np.inf, 0.0, np.inf),
            *np.full((5, learner.dim), np.inf),
        )
    log_weights = np.full(len(draws), -np.inf)
    log_weights[known], pareto_k = pareto_smooth(raw[known] + np.log(share[known]))
    errors = learner.score_errors(draws[known], grad[known])
    x = learner.chart.to_x(draws[known])
    by_parameter = learner.chart.grad_to_theta(x, errors)
    part = share[known] / share[known].sum()
    centre = part @ draws[known]
    scale = np.sqrt(part @ (draws[known] - centre) ** 2)
    mean_errors, sd_errors = stein_errors(draws[known], by_parameter, part)
    values = standardised(parameters.values(draws))
    mean_shifts, sd_shifts = _shifts(values, share, normalised(log_weights))
    above = raw - np.median(raw[known])
    return Check(
        theta=draws,
        energy=energy,
        grad=grad,
        share=share,
        log_weights=log_weights,
        efficiency=efficiency(raw, share),
        delayed_acceptance=delayed_acceptance(raw, share),
        spread=float(np.sqrt(part @ (raw[known] - part @ raw[known]) ** 2)),
        low_share=float(share @ ~(above > -HOLE)),
        high=float(np.max(above)),
        pareto_k=pareto_k,
        wide_efficiency=wide,
        score_error=float(part @ np.mean(errors**2, axis=1)),
        mean_errors=mean_errors,
        sd_errors=sd_errors,
        mean_shifts=mean_shifts,
        sd_shifts=sd_shifts,
        parameter_errors=np.sqrt(part @ by_parameter**2) * scale,
    )


def stein_errors(
    draws: np.ndarray, score_errors: np.ndarray, share: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    r"""First-order errors of means and sds from score errors at draws of the surrogate.

    With $q \propto e^{-V}$ and $p \propto e^{-U}$ Gaussian of one dimension,
    $\sigma E_q[V' - U']$ is the error of the mean in sd and
    $\frac12 E_q[(\theta - m) (V' - U')]$ that of the sd, relative. They also see a wall
    that keeps draws from part of the posterior: at its foot $V' - U'$ is large.
    """
    centred = draws - share @ draws
    scale = np.sqrt(share @ centred**2)
    return (share @ score_errors) * scale, 0.5 * share @ (centred * score_errors)


def _shifts(
    values: np.ndarray, share: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Means in sd and relative sds of the surrogate less those of the posterior."""
    (mean, sd), (true_mean, true_sd) = (
        (part @ values, np.sqrt(part @ (values - part @ values) ** 2))
        for part in (share, weights)
    )
    floor = np.maximum(true_sd, 1e-6)
    return (mean - true_mean) / floor, np.where(sd > 0, sd / floor - 1, 0.0)


def _wide_efficiency(learner: Learner, hot: np.ndarray, energies: np.ndarray) -> float:
    r"""Efficiency $E_q[w]^2 / E_q[w^2]$ with the means taken over heated draws.

    They are brought back to $q$ by $e^{V / T - V}$. Where $q$ has next to no draws but
    the posterior has mass, $w$ is huge, and only these draws see it.
    """
    if not np.isfinite(energies).any():
        return np.nan
    guessed = learner.energies(hot)
    share = normalised((1 / audit_temperature(learner.dim) - 1) * guessed)
    return efficiency(guessed - energies, share)

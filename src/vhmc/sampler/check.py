"""What true energies and gradients at draws say of a surrogate."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import softmax

from vhmc.evaluation.target import Evaluations
from vhmc.numerics.importance import (
    efficiency,
    independent_acceptance,
    pareto_smooth,
)
from vhmc.numerics.tails import needs_ranks, normal_scores
from vhmc.sampler.acquisition import tempering
from vhmc.surrogate.mixture import Mixture
from vhmc.surrogate.ridge_bound import HOLE_DEPTH
from vhmc.surrogate.surrogate import Surrogate
from vhmc.transport.layer import AbstractLayer

LEVERAGE_FRACTION = 0.4
"""Of the checked draws, chosen by what they contribute to a standard deviation."""

DEEP = 3 * HOLE_DEPTH
"""Nats by which the surrogate is too low in a hole of its own."""

BY_VALUE = (
    *("weighted_mean_errors", "weighted_sd_errors", "mean_noises", "sd_noises"),
    *("mean_spreads", "sd_spreads"),
)
"""Fields of `Check` with an entry for every value in the user's space."""

Values = Callable[[np.ndarray], np.ndarray]
"""From unconstrained points to all values in the user's space, one row a point."""


class Chosen(NamedTuple):
    """Draws to check.

    theta: unconstrained, one a row.
    probability: under which they represent all draws; they add up to one.
    """

    theta: np.ndarray
    probability: np.ndarray

    def where(self, rows: slice) -> "Chosen":
        """Some of the draws."""
        probability = self.probability[rows]
        return Chosen(self.theta[rows], probability / probability.sum())


class Check(NamedTuple):
    r"""Draws of the surrogate with their true energies and gradients.

    theta, energy, grad: points, true energies and gradients.
    probability: under which the points represent the surrogate.
    log_weights: $\log$ of probability times $e^{V - U}$, up to a constant,
        Pareto-smoothed; minus infinity where the model had no finite answer.
    importance_efficiency: $E[w]^2 / E[w^2]$ with $w = e^{V - U}$.
    independent_acceptance: mean of $\min(1, w_j / w_i)$ over pairs.
    log_weight_sd: standard deviation of $V - U$.
    hole_fraction: fraction of draws with $V - U$ far below its median.
    largest_log_weight: how far the largest $V - U$ is above the median.
    pareto_k: shape of the weights' tail.
    tempered_efficiency: importance efficiency by draws of the tempered surrogate,
        which go where its own do not.
    score_error: mean squared score error by dimension, latent.
    stein_mean_errors, stein_sd_errors: first-order estimates of the errors of means,
        in posterior sd, and of relative errors of sds, by parameter (`stein_errors`).
    weighted_mean_errors, weighted_sd_errors: the same errors by the importance
        weights, of all values in the user's space; heavy tails are judged by normal
        scores of their ranks (`with_moments`).
    mean_noises, sd_noises: standard errors of the latter two.
    mean_spreads, sd_spreads: of one draw: these over the root of the effective size of
        draws are the standard errors of their means and sds.
    parameter_errors: root mean squared score errors in posterior sd, by parameter.
    """

    theta: np.ndarray
    energy: np.ndarray
    grad: np.ndarray
    probability: np.ndarray
    log_weights: np.ndarray
    importance_efficiency: float
    independent_acceptance: float
    log_weight_sd: float
    hole_fraction: float
    largest_log_weight: float
    pareto_k: float
    tempered_efficiency: float
    score_error: float
    stein_mean_errors: np.ndarray
    stein_sd_errors: np.ndarray
    weighted_mean_errors: np.ndarray
    weighted_sd_errors: np.ndarray
    mean_noises: np.ndarray
    sd_noises: np.ndarray
    mean_spreads: np.ndarray
    sd_spreads: np.ndarray
    parameter_errors: np.ndarray

    def outside(self, layer: AbstractLayer | None) -> "Check":
        """Points, energies and gradients on the other side of a layer."""
        if layer is None:
            return self
        x, grad = self.theta, self.grad + layer.log_det_grad(self.theta)
        return self._replace(
            theta=layer.forward(x),
            energy=self.energy + layer.log_det(x),
            grad=layer.push_forward(x, grad),
        )

    def where(self, chosen: np.ndarray) -> "Check":
        """Some of the points, with the statistics of all."""
        return self._replace(
            theta=self.theta[chosen],
            energy=self.energy[chosen],
            grad=self.grad[chosen],
            probability=self.probability[chosen],
            log_weights=self.log_weights[chosen],
        )

    @property
    def weights(self) -> np.ndarray:
        """Smoothed importance weights that add up to one."""
        return softmax(self.log_weights)

    @property
    def effective_size(self) -> float:
        r"""Draws that the weights leave, $1 / \sum w^2$."""
        return float(1 / np.sum(self.weights**2))


def with_moments(values: Values, draws: np.ndarray) -> Values:
    """The values, or the normal scores of those whose sd draws do not tell.

    Errors in units of an sd that does not exist mean nothing, and by leverage a few
    draws far out would be chosen over and over. Of ranks both make sense.

    draws: of all chains, one after the other, unconstrained, one a row.
    """
    with np.errstate(over="ignore"):
        drawn = values(draws)
    lacking = np.flatnonzero(needs_ranks(drawn[None]))
    drawn = drawn[:, lacking]
    if not len(lacking):
        return values

    def scored(thetas: np.ndarray) -> np.ndarray:
        found = np.array(values(thetas))
        for column, known in zip(lacking, drawn.T, strict=True):
            found[:, column] = normal_scores(found[:, column], known)
        return found

    return scored


def choose(
    rng: np.random.Generator, values: Values, draws: np.ndarray, number: int
) -> Chosen:
    """Choose draws to check: some at random, some by their leverage.

    A standard deviation may rest on one draw in a hundred, far out in a parameter that
    is an exponential. Such draws are chosen more often, and weigh less each.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        leverage = np.max(standardised(values(draws)) ** 2, axis=1)
        leverage = leverage / leverage.sum()
    uniform = np.full(len(draws), 1 / len(draws))
    if not np.isfinite(leverage).all():  # overflow, or all draws are the same
        leverage = uniform
    chance = (1 - LEVERAGE_FRACTION) * uniform + LEVERAGE_FRACTION * leverage
    chosen = rng.choice(len(draws), number, p=chance / chance.sum())
    probability = 1 / chance[chosen]
    return Chosen(draws[chosen], probability / probability.sum())


def standardised(values: np.ndarray) -> np.ndarray:
    """Columns with mean zero and sd one; zeros where that cannot be."""
    with np.errstate(invalid="ignore", divide="ignore"):
        scaled = (values - values.mean(axis=0)) / values.std(axis=0)
    return np.nan_to_num(scaled, nan=0.0, posinf=0.0, neginf=0.0)


def checked(
    surrogate: Surrogate | Mixture,
    values: Values,
    chosen: Chosen,
    answer: Evaluations,
    wide: float,
) -> Check:
    """What true energies and gradients say of draws of the surrogate.

    answer: at the chosen draws.
    wide: the tempered efficiency.
    """
    draws, probability = chosen
    # Where the model failed nothing was checked; the verdict counts that apart.
    own = answer.is_answered
    own = own if own.any() else ~own
    energy, grad = answer.energy[own], answer.grad[own]
    draws, probability = draws[own], probability[own] / probability[own].sum()
    raw = surrogate.energies(draws) - energy
    known = np.isfinite(energy)
    if not known.any():
        unknown = Check(
            *(draws, energy, grad, probability, np.zeros(len(draws))),
            *(0.0, 0.0, np.inf, 1.0, np.inf, np.inf, 0.0, np.inf),
            *np.full((9, surrogate.dim), np.inf),
        )
        by_value = np.full(values(draws[:1]).shape[1], np.inf)
        fields: dict[str, Any] = dict.fromkeys(BY_VALUE, by_value)
        return unknown._replace(**fields)
    log_weights = np.full(len(draws), -np.inf)
    smoothed, pareto_k = pareto_smooth(raw[known] + np.log(probability[known]))
    log_weights[known] = smoothed
    errors = surrogate.score_errors(draws[known], grad[known])
    part = probability[known] / probability[known].sum()
    at, by_parameter = surrogate.by_parameter(draws[known], errors)
    scale = np.sqrt(part @ (at - part @ at) ** 2)
    stein_mean_errors, stein_sd_errors = stein_errors(at, by_parameter, part)
    at = standardised(values(draws))
    weights = softmax(log_weights)
    weighted_mean_errors, weighted_sd_errors = _weighted_errors(
        at, probability, weights
    )
    mean_noises, mean_spreads, sd_noises, sd_spreads = _noises(at, probability, weights)
    above = raw - np.median(raw[known])
    return Check(
        theta=draws,
        energy=energy,
        grad=grad,
        probability=probability,
        log_weights=log_weights,
        importance_efficiency=efficiency(raw, probability),
        independent_acceptance=independent_acceptance(raw, probability),
        log_weight_sd=float(np.sqrt(part @ (raw[known] - part @ raw[known]) ** 2)),
        hole_fraction=float(probability @ ~(above > -HOLE_DEPTH)),
        largest_log_weight=float(np.max(above)),
        pareto_k=pareto_k,
        tempered_efficiency=wide,
        score_error=float(part @ np.mean(errors**2, axis=1)),
        stein_mean_errors=stein_mean_errors,
        stein_sd_errors=stein_sd_errors,
        weighted_mean_errors=weighted_mean_errors,
        weighted_sd_errors=weighted_sd_errors,
        mean_noises=mean_noises,
        sd_noises=sd_noises,
        mean_spreads=mean_spreads,
        sd_spreads=sd_spreads,
        parameter_errors=np.sqrt(part @ by_parameter**2) * scale,
    )


def stein_errors(
    draws: np.ndarray, score_errors: np.ndarray, probability: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    r"""First-order errors of means and sds from score errors at draws of the surrogate.

    With $q \propto e^{-V}$ and $p \propto e^{-U}$ Gaussian of one dimension,
    $\sigma E_q[V' - U']$ is the error of the mean in sd and
    $\frac12 E_q[(\theta - m) (V' - U')]$ that of the sd, relative. They also see a wall
    that keeps draws from part of the posterior: at its foot $V' - U'$ is large.
    """
    centred = draws - probability @ draws
    scale = np.sqrt(probability @ centred**2)
    mean_errors = (probability @ score_errors) * scale
    return mean_errors, 0.5 * probability @ (centred * score_errors)


def _weighted_errors(
    values: np.ndarray, probability: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Means in sd and relative sds of the surrogate less those of the posterior."""
    (mean, sd), (true_mean, true_sd) = (
        (part @ values, np.sqrt(part @ (values - part @ values) ** 2))
        for part in (probability, weights)
    )
    floor = np.maximum(true_sd, 1e-6)
    return (mean - true_mean) / floor, np.where(sd > 0, sd / floor - 1, 0.0)


def _noises(
    values: np.ndarray, probability: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, ...]:
    r"""Standard errors of the errors by weights, and spreads of one draw.

    To first order the mean is off by the average of $x$, in sd, and the relative sd by
    that of $(x^2 - 1) / 2$.
    """
    mean = weights @ values
    x = (values - mean) / np.maximum(np.sqrt(weights @ (values - mean) ** 2), 1e-6)
    found = []
    for influence in (x, 0.5 * (x**2 - 1)):
        found.append(np.sqrt((weights - probability) ** 2 @ influence**2))
        found.append(np.sqrt(weights @ influence**2))
    return tuple(found)


def tempered_efficiency(
    surrogate: Surrogate,
    tempered: np.ndarray,
    answer: Evaluations,
    whole: Surrogate | Mixture | None = None,
) -> float:
    r"""Efficiency $E_q[w]^2 / E_q[w^2]$ with the means taken over tempered draws.

    They are brought back to $q$ by $e^{V / T - V}$. Where $q$ has next to no draws but
    the posterior has mass, $w$ is huge, and only these draws see it. Where it is the
    surrogate that has mass of its own, $w$ is next to nothing: the draws of $q$ tell
    whether that matters, and one point there would outweigh all others here.

    answer: at the tempered draws.
    whole: the mixture that the surrogate is part of, if it is.
    """
    own = answer.is_answered
    tempered, energies = tempered[own], answer.energy[own]
    if not np.isfinite(energies).any():
        return np.nan
    temperature = tempering(surrogate.dim)
    probability = softmax((1 / temperature - 1) * surrogate.energies(tempered))
    predicted = (whole or surrogate).energies(tempered)
    above = predicted - energies
    is_known = above > np.median(above[np.isfinite(above)]) - DEEP
    share = probability * is_known
    return efficiency(above, share / share.sum())

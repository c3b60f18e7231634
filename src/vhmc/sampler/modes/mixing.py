"""Weigh the modes with true energies, and draw from the mixture of their surrogates."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp, softmax

from vhmc.evaluation.evaluator import Evaluate
from vhmc.evaluation.target import Evaluations
from vhmc.numerics.effective_size import worst_ess, worst_rhat
from vhmc.sampler.check import (
    Check,
    Chosen,
    Values,
    checked,
    choose,
    tempered_efficiency,
)
from vhmc.sampler.drawing import Drawn, Mixed
from vhmc.sampler.evidence import log_normaliser
from vhmc.surrogate.mixture import Mixture
from vhmc.surrogate.surrogate import Surrogate

FAIR = 0.5
"""Share of the checked draws that is divided equally among the modes."""
EM_STEPS = 30
SMALL = 0.01
"""Mass below which a mode's own mixing does not count."""


class DrawnPart(NamedTuple):
    """A mode's surrogate with its draws.

    drawn: latent.
    tempered: draws of the tempered surrogate, unconstrained, one a row.
    log_mass: a first estimate of the logarithm of its mass.
    """

    surrogate: Surrogate
    drawn: Drawn
    tempered: np.ndarray
    log_mass: float


def weighed(
    rng: np.random.Generator,
    parts: Sequence[DrawnPart],
    evaluate: Evaluate,
    values: Values,
    number: int,
) -> tuple[Mixture, Mixed, Check]:
    """Evaluate draws of every mode; its mass is its evidence, as they show it.

    number: of draws to check, without the tempered ones.
    """
    shares = softmax([part.log_mass for part in parts])
    counts = np.floor(number * (FAIR / len(parts) + (1 - FAIR) * shares)).astype(int)
    counts = np.maximum(counts, 2)
    chosen = []
    for part, count in zip(parts, counts, strict=True):
        theta = part.drawn.theta(part.surrogate)
        flat = theta.reshape(-1, theta.shape[-1])
        chosen.append(choose(rng, values, flat, int(count)))
    asked = [rows for part, one in zip(parts, chosen, strict=True)
             for rows in (one.theta, part.tempered)]  # fmt: skip
    answer = evaluate(np.concatenate(asked), "check")
    ends = np.cumsum([len(rows) for rows in asked])[:-1]
    pieces = np.split(np.arange(len(answer.energy)), ends)
    own = [answer.where(rows) for rows in pieces[::2]]
    wide = [answer.where(rows) for rows in pieces[1::2]]
    found = [log_normaliser(rng, part.surrogate, part.drawn) for part in parts]
    normalisers, errors = np.array(found).T
    surrogates = tuple(part.surrogate for part in parts)
    equal = np.full(len(parts), -np.log(len(parts)))
    mixture = Mixture(surrogates, equal, normalisers, errors)
    mixture = mixture.weighed(_log_masses(mixture, chosen, own))
    mixed = _mixed(rng, mixture, [part.drawn for part in parts])
    masses = np.exp(mixture.log_masses)
    fair = Chosen(
        np.concatenate([one.theta for one in chosen]),
        np.concatenate(
            [mass * one.probability for mass, one in zip(masses, chosen, strict=True)]
        ),
    )
    efficiencies = [
        tempered_efficiency(part.surrogate, part.tempered, one, mixture)
        for part, one in zip(parts, wide, strict=True)
    ]
    every = answer.where(np.concatenate(pieces[::2]))
    return mixture, mixed, checked(mixture, values, fair, every, min(efficiencies))


def _log_masses(
    mixture: Mixture, chosen: Sequence[Chosen], answers: Sequence[Evaluations]
) -> np.ndarray:
    r"""Logarithms of the parts' masses, by draws of each.

    With $r_k$ the probability that a point comes from part $k$,
    $m_k = \int r_k p = E_{q_k} [r_k p / q_k]$. It depends on the masses where parts
    overlap, as a slab and its spike do: this is EM for the weights of a mixture.

    chosen, answers: checked draws of every part.
    """
    log_weights, log_parts = [], []
    for k, (one, answer) in enumerate(zip(chosen, answers, strict=True)):
        known = answer.is_answered
        parts = mixture.log_parts(one.theta[known])
        probability = one.probability[known] / one.probability[known].sum()
        own = np.log(probability) - (parts[:, k] - mixture.log_masses[k])
        log_weights.append(own - answer.energy[known])
        log_parts.append(parts)
    change = np.zeros(len(chosen))
    for _ in range(EM_STEPS):
        log_masses = np.array(
            [
                logsumexp(weights + (parts + change)[:, k] - _total(parts + change))
                for k, (weights, parts) in enumerate(
                    zip(log_weights, log_parts, strict=True)
                )
            ]
        )
        change = log_masses - logsumexp(log_masses) - mixture.log_masses
    return mixture.log_masses + change


def _total(log_parts: np.ndarray) -> np.ndarray:
    return np.asarray(logsumexp(log_parts, axis=1))


def _mixed(rng: np.random.Generator, mixture: Mixture, drawn: Sequence[Drawn]) -> Mixed:
    """Draws whose modes are independent, with the next draw of each mode's chain."""
    masses = np.exp(mixture.log_masses)
    chains, number = drawn[0].energy.shape
    labels = rng.choice(len(masses), (chains, number), p=masses)
    draws = np.zeros_like(drawn[0].x)
    for k, (part, one) in enumerate(zip(mixture.parts, drawn, strict=True)):
        is_mine = labels == k
        # As many of the first draws of each chain as it has of this mode.
        counts = is_mine.sum(axis=1)
        first = np.arange(number) < counts[:, None]
        draws[is_mine] = part.transport.forward(one.x[first])
    flat = draws.reshape(-1, draws.shape[-1])
    heavy = [one for one, mass in zip(drawn, masses, strict=True) if mass > SMALL]
    return Mixed(
        draws=draws,
        energy=mixture.energies(flat).reshape(labels.shape),
        acceptance=min(one.acceptance for one in heavy),
        rhat=max(worst_rhat(draws), *(one.rhat for one in heavy)),
        ess=worst_ess(draws),
        pace=drawn[int(np.argmax(masses))].pace,
    )

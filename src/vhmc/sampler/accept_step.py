r"""The accept step with the true energy, of training and of the exact correction.

From $\theta$ a chain moves to a proposed $\theta'$ with probability
$\min(1, \exp(U(\theta) - U(\theta') + c))$, where the log correction $c$ belongs to the
proposal.
"""

from typing import NamedTuple

import numpy as np

from vhmc.evaluation.target import Evaluations


class States(NamedTuple):
    """Unconstrained points of the chains, with true energies and gradients."""

    theta: np.ndarray
    energy: np.ndarray
    grad: np.ndarray


class Proposal(NamedTuple):
    """Points to evaluate, one a chain, and the log corrections of their acceptance."""

    theta: np.ndarray
    log_correction: np.ndarray


def accept(
    rng: np.random.Generator,
    states: States,
    proposal: Proposal,
    answer: Evaluations,
) -> tuple[States, np.ndarray]:
    """The accept step with the true energy: new states, and acceptance probabilities.

    answer: true energies and gradients at the proposed points.
    """
    log_ratio = states.energy - answer.energy + proposal.log_correction
    log_ratio[~np.isfinite(log_ratio)] = -np.inf
    accept_prob = np.exp(np.minimum(log_ratio, 0.0))
    is_moved = rng.uniform(size=len(accept_prob)) < accept_prob
    moved = States(
        np.where(is_moved[:, None], proposal.theta, states.theta),
        np.where(is_moved, answer.energy, states.energy),
        np.where(is_moved[:, None], answer.grad, states.grad),
    )
    return moved, accept_prob

r"""Delayed acceptance: one true value a draw, and the exact posterior as its law.

A run of surrogate transitions is a reversible proposal for $e^{-V}$, so its end is
accepted with probability $\min(1, w(\theta') / w(\theta))$, $w = e^{V - U}$.
"""

from typing import NamedTuple

import numpy as np

from vhmc.surrogate.moves import walk
from vhmc.surrogate.residual import Residual
from vhmc.surrogate.trainer import Learner


class DelayedState(NamedTuple):
    r"""Points of the chains, unconstrained, with $\log w$ there."""

    theta: np.ndarray
    log_weight: np.ndarray


class DelayedAcceptance(NamedTuple):
    """The kernel of the exact rung.

    learner: surrogate, and the account that pays.
    residual: that surrogate for JAX, sent there once.
    step_size, num_steps: of the trajectories on the surrogate.
    num_transitions: on the surrogate, between two true values.
    """

    learner: Learner
    residual: Residual
    step_size: float
    num_steps: int
    num_transitions: int

    def init(self, theta: np.ndarray, energy: np.ndarray) -> DelayedState:
        """Chains at points whose true energies are known."""
        return DelayedState(theta, self.learner.energies(theta) - energy)

    def step(
        self, rng: np.random.Generator, state: DelayedState
    ) -> tuple[DelayedState, np.ndarray]:
        """Move every chain once, for one call each; also acceptance probabilities."""
        learner = self.learner
        x = learner.chart.to_x(state.theta)
        run = walk(
            rng,
            x,
            self.residual,
            self.step_size,
            self.num_steps,
            self.num_transitions,
            np.ones(len(x)),
        )
        theta = learner.chart.to_theta(np.asarray(run.x))
        answer = learner.account.evaluate(theta, "correcting")
        log_weight = learner.energies(theta) - answer.energy
        accept_prob = np.exp(np.minimum(log_weight - state.log_weight, 0.0))
        is_moved = rng.uniform(size=len(x)) < accept_prob
        moved = DelayedState(
            np.where(is_moved[:, None], theta, state.theta),
            np.where(is_moved, log_weight, state.log_weight),
        )
        return moved, accept_prob

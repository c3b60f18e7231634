"""Rounds of training: moves on the surrogate, accepted with the true energy."""

from typing import NamedTuple

import numpy as np
import scipy.spatial
from scipy.special import softmax

from vhmc.evaluation.user_code import HUGE
from vhmc.numerics.effective_size import worst_rhat
from vhmc.sampler.accept_step import States, accept
from vhmc.sampler.acquisition import (
    AbstractAcquisition,
    DelayedAcceptance,
    SingleTrajectory,
    Tempered,
    assign,
    propose,
    tempering,
)
from vhmc.sampler.check import Check, Values
from vhmc.sampler.modes.part import Evaluates
from vhmc.surrogate.moves import Pace, walk
from vhmc.surrogate.ridge_bound import HOLE_DEPTH
from vhmc.surrogate.trainer import Trainer
from vhmc.surrogate.training_set import AWAY

TARGET_ACCEPTANCE = 0.85
"""Acceptance on the surrogate that the step size aims at."""
TARGET_TRUE_ACCEPTANCE = 0.65
"""True acceptance of single trajectories below which they are shortened."""
TRAJECTORY = 2.0
"""Length of a trajectory in latent time."""
MAX_STEPS = 64
TYPICAL = 6.0
"""Standard deviations of the energy above its median at which a chain may start."""


class RoundReport(NamedTuple):
    """What one round saw; predictions are made before the surrogate is fitted to it.

    spent: evaluations so far.
    delayed_acceptance, single_trajectory: mean true acceptance of these proposals.
    excess: nats by which the surrogate is too high at tempered proposals, at most.
    surrogate: mean acceptance on the surrogate.
    score_error: median over points of the squared score error by dimension.
    """

    spent: int
    delayed_acceptance: float
    single_trajectory: float
    excess: float
    surrogate: float
    score_error: float


class Rounds:
    """Chains that target the true posterior; their evaluations train the surrogate.

    trainer: of the surrogate.
    evaluator: of the model.
    num_chains: chains, and evaluations of a round.
    rng: of all moves.
    values: to the user's space, in which some draws matter more than others.
    """

    def __init__(
        self,
        trainer: Trainer,
        evaluator: Evaluates,
        num_chains: int,
        rng: np.random.Generator,
        values: Values,
    ):
        self.trainer, self._evaluator = trainer, evaluator
        self._rng, self._values = rng, values
        self.step_size = trainer.surrogate.dim**-0.25
        self.reports: list[RoundReport] = []
        self._stretch = 1.0
        self.states = self._first_states(num_chains)
        self._visited = [self.states]

    def use(self, evaluator: Evaluates) -> None:
        """Ask this evaluator from now on."""
        self._evaluator = evaluator

    def advance(self, num_delayed: int, num_transitions: int) -> RoundReport:
        """Move every chain once, with one evaluation each.

        num_delayed: chains that are moved by delayed acceptance.
        num_transitions: of them on the surrogate.
        """
        surrogate, states = self.trainer.surrogate, self.states
        assigned = assign(self._rng, len(states.energy), self._counts(num_delayed))
        proposal, moves = propose(
            self._rng,
            surrogate,
            states,
            assigned,
            self._pace(TRAJECTORY, num_transitions),
            self._pace(TRAJECTORY * self._stretch),
        )
        answer = self._evaluator.evaluate(proposal.theta, "training")
        self.states, accept_prob = accept(self._rng, states, proposal, answer)
        self._visited.append(self.states)

        log_weights = surrogate.energies(proposal.theta) - answer.energy
        # A model that fails at some points says nothing of the surrogate there.
        chains = {type(a): is_mine & answer.is_answered for a, is_mine in assigned}
        delayed, tempered = chains[DelayedAcceptance], chains[Tempered]
        self.trainer.adapt_ridge(log_weights[delayed])
        known = np.isfinite(answer.energy)
        errors = surrogate.score_errors(proposal.theta[known], answer.grad[known])
        report = RoundReport(
            spent=self._evaluator.spent,
            delayed_acceptance=_mean(accept_prob[delayed]),
            single_trajectory=_mean(accept_prob[chains[SingleTrajectory]]),
            excess=float(
                np.max(log_weights[tempered]) - np.median(log_weights[delayed])
            )
            if tempered.any() and delayed.any()
            else -np.inf,
            surrogate=float(np.asarray(moves.walk.acceptance)[~tempered].mean()),
            score_error=float(np.median(np.mean(errors**2, axis=1)))
            if known.any()
            else np.inf,
        )
        self.reports.append(report)
        self._adapt(report)
        return report

    def _counts(self, num_delayed: int) -> list[tuple[AbstractAcquisition, int]]:
        """The acquisitions of a round, and how many chains each moves."""
        num_chains = len(self.states.energy)
        num_tempered = max(1, num_chains // 8)
        num_delayed = min(num_delayed, num_chains - num_tempered - 1)
        return [
            (DelayedAcceptance(), num_delayed),
            (Tempered(tempering(self.trainer.surrogate.dim)), num_tempered),
            (SingleTrajectory(), num_chains - num_delayed - num_tempered),
        ]

    def repair(self, number: int, draws: np.ndarray) -> bool:
        """Evaluate draws of the surrogate itself, and around them.

        Chains start each round where the true energy holds them. These draws go where
        the surrogate would send its users: a quarter at random; a quarter the farthest
        from all evaluated points, where it may be too low; a quarter the farthest out
        in the user's space, on which standard deviations depend. The last quarter is
        drawn from the tempered surrogate, and looks where it is too high for its own
        draws to go. Returns whether it was too low at none of its own draws.

        draws: many of the surrogate, latent, one a row.
        """
        surrogate, quarter = self.trainer.surrogate, number // 4
        draws = draws[np.isfinite(draws).all(axis=1)]
        thetas = surrogate.transport.forward(draws)
        isolated = np.argsort(-self._isolation(draws))[:quarter]
        outer = np.argsort(-self._outlyingness(thetas))[:quarter]
        special = np.union1d(isolated, outer)
        others = np.setdiff1d(np.arange(len(draws)), special)
        num_others = number - quarter - len(special)
        own = thetas[np.append(special, self._rng.permutation(others)[:num_others])]
        thetas = np.concatenate([own, self.tempered_draws(number - len(own))])
        answer = self._evaluator.evaluate(thetas, "repair")
        log_weights = (surrogate.energies(thetas) - answer.energy)[: len(own)]
        answered = answer.is_answered[: len(own)]
        # The special ones stand for themselves alone, the others for all the rest.
        weight = np.ones(len(own))
        weight[len(special) :] = len(others) / max(1, len(own) - len(special))
        self._restart(own, answer.energy[: len(own)], answer.grad[: len(own)], weight)
        # The special ones were chosen where the surrogate is least known: they are not
        # a fair sample of it.
        fair = log_weights[len(special) :][answered[len(special) :]]
        self.trainer.adapt_ridge(fair)
        log_weights = log_weights[answered]
        return not bool(np.any(~(log_weights > np.median(log_weights) - HOLE_DEPTH)))

    def restart(self, check: Check) -> None:
        """Move the chains to checked draws, resampled by importance."""
        self._restart(check.theta, check.energy, check.grad, check.probability)

    def recent(self) -> tuple[np.ndarray, np.ndarray]:
        """States and gradients of the last third of the rounds, in the mass by then."""
        rows = self._visited[-max(4, len(self._visited) // 3) :]
        return (
            np.concatenate([row.theta for row in rows]),
            np.concatenate([row.grad for row in rows]),
        )

    def rhat(self) -> float:
        """Worst split R-hat of the chains over the last two thirds of the rounds."""
        rows = self._visited[len(self._visited) // 3 :]
        return worst_rhat(np.stack([row.theta for row in rows], axis=1))

    def tempered_draws(self, number: int) -> np.ndarray:
        """Unconstrained draws of the tempered surrogate, at most `number`."""
        surrogate = self.trainer.surrogate
        x = surrogate.transport.inverse(self.states.theta)
        temperature = np.full(len(x), tempering(surrogate.dim))
        pace = self._pace(TRAJECTORY, 20)
        pool = []
        for _ in range(2 + 2 * number // len(x)):
            x = np.asarray(walk(self._rng, surrogate.latent, x, pace, temperature).x)
            pool.append(x)
        draws = self._rng.permutation(np.concatenate(pool[1:]))
        draws = draws[np.isfinite(draws).all(axis=1)]
        return surrogate.transport.forward(draws[:number])

    def dispersed_starts(self, number: int) -> np.ndarray:
        """Latent starts for chains on the surrogate: typical points of the training."""
        training = self.trainer.training_set(self._evaluator.log)
        pool = training.x[training.is_typical]
        if not len(pool):
            pool = self.trainer.surrogate.transport.inverse(self.states.theta)
        return pool[self._rng.choice(len(pool), number, replace=len(pool) < number)]

    def _first_states(self, num_chains: int) -> States:
        """Start at points already evaluated, the likelier under the posterior."""
        log = self._evaluator.log
        usable = log.is_finite & ~np.isin(log.phase, AWAY)
        usable = usable if usable.any() else log.is_finite
        theta, energy, grad = (rows[usable] for rows in log[:3])
        transport = self.trainer.surrogate.transport
        x, log_det = transport.inverse_and_log_det(theta)
        log_weight = 0.5 * np.sum(x**2, axis=1) + log_det - energy
        # Where the energy falls without bound the numbers may overflow.
        log_weight = np.nan_to_num(log_weight, nan=-HUGE, posinf=HUGE, neginf=-HUGE)
        log_weight -= log_weight.max()
        # Flattened: they are to choose reasonable starts, not to make a sample.
        weight = np.exp(np.maximum(log_weight, -50.0) / (1 + log_weight.std()))
        # Warm-up goes far out on purpose. A chain that starts where the map is far too
        # high has a weight that it never gives up, though there is no mass. Down a neck
        # that the map has missed the energy is low: there a chain is where it should.
        latent = np.nan_to_num(energy - log_det, nan=np.inf)
        limit = np.median(latent) + TYPICAL * np.sqrt(transport.dim / 2)
        weight = np.where(latent <= limit, weight, 0.0)
        chosen = self._rng.choice(len(weight), num_chains, p=weight / weight.sum())
        return States(theta[chosen], energy[chosen], grad[chosen])

    def _restart(
        self,
        thetas: np.ndarray,
        energies: np.ndarray,
        grads: np.ndarray,
        weight: np.ndarray,
    ) -> None:
        """Move the chains to evaluated draws of the surrogate, resampled by importance.

        Its own chains go farther in a second than these in all rounds.

        weight: by which each draw represents the surrogate.
        """
        surrogate = self.trainer.surrogate
        log_weights = surrogate.energies(thetas) - energies + np.log(weight)
        known = np.isfinite(log_weights)
        if not known.any():
            return
        thetas, energies, grads = thetas[known], energies[known], grads[known]
        weights = softmax(log_weights[known])
        chosen = self._rng.choice(len(weights), len(self.states.energy), p=weights)
        self.states = States(thetas[chosen], energies[chosen], grads[chosen])
        self._visited.append(self.states)

    def _pace(self, length: float, num_transitions: int = 1) -> Pace:
        num_steps = int(np.clip(np.ceil(length / self.step_size), 1, MAX_STEPS))
        return Pace(self.step_size, num_steps, num_transitions)

    def _adapt(self, report: RoundReport) -> None:
        """The step size follows the acceptance on the surrogate, which depends on it.

        A low true acceptance shows errors of the surrogate: trajectories get shorter.
        """
        gain = (1 + len(self.reports) / 10) ** -0.6
        if not self.trainer.surrogate.residual.is_zero:  # else there are no steps
            self.step_size *= np.exp(gain * (report.surrogate - TARGET_ACCEPTANCE))
            self.step_size = float(np.clip(self.step_size, 1e-3, 2.0))
        excess = report.single_trajectory - TARGET_TRUE_ACCEPTANCE
        self._stretch *= np.exp(gain * excess)
        self._stretch = float(np.clip(self._stretch, 0.05, 1.0))

    def _outlyingness(self, thetas: np.ndarray) -> np.ndarray:
        """Largest standardised distance from the median in the user's space."""
        values = self._values(thetas)
        with np.errstate(invalid="ignore", divide="ignore"):
            distance = np.abs(values - np.median(values, axis=0)) / values.std(axis=0)
        return np.nan_to_num(distance).max(axis=1)

    def _isolation(self, x: np.ndarray) -> np.ndarray:
        """Distance of latent points from the nearest point of the training set."""
        training = self.trainer.training_set(self._evaluator.log)
        seen = training.x[training.weight > 0.01]
        return scipy.spatial.KDTree(seen).query(x)[0]


def _mean(rates: np.ndarray) -> float:
    return float(rates.mean()) if len(rates) else 0.0

"""Training in rounds: moves on the surrogate, judged by the true energy."""

from typing import NamedTuple

import numpy as np
import scipy.spatial

from vhmc.evaluation.guard import HUGE
from vhmc.evaluation.space import Space
from vhmc.numerics.effective_size import split_rhat
from vhmc.numerics.importance import normalised
from vhmc.surrogate.moves import launch, walk
from vhmc.surrogate.proposals import Wander
from vhmc.surrogate.trainer import AWAY, HOLE, Learner

WANTED = 0.85
"""Acceptance on the surrogate that the step size aims at."""
WANTED_TRUE = 0.65
"""True acceptance of single trajectories below which they are shortened."""
TRAJECTORY = 2.0
"""Length of a trajectory in whitened time."""
MOST_STEPS = 64
SHOOTER, EXPLORER, AUDITOR = range(3)


class Report(NamedTuple):
    """What one round saw; predictions are made before the truth is learnt.

    explorers, shooters: mean true acceptance of the two kinds of chains.
    excess: nats by which the surrogate is too high where the audits looked, at most.
    surrogate: mean acceptance on the surrogate.
    score_error: median over points of the squared score error by dimension.
    """

    explorers: float
    shooters: float
    excess: float
    surrogate: float
    score_error: float


def _mean(shares: np.ndarray) -> float:
    return float(shares.mean()) if len(shares) else 0.0


class States(NamedTuple):
    """Where the chains are, and what the model said there."""

    theta: np.ndarray
    energy: np.ndarray
    grad: np.ndarray


def audit_temperature(dim: int) -> float:
    """Temperature whose draws are wider than the surrogate's, and still overlap."""
    return 1 + 2 / np.sqrt(dim)


class Rounds:
    """Chains that target the true posterior and teach the surrogate on the way.

    Shooters make one trajectory on the surrogate and are accepted with the true
    energy. Explorers make many transitions on it and are accepted by delayed
    acceptance: they fall into its holes, and their evaluations fill them. Auditors
    wander on the surrogate made hot, and go back: they look where it is too high for
    anyone else to go.

    learner: the surrogate.
    num_chains: chains, and evaluations of a round.
    rng: of all moves.
    parameters: the user's space, in which some draws matter more than others.
    """

    def __init__(
        self,
        learner: Learner,
        num_chains: int,
        rng: np.random.Generator,
        parameters: Space,
    ):
        self.learner, self._rng, self._parameters = learner, rng, parameters
        self.step_size = learner.dim**-0.25
        self.reports: list[Report] = []
        self._stretch = 1.0
        self.states = self._first_states(num_chains)
        self._visited = [self.states]

    def _first_states(self, num_chains: int) -> States:
        """Start at points already paid for, the likelier under the posterior."""
        learner = self.learner
        paid = learner.account.paid
        usable = paid.is_finite & ~np.isin(paid.phase, AWAY)
        usable = usable if usable.any() else paid.is_finite
        theta, energy, grad = (rows[usable] for rows in paid[:3])
        x, log_volumes = learner.chart.locate(theta)
        log_weight = 0.5 * np.sum(x**2, axis=1) + log_volumes - energy
        # Where the energy falls without end the numbers may be beyond all measure.
        log_weight = np.nan_to_num(log_weight, nan=-HUGE, posinf=HUGE, neginf=-HUGE)
        log_weight -= log_weight.max()
        # Flattened: they are to choose sane starts, not to make a sample.
        weight = np.exp(np.maximum(log_weight, -50.0) / (1 + log_weight.std()))
        share = weight / weight.sum()
        chosen = self._rng.choice(len(share), num_chains, p=share)
        return States(theta[chosen], energy[chosen], grad[chosen])

    def recent(self) -> tuple[np.ndarray, np.ndarray]:
        """States of the last third of the rounds, which know where the mass is."""
        rows = self._visited[-max(4, len(self._visited) // 3) :]
        return (
            np.concatenate([row.theta for row in rows]),
            np.concatenate([row.grad for row in rows]),
        )

    def rhat(self) -> float:
        """Worst split R-hat of the chains over the last two thirds of the rounds."""
        rows = self._visited[len(self._visited) // 3 :]
        if len(rows) < 4:
            return np.inf
        return float(np.max(split_rhat(np.stack([row.theta for row in rows], axis=1))))

    def num_steps(self, length: float) -> int:
        """Leapfrog steps of a trajectory of this length."""
        return int(np.clip(np.ceil(length / self.step_size), 1, MOST_STEPS))

    def _wander(
        self, x: np.ndarray, is_hot: np.ndarray, num_transitions: int
    ) -> Wander:
        hot = audit_temperature(self.learner.dim)
        return walk(
            self._rng,
            x,
            self.learner.residual(),
            self.step_size,
            self.num_steps(TRAJECTORY),
            num_transitions,
            np.where(is_hot, hot, 1.0),
        )

    def advance(self, num_explorers: int, num_transitions: int) -> Report:
        """Move every chain once and learn the truth at the end of each move."""
        learner, states = self.learner, self.states
        num_chains = len(states.energy)
        order = self._rng.permutation(num_chains)
        num_auditors = max(1, num_chains // 8)
        num_explorers = min(num_explorers, num_chains - num_auditors - 1)
        role = np.full(num_chains, SHOOTER)
        role[order[:num_explorers]] = EXPLORER
        role[order[num_explorers : num_explorers + num_auditors]] = AUDITOR
        x, log_volumes = learner.chart.locate(states.theta)
        # Every move for all chains: shapes stay the same, and moves are nearly free.
        walked = self._wander(x, role == AUDITOR, num_transitions)
        shot = launch(
            self._rng,
            x,
            learner.residual(),
            self.step_size,
            self.num_steps(TRAJECTORY * self._stretch),
        )
        explores, shoots, audits = (role == r for r in (EXPLORER, SHOOTER, AUDITOR))
        ends = np.where(shoots[:, None], shot.x, walked.x)
        is_lost = np.asarray(~np.isfinite(ends).all(axis=1))
        proposed = learner.chart.to_theta(np.where(is_lost[:, None], x, ends))
        answer = learner.account.evaluate(proposed, "training")

        guessed = learner.energies(proposed)
        log_ratio = states.energy - answer.energy
        # Shots are made in the chart's coordinates, whose volume is not the same
        # everywhere; the surrogate's energies know it.
        expansion = learner.chart.locate(proposed)[1] - log_volumes
        log_ratio += np.where(
            explores,
            guessed - learner.energies(states.theta),
            shot.kinetic_drop + expansion,
        )
        log_ratio[audits | is_lost | ~np.isfinite(log_ratio)] = -np.inf
        accept_prob = np.exp(np.minimum(log_ratio, 0.0))
        is_moved = self._rng.uniform(size=num_chains) < accept_prob
        self.states = States(
            np.where(is_moved[:, None], proposed, states.theta),
            np.where(is_moved, answer.energy, states.energy),
            np.where(is_moved[:, None], answer.grad, states.grad),
        )
        self._visited.append(self.states)

        log_weights = guessed - answer.energy
        # A model that fails here and there says nothing of the surrogate.
        explores, shoots, audits = (
            kind & answer.is_answered for kind in (explores, shoots, audits)
        )
        learner.mind_holes(log_weights[explores])
        known = np.isfinite(answer.energy)
        errors = learner.score_errors(proposed[known], answer.grad[known])
        report = Report(
            explorers=_mean(accept_prob[explores]),
            shooters=_mean(accept_prob[shoots]),
            excess=float(np.max(log_weights[audits]) - np.median(log_weights[explores]))
            if audits.any() and explores.any()
            else -np.inf,
            surrogate=float(np.asarray(walked.acceptance)[~audits].mean()),
            score_error=float(np.median(np.mean(errors**2, axis=1)))
            if known.any()
            else np.inf,
        )
        self.reports.append(report)
        learner.account.watch.round(report.score_error, report.explorers)
        self._adapt(report)
        return report

    def _adapt(self, report: Report) -> None:
        """The step follows the surrogate's acceptance, which alone depends on it.

        A low true acceptance says that the surrogate is wrong: then go less far.
        """
        gain = (1 + len(self.reports) / 10) ** -0.6
        if self.learner.choice.num_features:  # without a network no step is made
            self.step_size *= np.exp(gain * (report.surrogate - WANTED))
            self.step_size = float(np.clip(self.step_size, 1e-3, 2.0))
        self._stretch *= np.exp(gain * (report.shooters - WANTED_TRUE))
        self._stretch = float(np.clip(self._stretch, 0.05, 1.0))

    def repair(self, number: int, draws: np.ndarray) -> bool:
        """Learn the truth at draws of the surrogate itself, and around them.

        Explorers start each round from where the truth holds them. These draws go
        wherever the surrogate would send its users: a quarter at random; a quarter the
        loneliest, where holes are; a quarter those farthest out in the user's space, on
        which standard deviations hang. The last quarter audits: drawn hot, they look
        where the surrogate is too high for its own draws to go. Returns whether no draw
        was in a hole.

        draws: many of the surrogate, in the frame's coordinates, one a row.
        """
        learner, quarter = self.learner, number // 4
        draws = draws[np.isfinite(draws).all(axis=1)]
        thetas = learner.chart.to_theta(draws)
        lonely = np.argsort(-self._loneliness(draws))[:quarter]
        outer = np.argsort(-self._outlyingness(thetas))[:quarter]
        special = np.union1d(lonely, outer)
        others = np.setdiff1d(np.arange(len(draws)), special)
        num_others = number - quarter - len(special)
        own = thetas[np.append(special, self._rng.permutation(others)[:num_others])]
        num_hot = number - len(own)
        thetas = np.concatenate([own, self.hot_draws(num_hot)])
        answer = learner.account.evaluate(thetas, "repair")
        log_weights = (learner.energies(thetas) - answer.energy)[: len(own)]
        answered = answer.is_answered[: len(own)]
        # The special ones stand for themselves alone, the others for all the rest.
        share = np.ones(len(own))
        share[len(special) :] = len(others) / max(1, len(own) - len(special))
        own_answer = answer.energy[: len(own)], answer.grad[: len(own)]
        self.restart(own, *own_answer, share)
        # The special ones were looked for where holes are: they are no fair sample.
        learner.mind_holes(log_weights[len(special) :][answered[len(special) :]])
        log_weights = log_weights[answered]
        return not bool(np.any(~(log_weights > np.median(log_weights) - HOLE)))

    def restart(
        self,
        thetas: np.ndarray,
        energies: np.ndarray,
        grads: np.ndarray,
        share: np.ndarray,
    ) -> None:
        """Move the chains to draws of the surrogate, resampled by importance.

        share: how much of the surrogate each draw stands for.

        The surrogate's own chains go farther in a second than these in all rounds.
        """
        log_weights = self.learner.energies(thetas) - energies + np.log(share)
        known = np.isfinite(log_weights)
        if not known.any():
            return
        thetas, energies, grads = thetas[known], energies[known], grads[known]
        weights = normalised(log_weights[known])
        chosen = self._rng.choice(len(weights), len(self.states.energy), p=weights)
        self.states = States(thetas[chosen], energies[chosen], grads[chosen])
        self._visited.append(self.states)

    def _outlyingness(self, thetas: np.ndarray) -> np.ndarray:
        """Largest standardised distance from the median in the user's space."""
        values = self._parameters.values(thetas)
        with np.errstate(invalid="ignore", divide="ignore"):
            distance = np.abs(values - np.median(values, axis=0)) / values.std(axis=0)
        return np.nan_to_num(distance).max(axis=1)

    def hot_draws(self, number: int) -> np.ndarray:
        """Unconstrained draws of the heated surrogate, at most `number`."""
        x = self.learner.chart.to_x(self.states.theta)
        is_hot = np.ones(len(x), dtype=bool)
        pool = []
        for _ in range(2 + 2 * number // len(x)):
            x = np.asarray(self._wander(x, is_hot, 20).x)
            pool.append(x)
        draws = self._rng.permutation(np.concatenate(pool[1:]))
        draws = draws[np.isfinite(draws).all(axis=1)]
        return self.learner.chart.to_theta(draws[:number])

    def _loneliness(self, x: np.ndarray) -> np.ndarray:
        """Distance of points from the nearest point that was learnt."""
        lessons = self.learner.lessons()
        seen = lessons.x[lessons.weight > 0.01]
        return scipy.spatial.KDTree(seen).query(x)[0]

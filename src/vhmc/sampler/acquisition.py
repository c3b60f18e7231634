"""Acquisitions: proposals of the training chains, which choose where to evaluate.

Every chain of a round is moved by one acquisition. All of them propose from the same
moves on the surrogate, made for all chains at once, so that shapes never change.
"""

import abc
import functools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from vhmc.sampler.accept_step import Proposal, States
from vhmc.surrogate.moves import Pace, Trajectory, Walk, single_trajectory, walk
from vhmc.surrogate.surrogate import Surrogate


class Moves:
    """Moves of all chains on the surrogate, made when they are first asked for.

    thetas: unconstrained points of the chains.
    temperature: of every chain's walk.
    walk_pace, trajectory_pace: of the two kinds of moves.
    """

    def __init__(
        self,
        rng: np.random.Generator,
        surrogate: Surrogate,
        thetas: np.ndarray,
        temperature: np.ndarray,
        walk_pace: Pace,
        trajectory_pace: Pace,
    ):
        self._rng, self._latent, self._temperature = rng, surrogate.latent, temperature
        self._walk_pace, self._trajectory_pace = walk_pace, trajectory_pace
        self.x, self.log_det = surrogate.transport.inverse_and_log_det(thetas)

    @functools.cached_property
    def walk(self) -> Walk:
        """Reversible transitions that keep the (tempered) surrogate's law."""
        pace, temperature = self._walk_pace, self._temperature
        return walk(self._rng, self._latent, self.x, pace, temperature)

    @functools.cached_property
    def trajectory(self) -> Trajectory:
        """One trajectory without an accept step."""
        return single_trajectory(self._rng, self._latent, self.x, self._trajectory_pace)


class AbstractAcquisition(abc.ABC):
    r"""One way to choose the next point of a chain.

    The chain moves there with probability
    $\min(1, \exp(U(\theta) - U(\theta') + c))$, $c$ the log correction.

    temperature: of the walk on the surrogate.
    """

    temperature: float = 1.0

    @abc.abstractmethod
    def ends(self, moves: Moves) -> np.ndarray:
        """Latent end points of all chains."""

    @abc.abstractmethod
    def log_correction(
        self, surrogate: Surrogate, states: States, theta: np.ndarray, moves: Moves
    ) -> np.ndarray:
        """Of all chains, from `states` to the proposed points `theta`."""


class SingleTrajectory(AbstractAcquisition):
    """The end of one trajectory: HMC with the true energy in its accept step."""

    def ends(self, moves: Moves) -> np.ndarray:
        return np.asarray(moves.trajectory.x)

    def log_correction(
        self, surrogate: Surrogate, states: States, theta: np.ndarray, moves: Moves
    ) -> np.ndarray:
        """Kinetic energy lost, and the change of the map's determinant.

        Trajectories are made in latent coordinates, whose volume varies.
        """
        log_det = surrogate.transport.inverse_and_log_det(theta)[1]
        return np.asarray(moves.trajectory.kinetic_drop) + (log_det - moves.log_det)


class DelayedAcceptance(AbstractAcquisition):
    r"""The end of many transitions on the surrogate.

    They are a reversible proposal for $e^{-V}$, so with $w = e^{V - U}$ the end is
    accepted with probability $\min(1, w(\theta') / w(\theta))$. Such proposals enter
    regions where the surrogate is too low, and their evaluations correct it there.
    """

    def ends(self, moves: Moves) -> np.ndarray:
        return np.asarray(moves.walk.x)

    def log_correction(
        self, surrogate: Surrogate, states: States, theta: np.ndarray, moves: Moves
    ) -> np.ndarray:
        """Change of the surrogate's energy."""
        return surrogate.energies(theta) - surrogate.energies(states.theta)


class Tempered(AbstractAcquisition):
    """The end of a walk on the tempered surrogate; the chain stays where it is.

    It evaluates where the surrogate is too high for any other proposal to go.
    """

    def __init__(self, temperature: float):
        self.temperature = temperature

    def ends(self, moves: Moves) -> np.ndarray:
        return np.asarray(moves.walk.x)

    def log_correction(
        self, surrogate: Surrogate, states: States, theta: np.ndarray, moves: Moves
    ) -> np.ndarray:
        """Never accepted."""
        return np.full(len(theta), -np.inf)


class Assigned(NamedTuple):
    """An acquisition, and which chains it moves."""

    acquisition: AbstractAcquisition
    is_mine: np.ndarray


def assign(
    rng: np.random.Generator,
    num_chains: int,
    counts: Sequence[tuple[AbstractAcquisition, int]],
) -> list[Assigned]:
    """Assign chains to acquisitions at random.

    counts: acquisitions with the numbers of their chains.
    """
    order = rng.permutation(num_chains)
    assigned, begin = [], 0
    for acquisition, number in counts:
        is_mine = np.zeros(num_chains, dtype=bool)
        is_mine[order[begin : begin + number]] = True
        assigned.append(Assigned(acquisition, is_mine))
        begin += number
    return assigned


def propose(
    rng: np.random.Generator,
    surrogate: Surrogate,
    states: States,
    assigned: list[Assigned],
    walk_pace: Pace,
    trajectory_pace: Pace,
) -> tuple[Proposal, Moves]:
    """The points that the acquisitions choose for their chains, and the moves made.

    A trajectory that diverged proposes the chain's own point and is not accepted.
    """
    temperature = np.ones(len(states.energy))
    for acquisition, is_mine in assigned:
        temperature[is_mine] = acquisition.temperature
    moves = Moves(rng, surrogate, states.theta, temperature, walk_pace, trajectory_pace)
    ends = np.array(moves.x)
    for acquisition, is_mine in assigned:
        ends[is_mine] = acquisition.ends(moves)[is_mine]
    is_lost = ~np.isfinite(ends).all(axis=1)
    theta = surrogate.transport.forward(np.where(is_lost[:, None], moves.x, ends))
    log_correction = np.full(len(theta), -np.inf)
    for acquisition, is_mine in assigned:
        correction = acquisition.log_correction(surrogate, states, theta, moves)
        log_correction[is_mine] = correction[is_mine]
    log_correction[is_lost] = -np.inf
    return Proposal(theta, log_correction), moves


def tempering(dim: int) -> float:
    """Temperature whose draws are wider than the surrogate's and still overlap."""
    return 1 + 2 / np.sqrt(dim)

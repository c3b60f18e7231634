"""Draw from the surrogate until its chains mix; the model is not evaluated."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from vhmc.numerics.effective_size import worst_ess, worst_rhat
from vhmc.surrogate.mixture import Mixture
from vhmc.surrogate.moves import SEGMENT, Pace, Segment
from vhmc.surrogate.surrogate import Surrogate

TARGET_ACCEPTANCE = 0.87
MIXED = 1.01
"""R-hat at which chains count as mixed."""
WANTED_ESS = 0.2
"""Wanted effective sample size by draw."""
LENGTHS = 2.0, 5.0, 12.0
"""Trajectory lengths in latent time: each is tried if the one before did not mix."""
MAX_STEPS = 100
MAX_GRADIENTS = 20_000
"""Leapfrog steps of a chain that one trial of a length may take."""

OnDraws = Callable[[int, int, float], None]
"""Is told the number of draws, that wanted, and the effective size if known."""


class Drawn(NamedTuple):
    """Latent draws, and how they were made.

    x: shape (chain, draw, dim).
    energy: of the surrogate, shape (chain, draw).
    acceptance: on the surrogate.
    rhat, ess: of the worst coordinate.
    pace: of the chains.
    """

    x: np.ndarray
    energy: np.ndarray
    acceptance: float
    rhat: float
    ess: float
    pace: Pace

    @property
    def ess_per_draw(self) -> float:
        """Effective sample size over the number of draws."""
        return self.ess / self.energy.size

    def theta(self, surrogate: Surrogate | Mixture) -> np.ndarray:
        """The same draws, unconstrained."""
        transport = surrogate.heaviest.transport
        flat = transport.forward(self.x.reshape(-1, self.x.shape[-1]))
        return flat.reshape(self.x.shape)


class Mixed(NamedTuple):
    """Draws of a mixture.

    draws: unconstrained, shape (chain, draw, dim).
    energy: of the mixture, shape (chain, draw).
    acceptance, rhat, ess: of the worst part, and of the draws as they are mixed.
    pace: of the chains of the heaviest part.
    """

    draws: np.ndarray
    energy: np.ndarray
    acceptance: float
    rhat: float
    ess: float
    pace: Pace

    @property
    def ess_per_draw(self) -> float:
        """Effective sample size over the number of draws."""
        return self.ess / self.energy.size

    def theta(self, surrogate: Surrogate | Mixture) -> np.ndarray:
        """The draws."""
        return self.draws


def draw(
    rng: np.random.Generator,
    surrogate: Surrogate,
    starts: np.ndarray,
    step_size: float,
    num_draws: int,
    on_draws: OnDraws = lambda number, wanted, ess: None,
) -> Drawn:
    """Draw until the chains have mixed, with longer trajectories where they do not.

    starts: dispersed latent points, one a chain.
    step_size: to begin with.
    num_draws: of every chain.
    """
    x, wanted = starts, len(starts) * num_draws
    on_draws(0, wanted, np.nan)
    if surrogate.residual.is_zero:
        pace = Pace(step_size, 1)
        made = surrogate.draw(rng, starts, pace, num_draws=num_draws)
        on_draws(wanted, wanted, wanted)
        # Independent by construction: to measure it took longer than all the rest.
        return Drawn(*made[:2], 1.0, 1.0, float(wanted), pace)
    # Warm-up on the same program, which also tunes the step size.
    for gain in (1.0, 1.0, 0.5):
        pace = Pace(step_size, _num_steps(LENGTHS[0], step_size))
        made = surrogate.draw(rng, x, pace)
        excess = float(np.mean(made.acceptance)) - TARGET_ACCEPTANCE
        step_size = float(np.clip(step_size * np.exp(gain * excess), 1e-4, 2.0))
        x = made.x[:, -1]
    trials: list[Drawn] = []
    thin = 1
    for length in LENGTHS:
        num_steps = _num_steps(length, step_size)
        thin = min(thin, max(1, MAX_GRADIENTS // (num_steps * num_draws)))
        pace = Pace(step_size, num_steps, thin)
        made = _segments(rng, surrogate, x, pace, num_draws, on_draws)
        x = made.x[:, -1]
        drawn = _measured(made, pace)
        on_draws(wanted, wanted, drawn.ess)
        if drawn.rhat <= MIXED and drawn.ess_per_draw >= WANTED_ESS:
            return drawn
        trials.append(drawn)
        slowness = WANTED_ESS / max(drawn.ess_per_draw, 0.05)
        thin = int(np.clip(np.ceil(thin * slowness), 1, 6))
    return max(trials, key=lambda drawn: drawn.ess)


def some_draws(
    rng: np.random.Generator,
    surrogate: Surrogate,
    starts: np.ndarray,
    step_size: float,
) -> np.ndarray:
    """Latent draws of every chain, mixed or not, one a row."""
    pace = Pace(step_size, _num_steps(LENGTHS[0], step_size), 2)
    x = surrogate.draw(rng, starts, pace).x
    if not surrogate.residual.is_zero:
        x = x[:, SEGMENT // 10 :]
    return x.reshape(-1, starts.shape[1])


def _segments(
    rng: np.random.Generator,
    surrogate: Surrogate,
    x: np.ndarray,
    pace: Pace,
    num_draws: int,
    on_draws: OnDraws,
) -> Segment:
    """Segments in a row, until there are enough draws."""
    parts: list[Segment] = []
    wanted = len(x) * num_draws
    while len(parts) * SEGMENT < num_draws:
        parts.append(surrogate.draw(rng, x, pace))
        x = parts[-1].x[:, -1]
        drawn = np.concatenate([part.x for part in parts], axis=1)[:, :num_draws]
        number = len(x) * drawn.shape[1]
        if number < wanted:  # the last ones are measured by the caller
            on_draws(number, wanted, worst_ess(drawn))
    energy = np.concatenate([part.energy for part in parts], axis=1)[:, :num_draws]
    acceptance = np.mean([part.acceptance for part in parts], axis=0)
    return Segment(drawn, energy, acceptance)


def _num_steps(length: float, step_size: float) -> int:
    return int(np.clip(np.ceil(length / step_size), 1, MAX_STEPS))


def _measured(made: Segment, pace: Pace) -> Drawn:
    return Drawn(
        x=made.x,
        energy=made.energy,
        acceptance=float(np.mean(made.acceptance)),
        rhat=worst_rhat(made.x),
        ess=worst_ess(made.x),
        pace=pace,
    )

"""Watch the evaluations of a run for walls, and change coordinates when one is met."""

from collections.abc import Container, Sequence

import numpy as np

from vhmc.evaluation.centred_evaluator import CentredEvaluator
from vhmc.evaluation.evaluator import EvaluationLog
from vhmc.evaluation.target import Evaluations
from vhmc.evaluation.user_code import NO_DENSITY
from vhmc.report.watch import LOG
from vhmc.sampler.locate import Modes
from vhmc.sampler.model_graph import links_of
from vhmc.sampler.walls.find import find_walls, unexplained
from vhmc.sampler.walls.probe import Probe
from vhmc.sampler.walls.recast import recast
from vhmc.sampler.walls.rounding import is_rounded
from vhmc.sampler.walls.sentences import sentences
from vhmc.sampler.walls.wall import Wall, beyond, layer_of, scaled
from vhmc.surrogate.training_set import AWAY
from vhmc.transport.affine import Affine
from vhmc.transport.walls import Walls

PHASE = "walls"
HEEDED = "search", "screening", "warm-up", "training", "repair", "check"
"""Phases in which a wall that is met is looked for."""
SHARE = 0.3
"""Of the budget, that all looks for walls may take."""
NEAR = 0.01
"""Fraction of the points without a density, beyond which a wall is near the mass."""
LEAST = 3
"""The same in points."""
OVERFLOW = 1e30
"""Energy beyond which numbers run out, and there is no wall."""
LARGE = 5.0
"""Size of a number beyond which functions of it may overflow: a path whose log scale it
is has values beyond a thousand, and their exponentials are too large."""
SHRUNK = 0.01
"""By which the way to a point without a density is cut, until there is one."""
UNDERFLOW = 745.0
"""Energy above the lowest at which a density is rounded to zero."""
HALVINGS, ENOUGH = 24, 5
"""Of the way to a point without a density, and how many with one show that the energy
does not rise so much."""
FEW = 3
"""The same where no number is large."""
MAX_RISEN = 2
"""Times that it has, after which the search's points no longer show walls."""
WIDTH = 1.5
"""Scale of a wall, in standard deviations of the distance to it."""
NUM_DRAWS = 1000
"""From which these are estimated."""


class MetWall(Exception):
    """There are points without a density that no known wall explains."""


class WallWatch:
    """The walls of a run.

    An answer that shows a new wall raises `MetWall`; `learn` then finds the wall and
    gives the evaluator coordinates without it. Models in a form of their own, and those
    whose outputs are emulated, keep their coordinates.

    evaluator: of the run.
    reserve: evaluations below which no wall is looked for.
    """

    def __init__(self, evaluator: CentredEvaluator, reserve: int):
        self._evaluator, self._reserve = evaluator, reserve
        self._links = links_of(evaluator.target.parameters)
        self.walls: list[Wall] = []
        self._num_risen = 0
        is_free = evaluator.layer is None and evaluator.target.observable is None
        self._left = int(SHARE * evaluator.left) if is_free else 0
        if is_free:
            evaluator.on_answer = self._heed

    @property
    def layer(self) -> Walls | None:
        """To the unconstrained space, if there are walls."""
        layer = self._evaluator.layer
        return layer if isinstance(layer, Walls) else None

    def learn(self, rng: np.random.Generator) -> None:
        """Find the walls that were met, and work behind them from now on."""
        evaluator = self._evaluator
        before, log = evaluator.spent, self._log
        # Next to a wall that is curved any pair of points shows a plane.
        log = log.where(log.phase != PHASE)
        price = evaluator.target.price
        allowance = min(self._left // price, evaluator.left - self._reserve)

        def evaluate(thetas: np.ndarray) -> Evaluations:
            return evaluator.evaluate_outside(thetas, PHASE)

        number = len(self.walls)
        probe = Probe(evaluate, max(allowance, 0))
        self.walls, is_complete = find_walls(rng, probe, log, self.walls)
        self._left -= evaluator.spent - before
        if not is_complete:
            LOG.info("the density is zero beyond something that is no plane")
            self._left = 0
        if len(self.walls) > number:
            LOG.info("%d walls, beyond which the density is zero", len(self.walls))
            self._use()

    def adapt(
        self, rng: np.random.Generator, gaussian: Affine, modes: Modes
    ) -> tuple[Affine, Modes]:
        """Adapt the coordinates to how wide the posterior is next to the walls.

        gaussian, modes: what is known of it; they are returned in the new ones.
        """
        if (old := self.layer) is None:
            return gaussian, modes
        white = rng.standard_normal((NUM_DRAWS, len(gaussian.mean)))
        draws = self._evaluator.outward(gaussian.forward(white))
        low, high = np.quantile(draws @ old.matrix.T, (0.16, 0.84), axis=0)
        width = WIDTH * (high - low) / 2
        new = scaled(old, np.where(width > 0, width, old.scale))
        x = new.inverse(draws)
        x = x[np.isfinite(x).all(axis=1)]
        covariance = np.atleast_2d(np.cov(x.T))
        self._evaluator.use(new)
        adapted = Affine(np.mean(x, axis=0), np.linalg.cholesky(covariance))
        return adapted, recast(modes, old, new)

    def notes(
        self, labels: Sequence[str], constrained: Container[int]
    ) -> tuple[str, ...]:
        """What a user should know of the walls."""
        found = sentences(self.walls, labels, constrained)
        log = self._log
        is_aimed = ~np.isin(log.phase, (*AWAY, "warm-up"))
        rest = np.mean(unexplained(log, self.walls)[is_aimed]) if is_aimed.any() else 0
        if rest > NEAR:
            found.append(
                f"the density is zero at {rest:.1%} of the points, beyond what is no "
                "plane, or one of too many: they were rejected"
            )
        return tuple(found)

    @property
    def _log(self) -> EvaluationLog:
        """Points at which no density means a wall, unconstrained."""
        log = self._evaluator.evaluation_log
        return log.where(~is_rounded(log.theta, self._links))

    def _use(self) -> None:
        evaluator = self._evaluator
        log = evaluator.evaluation_log
        inside = log.theta[log.is_finite]
        scales = np.ptp(inside, axis=0)
        scales = np.where(scales > 0, scales, 1.0)
        start = evaluator.target.start
        is_inside = np.all(inside == start, axis=1)
        point = start if is_inside.any() else inside[0]
        evaluator.use(layer_of(self.walls, scales, point))

    def _heed(self, thetas: np.ndarray, answer: Evaluations, phase: str) -> None:
        """Raise `MetWall` where the answer shows a wall that matters.

        thetas: in the coordinates of the user.
        """
        is_zero = answer.reason == NO_DENSITY
        is_zero &= ~is_rounded(thetas, self._links)
        if phase not in HEEDED or self._left <= 0:
            return
        if self._evaluator.left <= self._reserve or not is_zero.any():
            return
        if beyond(self.walls, thetas[is_zero]).all():
            return
        log = self._log
        if not log.is_finite.any():
            return
        if phase not in AWAY:
            is_aimed = ~np.isin(log.phase, AWAY)
            number = int(unexplained(log, self.walls)[is_aimed].sum())
            if number < max(LEAST, NEAR * is_aimed.sum()):
                return
        elif self._num_risen >= MAX_RISEN:
            return
        if self._overflows(log, thetas[is_zero]):
            self._num_risen += 1
            return
        raise MetWall

    def _overflows(self, log: EvaluationLog, points: np.ndarray) -> bool:
        """Whether there is no mass next to the nearest of some points.

        There the energy is too large for a number, as that of data far from what a
        model predicts, or there is a wall that does not matter.

        points: without a density, in the coordinates of the user.
        """
        inside = log.theta[log.energy < OVERFLOW]
        if not len(inside):
            return False
        scales = np.ptp(inside, axis=0)
        scales = np.where(scales > 0, scales, 1.0)
        away = np.linalg.norm((points[:, None] - inside[None]) / scales, axis=2)
        row, nearest = np.unravel_index(np.argmin(away), away.shape)
        near, far = inside[nearest], points[row]
        highest = log.energy[log.is_finite].min() + UNDERFLOW
        is_large = np.abs(far).max() > LARGE
        enough = ENOUGH if is_large else FEW
        share, num_inside = 0.5, 0
        for _ in range(HALVINGS if is_large else 2 * FEW):
            if self._evaluator.left <= self._reserve or num_inside >= enough:
                break
            if num_inside == 0 and is_large:
                # A map may have gone astray by any number of orders of magnitude.
                length = float(np.linalg.norm((far - near) / scales))
                share = min(SHRUNK, max(length, 1.0) ** -0.5)
            middle = near + share * (far - near)
            answer = self._evaluator.evaluate_outside(middle[None], PHASE)
            if answer.reason[0] == NO_DENSITY:
                far = middle
            elif not answer.energy[0] < highest:
                return True
            else:
                near, num_inside, share = middle, num_inside + 1, 0.5
        return False

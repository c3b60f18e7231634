"""Inspect the model during a run, and say what is wrong with it."""

from collections.abc import Sequence

import numpy as np

from vhmc.evaluation.evaluator import Evaluator, RunFailure
from vhmc.report.watch import LOG
from vhmc.sampler.descents import Evaluated
from vhmc.sampler.locate import Modes
from vhmc.sampler.reasons import MODEL, Concern
from vhmc.sampler.soundness.gradient import Fault, find_fault, is_rough
from vhmc.sampler.soundness.mass import flat_directions, without_mass
from vhmc.sampler.soundness.noise import (
    HARMLESS,
    LATE_SENTENCE,
    ROUGH_SENTENCE,
    Repeated,
    is_late,
    repeat,
    rounding,
    rounding_step,
)
from vhmc.sampler.soundness.screen import (
    apart_directions,
    falling_direction,
    generic,
    is_suspicious,
    near_points,
    wide_directions,
)
from vhmc.sampler.soundness.secant import PHASE, compare, factors
from vhmc.transport.transport_map import TransportMap

SHARE = 0.03
"""Of the budget, at most, for looking at a model with which nothing is wrong."""
LEAST = 4
"""Points that a finding may cost on any budget."""
MOST_DIRECTIONS = 2
"""Directions along which a finite mass is looked for at a time."""
WIDE = 20.0
"""Spread of points over what their slopes suggest that is looked into."""
ASIDE = 0.05
"""Distance from the start at which the gradient is checked, over its size or one."""
NEEDED = 4
"""Points that a direction costs."""


class Inspection:
    """What is wrong with the model of a run.

    evaluator: of the model.
    labels: of the parameters.
    """

    def __init__(self, evaluator: Evaluator, labels: Sequence[str]):
        self._evaluator, self._labels = evaluator, labels
        self._is_checked = self._is_rough = False
        self._repeated: Repeated | None = None
        self.concerns: list[Concern] = []
        self.is_hopeless = False

    def at_start(self) -> None:
        """Check a gradient that was written by hand where the search begins.

        Raises `RunFailure` if it is so wrong that no search could use it.
        """
        if not self._evaluator.target.is_hand_written or self._left < LEAST:
            return
        # Not at the start itself: zero is where functions have kinks.
        origin = self._evaluator.origin
        theta = origin + ASIDE * np.maximum(1.0, np.abs(origin)) * factors(len(origin))
        answer = self._evaluator.evaluate(theta[None], PHASE)
        if np.isfinite(answer.energy[0]):
            self._check(Evaluated(theta, float(answer.energy[0]), answer.grad[0]))

    def near_mass(self, modes: Modes, transport: TransportMap) -> None:
        """Look at the points of search and warm-up, and further where they are odd.

        Raises `RunFailure` if the gradient is of no use.

        modes: that the search found.
        transport: the map so far.
        """
        log = self._evaluator.log
        if self.is_hopeless or not log.is_finite.any():
            return
        near = near_points(log)
        if is_late(log):
            raise self._failure(Fault(LATE_SENTENCE, True))
        if (found := rounding(near.energy)) is not None:
            self._note(*found)
            self.is_hopeless = found[0] == "bad"
        if self._evaluator.target.is_hand_written or is_suspicious(near):
            self._check(generic(near))
        if self.is_hopeless:
            return
        if not modes.has_mode and (falling := falling_direction(log)) is not None:
            self._look_for_mass(falling[1][None], falling[0])
        self._look_for_mass(flat_directions(near.grad))
        self._look_for_mass(apart_directions(modes, transport))
        least = WIDE if modes.has_mode else 0.0
        self._look_for_mass(wide_directions(near, MOST_DIRECTIONS, least))

    @property
    def reserve(self) -> int:
        """Points to be left for the case that the verdict is not good."""
        return 0 if self.is_hopeless else min(NEEDED, self._left)

    def in_doubt(self) -> None:
        """Look for a cause in the model of a verdict that is not good."""
        log = self._evaluator.log
        near = near_points(log)
        if not self._is_checked and len(near.theta):
            self._check(generic(near), is_fatal=False)
        self._look_for_mass(wide_directions(near, MOST_DIRECTIONS))

    @property
    def _left(self) -> int:
        """Points that may be spent on a look."""
        allowed = max(int(SHARE * self._evaluator.budget), LEAST)
        spent = self._evaluator.costs.get(PHASE, 0)
        price = self._evaluator.target.price
        return min((allowed - spent) // price, self._evaluator.left)

    def _check(self, base: Evaluated, is_fatal: bool = True) -> None:
        """Evaluate a point again, and others close by."""
        evaluate = self._evaluator.evaluate
        if self._repeated is None:
            self._repeated = repeat(evaluate, base, self._left - 1)
            if self._repeated.is_late:
                raise self._failure(Fault(LATE_SENTENCE, True))
            for concern in self._repeated.concerns():
                self._note(*concern)
        known = near_points(self._evaluator.log).energy
        sd = max(self._repeated.value, rounding_step(known) / 3)
        compared = compare(evaluate, base, self._left, sd)
        self._is_checked = True
        self._look_for_delay(base)
        if not compared.is_wrong:
            return
        # What is wrong is worth more than the share.
        most = min(max(self._left, len(base.theta)), self._evaluator.left // 2)
        fault = find_fault(evaluate, base, compared.step, self._labels, most, sd)
        if fault is None:
            return
        worst = fault.worst
        if worst is not None and most and is_rough(evaluate, base, worst):
            size = abs(worst.secant.error)
            if size > HARMLESS and not self._is_rough:
                self._is_rough = True
                self._note("caution", ROUGH_SENTENCE.format(size=size))
            return
        if fault.is_gross and is_fatal:
            raise self._failure(fault)
        self._note("bad" if fault.is_gross else "caution", fault.sentence)
        self.is_hopeless = True

    def _look_for_delay(self, base: Evaluated) -> None:
        """Evaluate the last point again, if its gradient is that of another one."""
        log = self._evaluator.log
        theta, grad = log.theta[-1], log.grad[-1]
        is_copied = np.array_equal(grad, base.grad) and grad.any()
        if np.array_equal(theta, base.theta) or not is_copied or self._left < 1:
            return
        again = self._evaluator.evaluate(theta[None], PHASE)
        if not np.array_equal(again.grad[0], grad):
            raise self._failure(Fault(LATE_SENTENCE, True))

    def _look_for_mass(
        self, directions: np.ndarray, base: Evaluated | None = None
    ) -> None:
        """Say along which of some directions the posterior is improper.

        base: a point near the mass, or from where the energy falls.
        """
        number = min(MOST_DIRECTIONS, self._left // NEEDED, len(directions))
        if number < 1 or self.is_hopeless:
            return
        base = generic(near_points(self._evaluator.log)) if base is None else base
        sentence = without_mass(
            self._evaluator.evaluate,
            (base.theta, base.energy),
            directions[:number],
            self._labels,
        )
        if sentence is not None:
            self._note("bad", sentence)
            self.is_hopeless = True

    def _note(self, status: str, sentence: str) -> None:
        concern = Concern(status, sentence, MODEL)
        if concern not in self.concerns:
            LOG.warning("%s", sentence)
            self.concerns.append(concern)

    def _failure(self, fault: Fault) -> RunFailure:
        return RunFailure(
            f"{fault.sentence}; all evaluations are in this error's `evaluation_log`",
            evaluation_log=self._evaluator.evaluation_log,
        )

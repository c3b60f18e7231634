"""The training of one mode: its chains, and its share of the budget."""

from collections.abc import Callable

import numpy as np

from vhmc.evaluation.evaluator import Evaluator
from vhmc.sampler.check import Check
from vhmc.sampler.drawing import Drawn
from vhmc.sampler.modes.mixing import DrawnPart
from vhmc.sampler.modes.part import Part
from vhmc.sampler.plan import Plan
from vhmc.sampler.rounds import RoundReport, Rounds
from vhmc.sampler.training import repair, train
from vhmc.surrogate.surrogate import Surrogate

LEAST_TEMPERED = 4
"""Tempered draws of a mode that are checked, at least."""


class Component:
    """A mode, or the whole posterior if it has but one.

    rounds: its chains and its trainer.
    evaluator: of its points.
    """

    def __init__(self, rounds: Rounds, evaluator: Evaluator | Part):
        self.rounds, self.evaluator = rounds, evaluator

    @property
    def surrogate(self) -> Surrogate:
        """As it is now."""
        return self.rounds.trainer.surrogate

    def begin_again(self, check: Check) -> None:
        """Go on from draws that were checked and not good enough.

        They are training data now, and better starts.

        check: its draws of this mode.
        """
        trainer = self.rounds.trainer
        if len(check.theta):
            self.rounds.restart(check)
        trainer.require_residual()

    def refit(self) -> None:
        """Fit map and residual again, to all points so far."""
        self.rounds.trainer.refit(self.evaluator.log, *self.rounds.recent())

    def train(
        self,
        rng: np.random.Generator,
        plan: Plan,
        chains: int,
        on_round: Callable[[RoundReport], None],
        share: int = 1,
    ) -> None:
        """Rounds, and repairs after them, within the mode's part of the budget.

        chains: on the surrogate.
        share: modes, this one included, that what is left is for.
        """
        if isinstance(self.evaluator, Part):
            self.evaluator.allow(share, plan.check + plan.correction)
            plan = plan._replace(training=plan.training // share)
        train(self.rounds, self.evaluator, plan, on_round)
        repair(rng, self.rounds, self.evaluator, plan, chains)

    def drawn(self, drawn: Drawn, num_tempered: int) -> DrawnPart:
        """Its draws with all that it takes to weigh them."""
        states, surrogate = self.rounds.states, self.surrogate
        weights = surrogate.energies(states.theta) - states.energy
        number = max(num_tempered, LEAST_TEMPERED)
        tempered = self.rounds.tempered_draws(number)
        return DrawnPart(surrogate, drawn, tempered, float(np.median(weights)))

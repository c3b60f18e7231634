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
from vhmc.sampler.training import num_rounds, repair, train
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

    def use(self, evaluator: Evaluator | Part) -> None:
        """Take the points of another part of space from now on."""
        self.evaluator = evaluator
        self.rounds.use(evaluator)

    def begin_again(self, check: Check) -> None:
        """Go on from draws that were checked and not good enough.

        They are training data now, and better starts.

        check: its draws of this mode.
        """
        trainer = self.rounds.trainer
        if len(check.theta):
            self.rounds.restart(check)
            trainer.keep_ridge(check.log_weights[np.isfinite(check.log_weights)])
        trainer.require_residual()

    def refit(self) -> None:
        """Fit map and residual again, to all points so far."""
        self.rounds.trainer.refit(self.evaluator.log, *self.rounds.recent())

    def train(
        self,
        plan: Plan,
        on_round: Callable[[RoundReport], None],
        share: float = 1.0,
    ) -> bool:
        """Rounds of training; whether there is nothing more to learn.

        share: of the rounds to come, for a posterior that is not easy.
        """
        total = num_rounds(self.rounds, self.evaluator, plan)
        return train(self.rounds, self.evaluator, plan, total, share, on_round)

    def repair(self, rng: np.random.Generator, plan: Plan, chains: int) -> None:
        """Evaluate draws of the surrogate until it holds there.

        chains: on the surrogate.
        """
        repair(rng, self.rounds, self.evaluator, plan, chains)

    def share_of(self, plan: Plan, number: int) -> Plan:
        """Take one of so many shares of what is left, and plan for it."""
        if not isinstance(self.evaluator, Part):
            return plan
        self.evaluator.allow(number, plan.reserve)
        return plan._replace(training=plan.training // number)

    def drawn(self, drawn: Drawn, num_tempered: int) -> DrawnPart:
        """Its draws with all that it takes to weigh them."""
        states, surrogate = self.rounds.states, self.surrogate
        weights = surrogate.energies(states.theta) - states.energy
        number = max(num_tempered, LEAST_TEMPERED)
        tempered = self.rounds.tempered_draws(number)
        return DrawnPart(surrogate, drawn, tempered, float(np.median(weights)))

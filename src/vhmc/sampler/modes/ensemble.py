"""The modes that a run knows: their training, their draws and the check of them."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from vhmc.evaluation.evaluator import Evaluator
from vhmc.report.watch import Watch
from vhmc.sampler.attempt import Attempt
from vhmc.sampler.check import Check, choose, with_moments
from vhmc.sampler.check_surrogate import check
from vhmc.sampler.drawing import Drawn, draw
from vhmc.sampler.modes.component import Component
from vhmc.sampler.modes.mixing import weighed
from vhmc.sampler.modes.part import Part, Partition
from vhmc.sampler.plan import Plan, Settings
from vhmc.sampler.rounds import RoundReport, Rounds
from vhmc.sampler.verdict import unchecked
from vhmc.surrogate.mixture import Mixture
from vhmc.surrogate.surrogate import Surrogate
from vhmc.surrogate.trainer import Trainer, default_num_features
from vhmc.transport.graph import Graph
from vhmc.transport.transport_map import TransportMap

HALF = 0.5
"""Share of the rounds after which one looks around a posterior that is not easy."""
TEMPERED = 4
"""One in so many of the checked draws is one of the tempered surrogate."""


class Setting(NamedTuple):
    """What the training of every mode needs.

    evaluator: of the run.
    settings: what the user chose.
    rng: of all moves.
    watch: is told of drawing.
    on_round: is told of every round.
    """

    evaluator: Evaluator
    settings: Settings
    rng: np.random.Generator
    watch: Watch
    on_round: Callable[[RoundReport], None]


class Ensemble:
    """A component for every mode; most posteriors have one.

    setting: of the run.
    transports: a map for each mode.
    graph: along which maps are fitted.
    plan: of the run.
    """

    def __init__(
        self,
        setting: Setting,
        transports: Sequence[TransportMap],
        graph: Graph | None,
        plan: Plan,
    ):
        self._setting, self._graph = setting, graph
        self.components: list[Component] = []
        self.add(transports, plan)

    @property
    def transports(self) -> list[TransportMap]:
        """Maps of all modes, as they are now."""
        return [one.surrogate.transport for one in self.components]

    @property
    def reports(self) -> list[RoundReport]:
        """Of the rounds of all modes, in order."""
        reports = [row for one in self.components for row in one.rounds.reports]
        return sorted(reports, key=lambda report: report.spent)

    def add(self, transports: Sequence[TransportMap], plan: Plan) -> None:
        """Components for more modes; space is divided anew."""
        everything = [*self.transports, *transports]
        parts: list[Evaluator | Part] = [self._setting.evaluator]
        if len(everything) > 1:
            partition = Partition(self._setting.evaluator, everything)
            parts = [Part(partition, number) for number in range(len(everything))]
        for component, part in zip(self.components, parts, strict=False):
            component.use(part)
        new = zip(transports, parts[len(self.components) :], strict=True)
        self.components += [self._component(*pair, plan) for pair in new]

    def use_graph(self, graph: Graph | None) -> None:
        """Fit maps along this graph from now on."""
        self._graph = graph
        for component in self.components:
            component.rounds.trainer.use_graph(graph)

    def train(self, plan: Plan, look: Callable[[], bool]) -> None:
        """Train every mode within its share of what the plan leaves.

        look: look around, and add the modes that are found; whether there were any.
        """
        on_round, is_easy = self._setting.on_round, False
        if plan.look:
            first = self.components[0]
            own = first.share_of(plan, len(self.components))
            is_easy = first.train(own, on_round, HALF)
            look()
            plan = plan._replace(look=0)
        for number, component in enumerate(self.components):
            own = component.share_of(plan, len(self.components) - number)
            if number or not is_easy:
                component.train(own, on_round)
            chains = self._setting.settings.chains
            component.repair(self._setting.rng, own, chains)

    def begin_again(self, surrogate: Surrogate | Mixture, check: Check) -> None:
        """Go on from the draws of an attempt that was not good enough."""
        for number, component in enumerate(self.components):
            own = check
            if isinstance(surrogate, Mixture):
                own = check.where(surrogate.labels(check.theta) == number)
            component.begin_again(own)

    def refit(self) -> None:
        """Fit all maps and residuals again, to all points so far."""
        for component in self.components:
            component.refit()

    def draw(self) -> list[Drawn]:
        """Chains on every surrogate, from dispersed starts."""
        return [self._draw(component.rounds) for component in self.components]

    def checked(self, drawn: list[Drawn], number: int) -> Attempt:
        """The draws, with the model's answers at some of them.

        number: of evaluations.
        """
        if len(self.components) > 1:
            return self._weighed(drawn, number)
        component, rng = self.components[0], self._setting.rng
        surrogate = component.surrogate
        theta = drawn[0].theta(surrogate)
        flat = theta.reshape(-1, surrogate.dim)
        values = with_moments(self.values, flat)
        chosen = choose(rng, values, flat, number - number // TEMPERED)
        tempered = component.rounds.tempered_draws(number // TEMPERED)
        evaluate = self._setting.evaluator.evaluate
        found = check(surrogate, evaluate, values, chosen, tempered)
        return Attempt(surrogate, drawn[0], found, unchecked(""))

    def values(self, theta: np.ndarray) -> np.ndarray:
        """All values in the user's space, of points as the evaluator takes them."""
        evaluator = self._setting.evaluator
        return evaluator.target.parameters.values(evaluator.outward(theta))

    def _weighed(self, drawn: list[Drawn], number: int) -> Attempt:
        """Draws of several modes, weighed by the model's answers at some of them."""
        num_tempered = number // TEMPERED // len(self.components)
        parts = [
            component.drawn(one, num_tempered)
            for component, one in zip(self.components, drawn, strict=True)
        ]
        number -= sum(len(part.tempered) for part in parts)
        rng, evaluate = self._setting.rng, self._setting.evaluator.evaluate
        mixture, mixed, found = weighed(rng, parts, evaluate, self.values, number)
        return Attempt(mixture, mixed, found, unchecked(""))

    def _component(
        self, transport: TransportMap, evaluator: Evaluator | Part, plan: Plan
    ) -> Component:
        size = self._setting.settings.num_features
        size = default_num_features(transport.dim) if size is None else size
        if transport.is_skewed:
            # Where such a map is needed, a network has more holes than it mends.
            size = 0
        rng = self._setting.rng
        trainer = Trainer(
            transport,
            size,
            rng,
            graph=self._graph,
            observable=self._setting.evaluator.target.observable,
        )
        rounds = Rounds(trainer, evaluator, plan.chains, rng, self.values)
        trainer.start(evaluator.log)
        return Component(rounds, evaluator)

    def _draw(self, rounds: Rounds) -> Drawn:
        settings, watch = self._setting.settings, self._setting.watch
        starts = rounds.dispersed_starts(settings.chains)
        watch.phase("drawing")
        surrogate, step_size = rounds.trainer.surrogate, rounds.step_size
        rng = self._setting.rng
        return draw(rng, surrogate, starts, step_size, settings.draws, watch.draws)

"""The end of a run: the best attempt, corrected, or what there is at an interrupt."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from vhmc.evaluation.centred_evaluator import CentredEvaluator
from vhmc.evaluation.evaluator import RunFailure
from vhmc.report.status import Moment
from vhmc.sampler.attempt import Attempt
from vhmc.sampler.clock import Clock
from vhmc.sampler.correction import (
    CORRECTIONS,
    NONE,
    Corrected,
    Uncorrected,
    resolve,
)
from vhmc.sampler.model_graph import labels_of, links_of
from vhmc.sampler.modes.ensemble import Ensemble
from vhmc.sampler.modes.surroundings import Surroundings
from vhmc.sampler.plan import Settings
from vhmc.sampler.posterior import Posterior
from vhmc.sampler.reasons import INTERRUPTED, Concern
from vhmc.sampler.result import result
from vhmc.sampler.rounds import RoundReport
from vhmc.sampler.verdict import unchecked
from vhmc.sampler.walls.watch import WallWatch
from vhmc.structure.record import Structure
from vhmc.surrogate.mixture import Mixture


class Ending(NamedTuple):
    """What a posterior tells of its run, beside the draws.

    evaluator: of the model, with all evaluations.
    settings: what the user chose.
    clock: of the run.
    structure: of the model, as far as it is known.
    walls: that the run has met.
    around: what it knows beyond the modes that it samples.
    reports: of the rounds of training.
    remarks: on the search.
    """

    evaluator: CentredEvaluator
    settings: Settings
    clock: Clock
    structure: Structure
    walls: WallWatch
    around: Surroundings
    reports: Sequence[RoundReport]
    remarks: tuple[str, ...] = ()

    def finished(
        self, rng: np.random.Generator, attempts: Sequence[Attempt], number: int
    ) -> Posterior:
        """The best attempt, with the requested correction.

        number: evaluations for that, at most.
        """
        best = min(attempts, key=lambda attempt: attempt.badness)
        theta = best.theta
        if best.check is None:
            return self._posterior(best, Corrected(theta, best.verdict))
        flat = theta.reshape(-1, theta.shape[-1])
        name = resolve(self.settings.correction, best.check, flat)
        uncorrected = Uncorrected(
            best.surrogate,
            best.drawn,
            best.check,
            theta,
            self.evaluator.evaluate,
            min(number, self.evaluator.left),
        )
        corrected = CORRECTIONS[name].draw(rng, uncorrected, best.verdict)
        self.clock.lap("correction")
        return self._posterior(best, corrected, name)

    def cut_short(
        self, attempts: Sequence[Attempt], ensemble: Ensemble | None
    ) -> Posterior:
        """What there is when the user ends the run, with an honest verdict."""
        if attempts:
            best = min(attempts, key=lambda attempt: attempt.badness)
            cause = Concern("caution", "the run was interrupted", INTERRUPTED)
            verdict = best.verdict.because_of([cause])
            return self._posterior(best, Corrected(best.theta, verdict))
        if ensemble is None:
            raise RunFailure(
                "the run was interrupted during the search: there is nothing to draw "
                "from yet",
                evaluation_log=self.evaluator.evaluation_log,
            )
        first = ensemble.components[0]
        surrogate = first.rounds.trainer.update(first.evaluator.log)
        verdict = unchecked("the run was interrupted before its draws were checked")
        attempt = Attempt(surrogate, ensemble.draw()[0], None, verdict)
        return self._posterior(attempt, Corrected(attempt.theta, verdict))

    def _posterior(
        self, attempt: Attempt, corrected: Corrected, correction: str = NONE
    ) -> Posterior:
        evaluator, verdict = self.evaluator, corrected.verdict
        space = evaluator.target.parameters
        about_walls = self.walls.notes(labels_of(space), links_of(space))
        surrogate = attempt.surrogate
        number = len(surrogate.parts) if isinstance(surrogate, Mixture) else 1
        around = self.around.note(verdict, number)
        notes = (*self.remarks, *about_walls, around)
        facts: dict[str, Any] = {"budget": evaluator.budget, **self.settings._asdict()}
        return result(
            evaluator,
            attempt,
            corrected._replace(verdict=verdict._replace(notes=notes)),
            correction=correction,
            seconds=self.clock.seconds,
            history=tuple(moment(report) for report in self.reports),
            settings=facts,
            structure=self.structure,
            walls=tuple(self.walls.walls),
        )


def moment(report: RoundReport) -> Moment:
    """What a reader is shown of a round."""
    return Moment(report.spent, report.score_error, report.delayed_acceptance)

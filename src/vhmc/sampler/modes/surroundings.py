"""What a run knows of the posterior beyond the modes that it samples."""

from collections.abc import Sequence

import numpy as np

from vhmc.evaluation.evaluator import Evaluator
from vhmc.sampler.attempt import Attempt
from vhmc.sampler.locate import Modes, modes_of
from vhmc.sampler.modes.copies import copies
from vhmc.sampler.modes.find import (
    POINTS,
    Found,
    find_modes,
    is_affordable,
    is_within,
    left_over,
    log_mass,
)
from vhmc.sampler.modes.look import Wide
from vhmc.sampler.modes.outside import outside
from vhmc.sampler.modes.widen import wide_map
from vhmc.sampler.plan import Plan
from vhmc.sampler.reasons import Concern
from vhmc.sampler.verdict import MUCH_OUTSIDE, Verdict
from vhmc.transport.transport_map import TransportMap

COPIES = (
    "parameters can be relabelled, which gives {total} copies of the posterior's mode, "
    "and the budget sufficed for {number} of them; order a parameter, or raise the "
    "budget"
)
UNSEARCHED = (
    "there may be more than the {number} modes that were found: the budget ended "
    "before there was a look around the last of them; raise the budget"
)
LOOKED = (
    "looked for further mass at {number} points up to {far:.0f} sds from the mean"
    "{prior}, and by descents from those that do not point back; {spent} evaluations: "
    "{found}"
)
NOT_LOOKED = (
    "nobody looked for further mass far from these draws: no evaluation was left for it"
)
PRIOR_SHARE, MOST_PRIOR = 0.12, 16
"""Share of a look for draws of the prior, where that is known, and the most of them."""


class Surroundings:
    """Ends of descents in other modes, and points far outside.

    rng: of all points.
    evaluator: of the run.
    modes: ends of the search.

    wide: points of the widened posterior.
    """

    def __init__(self, rng: np.random.Generator, evaluator: Evaluator, modes: Modes):
        self._rng, self._evaluator = rng, evaluator
        self.modes = modes
        self.wide: list[Wide] = []
        self._num_looked = self._num_copies = self._num_left_out = 0
        self._num_prior = 0

    def first(self, transport: TransportMap, plan: Plan) -> list[TransportMap]:
        """Maps of the mode that was found, its copies, and those of the search's ends.

        Other modes that the search has seen have the whole budget before them.
        """
        known = [transport, *self._relabelled(transport, plan)]
        found = find_modes(
            *(self._rng, self._evaluator, known, self.modes, plan),
            plan.look - int(POINTS * plan.look),
            share=0.0,
            num_copies=self._num_copies,
        )
        known += found.transports
        self._leave(known, found)
        return known

    def look(self, known: Sequence[TransportMap], plan: Plan) -> list[TransportMap]:
        """Look for other modes, if that was not done since one was found.

        known: maps of all modes so far.
        """
        if self._num_looked == len(known):
            return []
        # Where there are several there may be more: what is left is for looking.
        allowance = plan.look or self._evaluator.left // 2 - plan.correction
        if plan.look and known[0].cliques is not None:
            # All but a few hubs are about normal given these: there is less to see.
            allowance //= 2
        starts = self._prior_draws(int(PRIOR_SHARE * allowance))
        allowance -= len(starts.ends)
        found = find_modes(
            *(self._rng, self._evaluator, known, self.modes),
            *(plan._replace(look=0), allowance),
            num_copies=self._num_copies,
            starts=starts,
        )
        self._num_looked = len(known)
        self._leave([*known, *found.transports], found)
        return found.transports

    def wider(self, attempt: Attempt, plan: Plan) -> list[TransportMap]:
        """A map as wide as the mass outside of the draws, if there is much."""
        if attempt.check is None or not is_affordable(self._evaluator, plan, 1):
            return []
        found = outside(attempt, self.wide)
        if found.mass.sum() < MUCH_OUTSIDE:
            return []
        theta = attempt.theta.reshape(-1, attempt.surrogate.dim)
        transport = wide_map(self._rng, self._evaluator, found, theta, plan)
        if transport is None or log_mass(self._evaluator.log, transport) == -np.inf:
            return []
        return [transport]

    def doubts(self, number: int) -> list[Concern]:
        """What has been left undone.

        number: of the modes that are sampled.
        """
        found = []
        if self._num_left_out:
            total = number + self._num_left_out
            found.append(Concern("bad", COPIES.format(total=total, number=number)))
        if 1 < number and self._num_looked < number:
            found.append(Concern("caution", UNSEARCHED.format(number=number)))
        return found

    def note(self, verdict: Verdict, number: int) -> str:
        """How far was looked, and what was found.

        number: of the modes, or parts of one, that the draws are in.
        """
        distance = [one.distance for one in self.wide if len(one.distance)]
        if not distance:
            return NOT_LOOKED
        found = verdict.statistics
        if found and (found.mass_outside > MUCH_OUTSIDE or found.missed_modes):
            words = "the draws leave out what was found"
        elif number > 1:
            words = f"the draws are in all {number} parts that were found"
        else:
            words = "none was found"
        prior = f", at {self._num_prior} draws of the prior" if self._num_prior else ""
        return LOOKED.format(
            number=sum(map(len, distance)),
            far=np.max(np.concatenate(distance)),
            prior=prior,
            spent=self._evaluator.costs.get("look", 0),
            found=words,
        )

    def _relabelled(self, transport: TransportMap, plan: Plan) -> list[TransportMap]:
        """Maps of copies of a mode, as many as the budget allows."""
        evaluator = self._evaluator
        found: list[TransportMap] = []
        for copy in copies(self._rng, evaluator, transport):
            centre = copy.forward(np.zeros((1, copy.dim)))[0]
            if is_within([transport, *found], centre):
                continue
            if not is_affordable(evaluator, plan, len(found) + 1):
                self._num_left_out += 1
                continue
            found.append(copy)
            white = self._rng.standard_normal((plan.chains, copy.dim))
            evaluator.evaluate(copy.forward(white), "warm-up")
        self._num_copies = len(found)
        return found

    def _prior_draws(self, number: int) -> Modes:
        """Points of the prior with a density, the lowest energy first.

        Once in a run. A mode far from the first one is within the prior, or not at all.
        """
        evaluator = self._evaluator
        if self._num_looked or number < 1:
            return modes_of([], evaluator.target.dim, has_mode=False)
        drawn = evaluator.target.draw_prior(self._rng, min(number, MOST_PRIOR))
        x = evaluator.inward(drawn)
        x = x[np.isfinite(x).all(axis=1)]
        if not len(x):
            return modes_of([], evaluator.target.dim, has_mode=False)
        self._num_prior = len(x)
        answer = evaluator.evaluate(x, "look")
        order = np.argsort(answer.energy)[: np.isfinite(answer.energy).sum()]
        return Modes(
            x[order],
            answer.energy[order],
            answer.grad[order],
            np.zeros(len(order), dtype=bool),
            has_mode=False,
        )

    def _leave(self, known: Sequence[TransportMap], found: Found) -> None:
        """Keep what was found in no mode that is known."""
        self.modes = left_over(self.modes, known, found)
        self.wide += found.wide

"""Search again: whether the first fit is hopeless, and where to begin then.

A map in the wrong place may fit what is there. What gives it away is that energies are
lower elsewhere, or that the surrogate breaks down as soon as points elsewhere join the
training set. More training there is of no use. The map still tells the units and the
correlations of the parameters, so descents from far out in its coordinates end in other
places than those of the first search, which knew none of them.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from vhmc.evaluation.evaluator import EvaluationLog
from vhmc.sampler.locate import Modes
from vhmc.sampler.modes.find import NEGLIGIBLE, is_within, log_mass
from vhmc.sampler.plan import LEAST_BUDGET, Plan, share_out
from vhmc.sampler.rounds import RoundReport
from vhmc.sampler.starts import starts
from vhmc.sampler.training import LAST
from vhmc.transport.transport_map import TransportMap

ASTRAY = 1000.0
"""Nats over which log weights of the map's draws spread, or by which the energy went on
falling after the descents, where the map is in the wrong place."""
LOWER = 10.0
"""Nats by which a point that the look around has met is below all points before."""
RECENT = 32
"""Last points of the warm-up, whose log weights count."""
LOST_ACCEPTANCE, LOST_SCORE = 0.5, 1.0
"""Mean true acceptance below, and median score error above which the last rounds lead
nowhere: with an error of one the gradient is as unknown as without a surrogate."""
SHARE_LEFT = 0.35
"""Of the budget, that must be left for another search and what follows it."""
SEARCH_SHARE = 0.35
"""Of what is left, for the descents of the second search, at most as many as before."""
NUM_LOWEST, NUM_AROUND = 2, 2
"""Starts that are the lowest points known, and random points around the user's."""
APART = 3.0
"""Latent distance of the lowest points from the map's mode and from each other, over
the root of the dimension."""
WIDTHS = 5.0, 11.0, 23.0, 50.0
"""Factors by which the map is widened for a start each."""


class Lost(Exception):
    """Training leads nowhere, and the budget allows another search."""


def is_affordable(plan: Plan, left: int) -> bool:
    """Whether enough points are left for another search and what follows it."""
    return left - plan.correction >= max(SHARE_LEFT * plan.total, 2 * LEAST_BUDGET)


def planned(plan: Plan, left: int) -> Plan:
    """The plan for what is left, with as much of it for the search as is useful."""
    rest = left - plan.correction
    new = share_out(rest, plan.hessian or rest, 0.0)
    search = min(int(SEARCH_SHARE * rest), plan.search)
    look = min(new.look, plan.look)  # none if there has been one
    training = max(new.training + new.search - search + new.look - look, 0)
    return new._replace(
        search=search, look=look, training=training, correction=plan.correction
    )


def is_astray(log: EvaluationLog, transport: TransportMap, modes: Modes) -> bool:
    """Whether the first map of a run is in the wrong place.

    log: of search and warm-up, and of a first look around.
    modes: that the search found.
    """
    known = log.is_finite
    if known.any() and len(modes.energies) and not modes.held:
        # The curvature led far on from where all descents seemed to have arrived.
        if modes.energies.min() - log.energy[known].min() > ASTRAY:
            return True
    near = _near(log, transport)
    return near.spread > ASTRAY or near.fall > LOWER


class _Near(NamedTuple):
    """How the true energy compares with a map's.

    spread: half the range of the middle two thirds of the log weights of its draws.
    fall: nats by which a point of the look around is below all points before, in latent
        coordinates: there the volume of a neck counts.
    """

    spread: float
    fall: float


def _near(log: EvaluationLog, transport: TransportMap) -> _Near:
    dim, known = transport.dim, log.is_finite
    phase = log.phase[known]
    with np.errstate(all="ignore"):
        x, log_det = transport.inverse_and_log_det(log.theta[known])
        latent, square = log.energy[known] - log_det, np.sum(x**2, axis=1)
    latent = np.where(np.isfinite(latent), latent, np.inf)
    # Draws of other maps, most of which are not near, say nothing of this one.
    is_drawn = (square < dim + 4 * np.sqrt(2 * dim)) & (phase == "warm-up")
    weights = (0.5 * square - latent)[is_drawn][-RECENT:]
    spread = fall = 0.0
    if len(weights):
        low, high = np.quantile(weights, (0.16, 0.84))
        spread = float(high - low) / 2
    is_seen = phase == "look"
    if is_seen.any() and not is_seen.all() and np.isfinite(latent[is_seen]).any():
        # The map's own centre is below all of its draws, and may not have been seen.
        center = -np.median(weights) if len(weights) else np.inf
        fall = float(min(latent[~is_seen].min(), center) - latent[is_seen].min())
    return _Near(spread, fall)


def is_lost(reports: Sequence[RoundReport]) -> bool:
    """Whether the last rounds of training show that it leads nowhere."""
    last = reports[-LAST:]
    if len(last) < LAST:
        return False
    acceptance = np.mean([report.delayed_acceptance for report in last])
    score_error = np.median([report.score_error for report in last])
    return bool(acceptance < LOST_ACCEPTANCE and score_error > LOST_SCORE)


def places_around(
    rng: np.random.Generator,
    log: EvaluationLog,
    transport: TransportMap,
    origin: np.ndarray,
) -> list[np.ndarray]:
    """Where descents of another search begin: not where the map has its own mode.

    The lowest points known elsewhere, random points around the user's start, and draws
    of the map, each widened more than the last. What the map conditions on is not
    widened: exponentials of it would overflow.

    log: of all points so far.
    origin: the user's start.
    """
    dim, known = transport.dim, log.is_finite
    theta = log.theta[known]
    with np.errstate(all="ignore"):
        x = transport.inverse(theta)
    places, chosen = [np.zeros(dim)], list[int]()
    for row in np.argsort(log.energy[known]):
        if len(chosen) == NUM_LOWEST:
            break
        away = np.linalg.norm(x[row] - np.array(places), axis=1)
        if np.all(away > APART * np.sqrt(dim)):
            places.append(x[row])
            chosen.append(int(row))
    widths = np.tile(WIDTHS, (dim, 1)).T
    widths[:, transport.hubs] = 1.0
    with np.errstate(all="ignore"):
        wide = transport.forward(widths * rng.standard_normal(widths.shape))
    wide = wide[np.isfinite(wide).all(axis=1)]
    around = starts(rng, origin, NUM_AROUND + 1)[1:]
    return [*theta[chosen], *around, *wide]


def heaviest(
    log: EvaluationLog, old: Sequence[TransportMap], new: TransportMap
) -> list[TransportMap]:
    """The maps that hold the mass, a new one first if it is one of them.

    log: with points around all of them.
    """
    masses = [log_mass(log, one) for one in old]
    mass, center = log_mass(log, new), new.forward(np.zeros((1, new.dim)))[0]
    # In the same place a map must be better by as much, or training was not in vain.
    least = NEGLIGIBLE if is_within(old, center) else -NEGLIGIBLE
    if not mass > max(masses) + least:
        return list(old)
    pairs = zip(old, masses, strict=True)
    return [new, *(one for one, other in pairs if other > mass - NEGLIGIBLE)]


def joined(first: Modes, second: Modes) -> Modes:
    """Ends of the descents of both searches."""
    return second._replace(
        ends=np.concatenate([first.ends, second.ends]),
        energies=np.concatenate([first.energies, second.energies]),
        grads=np.concatenate([first.grads, second.grads]),
        arrived=np.concatenate([first.arrived, second.arrived]),
    )

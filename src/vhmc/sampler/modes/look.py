r"""Look for other modes, from far outside of the one that is known.

In latent coordinates the known mode is about a standard normal: from a point $x$ with
gradient $g$, one step of Newton's method leads to $x - g$, which is close to zero.
Descents begin at points of the widened posterior for which it is not. Whatever the
number of dimensions, about half of such points are closer to another mode of the same
shape.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from vhmc.evaluation.evaluator import Evaluate, Evaluator
from vhmc.sampler.descents import Descent, Evaluated, descend
from vhmc.sampler.locate import Modes
from vhmc.sampler.modes.latent import End, Latent
from vhmc.sampler.race import has_arrived, is_finished
from vhmc.transport.transport_map import TransportMap

WIDTHS = 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 25.0, 100.0
"""Factors by which the posterior is widened, in turn."""
UNEVEN = 1.0
"""Spread of the logarithms of widths, for half of the points.

With it a normal of other widths in ten dimensions is met by 6 % of them, else by 0.5 %.
"""
MAX_DESCENTS = 8
LEAST_DESCENT, LONGEST = 12, 25
"""Evaluations of one descent, at least and at most."""
PLACES = 0.2, 0.4, 0.6, 0.8
"""On the segment between two ends, where a barrier is looked for."""
BARRIER = 1.0
"""Nats above the higher end that make two modes of them."""


class Wide(NamedTuple):
    """Points of the widened posterior.

    theta, energy: in the coordinates of the evaluator; infinite energies count.
    log_density: of all their widths together, normalised.
    distance: from the middle of the known mode in sds, root mean square of parameters.
    """

    theta: np.ndarray
    energy: np.ndarray
    log_density: np.ndarray
    distance: np.ndarray


class Looked(NamedTuple):
    """What a look has found.

    ends: of descents that did not lead to a known mode, the lowest first.
    wide: the points from which it looked.
    """

    ends: list[End]
    wide: Wide


def look(
    rng: np.random.Generator,
    evaluator: Evaluator,
    transport: TransportMap,
    modes: Modes,
    others: Sequence[TransportMap],
    number: int,
    allowance: int,
    starts: Modes | None = None,
) -> Looked:
    """Descend from points of the widened posterior that do not point home.

    transport: map of the known mode.
    modes: ends of the search; those that do not point home are begun with.
    others: maps of other modes that are known.
    number: points of the widened posterior.
    allowance: evaluations of all descents.
    starts: further points, in turn with those of the widened posterior.
    """
    latent = Latent(evaluator, transport, others)
    x, grad = _of_search(transport, modes)
    lowest = _lowest(transport, modes)
    wide, *far = _widened(rng, latent, transport, number, lowest)
    if starts is not None:
        far = _in_turn(_of_search(transport, starts), far)
    x, grad = (np.concatenate(rows) for rows in zip((x, grad), far, strict=True))
    is_other = ~latent.is_home(x - grad)
    x, ahead = x[is_other], (x - grad)[is_other]
    found: list[End] = []
    while len(x) and allowance >= LEAST_DESCENT:
        # Where Newton's step leads tells which of them would end in the same mode.
        chosen = latent.leaders(ahead)[: min(MAX_DESCENTS, allowance // LEAST_DESCENT)]
        ended, cost = _descended(latent, x[chosen], allowance)
        allowance -= cost
        new = [end for end in ended if end.is_other]
        found += [latent.end(end.point, end.arrived, end.is_over) for end in new]
        # What leads to an end that is known now is explained.
        is_left = np.ones(len(x), dtype=bool)
        is_left[chosen] = False
        for end in new:
            is_left &= ~latent.is_near(ahead, end.point.theta)
        x, ahead = x[is_left], ahead[is_left]
    return Looked(sorted(found, key=lambda end: end.energy), wide)


def _in_turn(
    first: Sequence[np.ndarray], second: Sequence[np.ndarray]
) -> list[np.ndarray]:
    """Rows of two tables, one of the first and one of the second."""
    places = np.arange(len(first[0])), np.arange(len(second[0])) + 0.5
    order = np.argsort(np.concatenate(places))
    return [np.concatenate(pair)[order] for pair in zip(first, second, strict=True)]


def _widened(
    rng: np.random.Generator,
    latent: Latent,
    transport: TransportMap,
    number: int,
    lowest: float,
) -> tuple[Wide, np.ndarray, np.ndarray]:
    """Points of the widened posterior, and where they and their gradients are latent.

    The latter of those alone that have an energy.

    lowest: latent energy of the search's ends.
    """
    dim = transport.dim
    widths = np.sort(np.resize(WIDTHS, number))
    free = np.setdiff1d(np.arange(dim), latent.held)
    x = rng.standard_normal((number, dim))
    sds = np.tile(widths[:, None], len(free))
    # Half of the points more in some directions: another mode is wide in its own.
    factors = rng.standard_normal(sds[1::2].shape)
    sds[1::2] *= np.exp(UNEVEN * factors - UNEVEN**2 / 2)
    x[:, free] *= sds
    if not number:
        return Wide(x, *np.zeros((3, 0))), x, x
    answer = latent.believable(x, lowest)
    theta, energy = latent.evaluated(x)
    energy = np.where(np.isfinite(answer.energy), energy, np.inf)
    with np.errstate(all="ignore"):
        log_det = transport.inverse_and_log_det(theta)[1]
    log_det = np.nan_to_num(log_det, nan=np.inf)
    # Of all normals together, whichever each point is from.
    logs = -0.5 * x[:, free] ** 2 @ (sds**-2).T - np.sum(np.log(sds), axis=1)
    log_density = logsumexp(logs, axis=1) - np.log(number) - log_det
    log_density -= 0.5 * np.sum(x[:, latent.held] ** 2, axis=1)
    log_density -= 0.5 * dim * np.log(2 * np.pi)
    known = np.isfinite(answer.energy)
    distance = np.sqrt(np.mean(x[:, free] ** 2, axis=1))
    wide = Wide(theta, energy, log_density, distance)
    return wide, x[known], answer.grad[known]


class _LatentEnd(NamedTuple):
    """Of a descent: where, how far it came, and whether in a mode that is not known."""

    point: Evaluated
    arrived: bool
    is_over: bool
    is_other: bool


def _descended(
    latent: Latent, starts: np.ndarray, allowance: int
) -> tuple[list[_LatentEnd], int]:
    """Ends of descents, and their cost."""
    descents = [Descent(start) for start in starts]

    def points_home(descent: Descent) -> bool:
        last = descent.path[-1]
        return bool(latent.is_home((last.theta - last.grad)[None])[0])

    def is_over(descent: Descent) -> bool:
        return bool(descent.path) and (points_home(descent) or has_ended(descent))

    num_each = min(LONGEST, allowance // len(descents))
    descend(descents, latent.evaluate, num_each, is_over)
    ends = []
    for descent in descents:
        if descent.path:
            last = descent.path[-1]
            is_home = points_home(descent) or bool(latent.is_home(last.theta[None])[0])
            rested = has_arrived(descent), has_ended(descent)
            ends.append(_LatentEnd(last, *rested, not is_home))
    return ends, sum(descent.num_asked for descent in descents)


def has_ended(descent: Descent) -> bool:
    """Whether a descent has come to rest, or gains nothing any more."""
    return has_arrived(descent) or is_finished(descent)


def _of_search(transport: TransportMap, modes: Modes) -> tuple[np.ndarray, np.ndarray]:
    """Latent ends of the search and gradients there, those of what is held left out."""
    with np.errstate(all="ignore"):
        x, grad = transport.pull_back(modes.ends, modes.grads)
    grad[:, [*transport.hubs, *modes.held]] = 0.0
    known = np.isfinite(x + grad).all(axis=1)
    return x[known], grad[known]


def _lowest(transport: TransportMap, modes: Modes) -> float:
    """Latent energy of the lowest end of the search, if there is one."""
    with np.errstate(all="ignore"):
        log_det = transport.inverse_and_log_det(modes.ends)[1]
        energies = modes.energies - log_det
    known = energies[np.isfinite(energies)]
    return float(np.min(known)) if len(known) else -np.inf


def has_barrier(
    evaluate: Evaluate, first: np.ndarray, second: np.ndarray, highest: float
) -> bool:
    """Whether the energy rises between two points: if not, a ridge joins them.

    highest: the energy of the higher one.
    """
    places = np.array(PLACES)[:, None]
    energy = evaluate((1 - places) * first + places * second, "look").energy
    return bool(np.max(energy) > highest + BARRIER)


def is_apart(
    evaluate: Evaluate, transport: TransportMap, theta: np.ndarray, energy: float
) -> bool:
    """Whether a point is separated from the known mode in latent coordinates too.

    A funnel's neck is not: there its volume grows as its energy falls.

    transport: map of the known mode.
    energy: at the point.
    """
    with np.errstate(all="ignore"):
        x = transport.inverse(theta[None])
        x = x * np.array([0.0, *PLACES, 1.0])[:, None]
        path = transport.forward(x)
        log_det = transport.inverse_and_log_det(path)[1]
    if not np.isfinite(path.sum() + log_det.sum()):
        return True
    between = evaluate(path[:-1], "look").energy
    heights = np.append(between, energy) - log_det
    return bool(np.max(heights[1:-1]) > max(heights[0], heights[-1]) + BARRIER)

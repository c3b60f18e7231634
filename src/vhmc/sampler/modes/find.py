"""Find the modes of a posterior: a map for each that holds a share of the mass."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from vhmc.evaluation.evaluator import EvaluationLog, Evaluator
from vhmc.numerics.gaussian import positive_definite
from vhmc.sampler.locate import Located, Modes
from vhmc.sampler.modes.latent import End
from vhmc.sampler.modes.look import Wide, has_barrier, is_apart, look
from vhmc.sampler.plan import Plan
from vhmc.sampler.race import ARRIVED
from vhmc.sampler.warm_up import warm_up
from vhmc.surrogate.training_set import AWAY
from vhmc.transport.affine import Affine, affine_from_precision
from vhmc.transport.transport_map import TransportMap

NEGLIGIBLE = 7.0
"""Nats of mass below the heaviest mode at which another one is left out."""
HIGHEST = 20.0
"""Nats of energy above the lowest end at which nothing is expected of an end, besides
two for every dimension."""
MAX_MODES = 12
MAX_REFUSED = 3
"""Ends that turned out to be no mode, after which no more are tried."""
POINTS = 0.7
"""Share of the evaluations of a look that are points of the widened posterior."""
FEWEST = 16
"""Points of a further look, at least."""
LEAST_ROUNDS = 6
"""Rounds of training that a mode needs at least."""
NEWTON_STEPS = 3
"""From an end to the mode, at most."""
DESCENTS = 10
"""Evaluations for descents without which no look is begun."""


class Found(NamedTuple):
    """Modes that hold mass, and ends of descents that are in none of them.

    transports: maps of modes that were not known.
    others: ends without a map: the budget did not suffice, or they were not reached.
    wide: points of the widened posterior.
    """

    transports: list[TransportMap]
    others: list[End]
    wide: list[Wide]


def find_modes(
    rng: np.random.Generator,
    evaluator: Evaluator,
    known: Sequence[TransportMap],
    modes: Modes,
    plan: Plan,
    allowance: int,
    share: float = POINTS,
    num_copies: int = 0,
    starts: Modes | None = None,
) -> Found:
    """Look from every mode that is found, until there is no new one.

    known: maps of the modes that are known.
    modes: ends of the search.
    allowance: evaluations, while nothing is found.
    share: of them for points of the widened posterior; without them only the ends of
        the search are followed.
    num_copies: of the modes that are known, the last of them: from there everything
        looks as from those that they are copies of.
    starts: points to descend from beside those, in the first look.
    """
    found, pending = [*known], [*known[: len(known) - num_copies]]
    others: list[End] = []
    wide: list[Wide] = []
    num_refused = 0
    number = int(share * allowance / len(pending))
    while pending:
        if len(found) == len(known):
            spare = min(evaluator.left - plan.correction, allowance)
        else:
            spare = _spare(evaluator, plan, len(found) - len(known))
        if spare < number + DESCENTS:
            break
        before = evaluator.left
        origin = pending.pop(0)
        looked = look(
            *(rng, evaluator, origin, modes),
            *([one for one in found if one is not origin], number),
            spare - number,
            starts,
        )
        starts = None
        allowance -= before - evaluator.left
        wide.append(looked.wide)
        for end in looked.ends:
            if _is_in(found, end) or _is_high(evaluator.log, end):
                continue
            new = None
            num_new = len(found) + 1 - len(known)
            is_open = len(found) < MAX_MODES and num_refused < MAX_REFUSED
            has_budget = is_affordable(evaluator, plan, num_new)
            if end.is_over and is_open and has_budget:
                new = _mapped(rng, evaluator, found, end, plan)
                if new is None:
                    num_refused += 1
                    continue
            if new is None:
                others.append(end)
            else:
                found.append(new)
                pending.append(new)
        # Modes farther on are seen from others too: fewer points do.
        number = max(number // 2, FEWEST) if number else 0
    others = [end for end in others if not _is_in(found, end)]
    return Found(found[len(known) :], others, wide)


def left_over(modes: Modes, known: Sequence[TransportMap], found: Found) -> Modes:
    """Ends of the search and of looks that are in no mode but, maybe, the first.

    known: maps of all modes.
    """
    others = known[1:]
    ends = [
        End(*row, is_over=bool(row[-1]))
        for row in zip(
            modes.ends, modes.energies, modes.grads, modes.arrived, strict=True
        )
    ]
    ends = [end for end in ends if not _is_in(others, end)] + found.others
    if not ends:
        return modes._replace(
            ends=modes.ends[:0],
            energies=modes.energies[:0],
            grads=modes.grads[:0],
            arrived=modes.arrived[:0],
        )
    theta, energy, grad, arrived, _ = zip(*ends, strict=True)
    return modes._replace(
        ends=np.stack(theta),
        energies=np.array(energy),
        grads=np.stack(grad),
        arrived=np.array(arrived),
    )


def is_affordable(evaluator: Evaluator, plan: Plan, number: int) -> bool:
    """Whether one more mode can be mapped, so that there are so many new ones."""
    return _spare(evaluator, plan, number) > plan.hessian + plan.warm_up // 2


def _spare(evaluator: Evaluator, plan: Plan, number: int) -> int:
    """Evaluations beyond what new modes need at least.

    number: of them.
    """
    least = LEAST_ROUNDS * plan.chains * number
    return evaluator.left - plan.check - plan.correction - least


def _mapped(
    rng: np.random.Generator,
    evaluator: Evaluator,
    found: list[TransportMap],
    end: End,
    plan: Plan,
) -> TransportMap | None:
    """A map of another mode; None if it is no other one, or has next to no mass."""
    evaluate = evaluator.evaluate
    layer = None
    if not is_apart(evaluate, found[0], end.theta, end.energy):
        return None
    if plan.hessian:
        rested = rest(evaluator, end, found[0].hubs)
        if rested is None or _is_in(found, rested.end):
            return None
        end, layer = rested
    center = found[0].forward(np.zeros((1, found[0].dim)))[0]
    heights = evaluate(center[None], "look").energy[0]
    if not has_barrier(evaluate, end.theta, center, max(end.energy, heights)):
        return None
    layer = _as_wide(found[0], end) if layer is None else layer
    modes = Modes(
        end.theta[None],
        np.array([end.energy]),
        end.grad[None],
        np.array([True]),
        has_mode=True,
    )
    located = Located(layer, [], modes)
    layer = warm_up(rng, evaluate, located, plan.warm_up // 2, plan.chains)
    transport = TransportMap((layer,))
    masses = [log_mass(evaluator.log, one) for one in (*found, transport)]
    return None if masses[-1] < max(masses) - NEGLIGIBLE else transport


class Rested(NamedTuple):
    """An end that is a mode, and the Gaussian there."""

    end: End
    layer: Affine


def rest(evaluator: Evaluator, end: End, held: Sequence[int]) -> Rested | None:
    """Newton's steps to a mode close by, by the Hessian at an end; None if it is none.

    The end of a descent that has stalled on a ridge is none: there the energy curves
    upwards, but Newton's step is long.

    held: coordinates that do not count.
    """
    matrix = evaluator.hessian(end.theta, "hessian")
    free = np.setdiff1d(np.arange(len(matrix)), held)
    inner = matrix[np.ix_(free, free)]
    if not np.isfinite(matrix).all() or np.linalg.eigvalsh(inner).min() <= 0:
        return None
    for _ in range(NEWTON_STEPS):
        step = np.linalg.solve(inner, end.grad[free])
        if step @ end.grad[free] < ARRIVED * len(free):
            precision, _ = positive_definite(matrix)
            return Rested(end, affine_from_precision(end.theta, precision))
        theta = end.theta.copy()
        theta[free] -= step
        answer = evaluator.evaluate(theta[None], "look")
        if not answer.energy[0] < end.energy:
            return None
        end = End(theta, float(answer.energy[0]), answer.grad[0], True)
    return None


def _as_wide(known: TransportMap, end: End) -> Affine:
    """A Gaussian around an end, as wide as the mode that is known."""
    draws = known.forward(np.random.default_rng(0).standard_normal((200, known.dim)))
    return Affine(end.theta, np.diag(np.std(draws, axis=0)))


def log_mass(log: EvaluationLog, transport: TransportMap) -> float:
    """Logarithm of the mass around a map, up to that of the normal's constant."""
    usable = log.is_finite & ~np.isin(log.phase, AWAY)
    with np.errstate(all="ignore"):
        x, log_det = transport.inverse_and_log_det(log.theta[usable])
        square = np.sum(x**2, axis=1)
        weights = 0.5 * square + log_det - log.energy[usable]
    dim = transport.dim
    near = weights[square < dim + 4 * np.sqrt(2 * dim)]
    return float(np.median(near)) if len(near) else -np.inf


def _is_in(found: Sequence[TransportMap], end: End) -> bool:
    """Whether an end is in a mode that has a map."""
    return is_within(found, end.theta)


def is_within(found: Sequence[TransportMap], theta: np.ndarray) -> bool:
    """Whether a point is in a mode that has a map."""
    for transport in found:
        with np.errstate(all="ignore"):
            x = transport.inverse(theta[None])[0]
        if np.linalg.norm(np.delete(x, transport.hubs)) < 4 + np.sqrt(len(x)):
            return True
    return False


def _is_high(log: EvaluationLog, end: End) -> bool:
    """Whether an end is too high to hold any mass."""
    lowest = np.min(log.energy[log.is_finite])
    return bool(end.energy > lowest + HIGHEST + 2 * len(end.theta))

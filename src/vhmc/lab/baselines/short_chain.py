"""NUTS on few gradients: one chain with the longest warm-up that half of them pay."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from vhmc.evaluation.target import Target
from vhmc.lab.baselines.nuts import NUTS, random_starts

LADDER = (25, 50, 100, 200, 400, 800)
"""Steps of warm-up that are tried, the shortest first."""
SHARE = 0.5
"""Of the gradients, for the warm-up."""
DEPTH = 4
"""Doublings of a trajectory: 15 gradients. The usual ten may spend all on one draw."""


class Path(NamedTuple):
    """One chain from its first step of warm-up.

    points: where each step ended, as rows.
    costs: gradients after each step, from the first on.
    """

    points: np.ndarray
    costs: np.ndarray


Walk = Callable[[Target, np.ndarray, int, int, int], Path]
"""Takes a target, a start, a seed, the steps of warm-up, and gradients.

It ends when these are spent, or shortly after; the warm-up may be cut off, too.
"""


def short_chain(walk: Walk, target: Target, seed: int, budget: int) -> NUTS | None:
    """Draws of one chain within a budget; none if its start has no finite density.

    Only the chosen warm-up is charged, not the shorter ones and the longer one that
    were tried for the choice, which is in favour of NUTS. Where even the shortest takes
    more than its share, steps of the warm-up after that are draws, too. A step that
    would exceed the budget is no draw, but what was left is spent on it.
    """
    before = target.num_evaluations
    starts = random_starts(target, seed, 1)
    if starts is None:
        return None
    used = target.num_evaluations - before
    allowed = (budget - used) // target.price
    warmup, path = _longest(walk, target, starts[0], seed, allowed)
    points, costs = path
    is_draw = (np.arange(len(costs)) >= warmup) | (costs > SHARE * allowed)
    draws = points[is_draw & (costs <= allowed)]
    num_evaluations = used + target.price * min(int(costs[-1]), allowed)
    target.charge(before + num_evaluations - target.num_evaluations)
    return NUTS(draws[None], num_evaluations)


def _longest(
    walk: Walk, target: Target, start: np.ndarray, seed: int, allowed: int
) -> tuple[int, Path]:
    """The longest warm-up within its share, else the shortest, and its chain."""
    warmup = LADDER[0]
    path = walk(target, start, seed, warmup, allowed)
    for longer in LADDER[1:]:
        if not _is_within(path, warmup, allowed):
            break
        other = walk(target, start, seed, longer, allowed)
        if not _is_within(other, longer, allowed):
            break
        warmup, path = longer, other
    return warmup, path


def _is_within(path: Path, warmup: int, allowed: int) -> bool:
    """Whether the warm-up was finished, and took no more than its share."""
    costs = path.costs[warmup - 1 :]
    return len(costs) > 0 and bool(costs[0] <= SHARE * allowed)

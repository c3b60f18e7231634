"""Say what is wrong with a gradient, and in which parameters."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from vhmc.evaluation.evaluator import Evaluate
from vhmc.sampler.descents import Evaluated
from vhmc.sampler.soundness.secant import TOLERANCE, Secant, move

SHARE = 1e-3
"""Error of a parameter, over the largest one, that counts as an error."""
SAME = 0.02
"""Relative difference of two ratios that are the same."""
GROSS = 0.1
"""Relative error at which a gradient is of no use for a search."""
LONG, LONGEST = (1.0, 0.25), 1e6
"""Changes of the energy on long steps, in nats, and how much longer they may be. The
error of truncation, which may cancel another one, is not the same on two of them."""
ROUGH = 0.5
"""Relative error of long steps over that of a short one, below which it is noise."""
MOST_NAMED = 4
"""Parameters that are named one by one."""


class Group(NamedTuple):
    """Parameters that were moved together, and what was seen.

    members: their places.
    step: of all coordinates.
    secant: the step's.
    """

    members: np.ndarray
    step: np.ndarray
    secant: Secant

    @property
    def ratio(self) -> float:
        """Change of the energy over the predicted one."""
        if self.secant.predicted == 0:
            return float("inf")
        return self.secant.change / self.secant.predicted


class Fault(NamedTuple):
    """What is wrong with a gradient.

    sentence: names the parameters and the ratios seen.
    is_gross: whether no search could use it.
    worst: the step that is explained worst; None where none was made.
    """

    sentence: str
    is_gross: bool
    worst: Group | None = None


def find_fault(
    evaluate: Evaluate,
    base: Evaluated,
    step: np.ndarray,
    labels: Sequence[str],
    most: int,
    sd: float = 0.0,
) -> Fault | None:
    """Move parameters one at a time, or in groups where they are too many.

    step: along which the gradient is wrong.
    most: evaluations.
    sd: of the noise in energies.
    """
    dim = len(base.theta)
    parts = np.array_split(np.arange(dim), min(dim, max(most, 1)))
    if most < 1:
        return None
    steps = np.zeros((len(parts), dim))
    for row, members in enumerate(parts):
        steps[row, members] = step[members]
    found = move(evaluate, base, steps, sd)
    groups = [
        Group(members, moved, seen)
        for members, moved, seen in zip(parts, steps, found, strict=True)
        if seen is not None
    ]
    if not groups:
        return None
    worst = max(abs(group.secant.error) for group in groups)
    wrong = [
        group
        for group in groups
        if not group.secant.is_right and abs(group.secant.error) > SHARE * worst
    ]
    if not wrong:
        return None
    sentence = _everywhere(wrong, groups)
    if sentence is None and len(groups) == dim:
        sentence = _permuted(wrong, groups, base, labels)
    if sentence is None:
        sentence = _one_by_one(wrong, base, labels)
    sizes = [max(abs(one.secant.change), abs(one.secant.predicted)) for one in groups]
    total = max(sum(sizes), 1e-300)
    error = sum(abs(one.secant.error) for one in wrong)
    largest = max(wrong, key=lambda group: abs(group.secant.relative))
    is_gross = abs(largest.secant.relative) > GROSS and error > TOLERANCE * total
    return Fault(sentence, is_gross, largest)


def is_rough(evaluate: Evaluate, base: Evaluated, worst: Group) -> bool:
    """Whether a gradient that is wrong on a short step is right on long ones.

    Then energies or gradients are rough, as those of a solver with a loose tolerance.

    worst: the short step; the longest one changes the energy by about a nat.
    """
    predicted = abs(worst.secant.predicted)
    if not predicted > 0:
        return False
    longer = [min(long / predicted, LONGEST) for long in LONG]
    seen = move(evaluate, base, np.outer(longer, worst.step))
    most = ROUGH * abs(worst.secant.relative)
    return all(one is not None and abs(one.relative) < most for one in seen)


def _everywhere(wrong: list[Group], groups: list[Group]) -> str | None:
    """One factor for all parameters."""
    ratios = np.array([group.ratio for group in wrong])
    ratio = float(np.median(ratios))
    if len(wrong) < max(len(groups), 2) or not np.isfinite(ratios).all():
        return None
    if np.any(np.abs(ratios - ratio) > SAME * abs(ratio)):
        return None
    if abs(ratio + 1) < SAME:
        return (
            "the gradient has the wrong sign in all parameters: it is that of the "
            "energy, or of minus the log density"
        )
    return (
        "the gradient is off by one factor in all parameters: the log density changes "
        f"{ratio:.4g} times as much as the gradient says"
    )


def _permuted(
    wrong: list[Group], groups: list[Group], base: Evaluated, labels: Sequence[str]
) -> str | None:
    """Entries of the gradient that are those of other parameters.

    groups: of one parameter each.
    """
    places = np.array([group.members[0] for group in groups])
    slopes = np.array([one.secant.change / one.step[one.members[0]] for one in groups])
    if len(wrong) < 2 or not slopes.all():
        return None
    gaps = np.abs(base.grad[places] - slopes[:, None]) / np.abs(slopes)[:, None]
    rows, columns = linear_sum_assignment(gaps)
    if np.any(gaps[rows, columns] > SAME):
        return None
    pairs = [
        f"that of {labels[places[row]]} is given for {labels[places[column]]}"
        for row, column in zip(rows, columns, strict=True)
        if row != column
    ]
    more = f"; and {len(pairs) - MOST_NAMED} more" if len(pairs) > MOST_NAMED else ""
    said = ", ".join(pairs[:MOST_NAMED])
    return f"entries of the gradient are permuted: {said}{more}" if pairs else None


def _one_by_one(wrong: list[Group], base: Evaluated, labels: Sequence[str]) -> str:
    """Each parameter with what was seen."""
    wrong = sorted(wrong, key=lambda group: -abs(group.secant.error))
    said = [_said(group, base, labels) for group in wrong[:MOST_NAMED]]
    return f"the gradient is wrong: {'; '.join(said)}{_more(wrong)}"


def _said(group: Group, base: Evaluated, labels: Sequence[str]) -> str:
    names = [labels[place] for place in group.members]
    name = names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"
    change, predicted = group.secant.change, group.secant.predicted
    if not base.grad[group.members].any():
        return f"for {name} it is zero, but the log density depends on it"
    if abs(group.ratio + 1) < SAME:
        return f"for {name} it has the wrong sign"
    text = f"for {name} the log density changes {group.ratio:.4g} times as much"
    if len(names) == 1:
        slope = change / float(group.step[group.members[0]])
        given = predicted / float(group.step[group.members[0]])
        text += f" (its slope is {-slope:.5g}, the gradient says {-given:.5g})"
        if abs(abs(slope - given) - 1) < SAME:
            text += "; a difference of one suggests a log-Jacobian that is left out"
    return text


def _more(found: Sequence[object]) -> str:
    number = len(found) - MOST_NAMED
    return f"; and {number} more" if number > 0 else ""

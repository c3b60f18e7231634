"""Say in words where the density of a posterior is zero."""

from collections.abc import Container, Sequence

import numpy as np

from vhmc.sampler.walls.wall import Wall

NEGLIGIBLE = 1e-3
"""Weights of a normal, over the largest, that a sentence leaves out."""


def sentences(
    walls: Sequence[Wall], labels: Sequence[str], constrained: Container[int]
) -> list[str]:
    """What a user should know of walls, a sentence for each parameter that has some.

    labels: of the parameters.
    constrained: parameters that are seen through a constraint already.
    """
    by_axis = [wall for wall in walls if wall.axis is not None]
    axes = sorted({wall.axis for wall in by_axis if wall.axis is not None})
    said = []
    for axis in axes:
        own = [wall for wall in by_axis if wall.axis == axis]
        low = max((w.bound for w in own if w.normal[axis] > 0), default=-np.inf)
        high = min((-w.bound for w in own if w.normal[axis] < 0), default=np.inf)
        said.append(_of_parameter(labels[axis], low, high, axis in constrained))
    return said + [_of_plane(w, labels) for w in walls if w.axis is None]


def _of_parameter(label: str, low: float, high: float, is_constrained: bool) -> str:
    below = f"{label} < {low:.6g}" if np.isfinite(low) else ""
    above = f"{label} > {high:.6g}" if np.isfinite(high) else ""
    text = f"the density is zero for {' and '.join(filter(None, [below, above]))}"
    if is_constrained:
        return f"{text} (unconstrained)"
    if below and above:
        return f"{text}, as vhmc.interval({low:.6g}, {high:.6g}) would declare"
    return f"{text}, as vhmc.positive would declare" if low == 0 else text


def _of_plane(wall: Wall, labels: Sequence[str]) -> str:
    largest = np.abs(wall.normal).max()
    parts = [
        f"{weight:+.3g} {label}"
        for weight, label in zip(wall.normal / largest, labels, strict=True)
        if abs(weight) > NEGLIGIBLE
    ]
    text = " ".join(parts).replace("+1 ", "+ ").replace("-1 ", "- ").strip("+ ")
    return f"the density is zero for {text} < {wall.bound / largest:.4g}"

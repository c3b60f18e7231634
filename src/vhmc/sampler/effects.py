r"""Find normal effects of a model: groups of parameters with a scale each.

Where $U$ has the term $\frac12 b e^{-p c} (r_k - m)^2$ for each member $k$ of a group,
and no other term of the member has the scale $c$, a step $h$ of $c$ changes
$\partial U / \partial r_k$ by $b (e^{-p (c + h)} - e^{-p c}) (r_k - m)$: linear in the
member, with one slope for all. The slopes of a step up and of the step before it have
the ratio $e^{-p h}$.
"""

from typing import NamedTuple

import numpy as np

from vhmc.evaluation.evaluator import Evaluate
from vhmc.transport.graph import Graph

STEP = 0.5
"""Of the scale, up and down."""
UNEXPLAINED = 1e-4
"""Share of the variance that a line may leave where the effects are normal."""
POWERS = -2.0, -1.0, 1.0, 2.0
"""Of a scale in a precision, with the sign changed: 2 for a standard deviation."""
ROUNDED = 0.01
"""How far the measured power may be from one of these."""
FEWEST = 4
"""Members of a group."""


class Effects(NamedTuple):
    r"""A group of parameters that are normal around a location given their scale.

    scale: coordinate of $c$.
    members: coordinates of the group.
    location: coordinate of $m$; None if it is a constant.
    center: the constant $m$, if it is one.
    power: $p$.
    level: $b$.
    """

    scale: int
    members: np.ndarray
    location: int | None
    center: float
    power: float
    level: float

    def width(self, c: np.ndarray) -> np.ndarray:
        """Standard deviations of the group, one for each value of the scale."""
        return np.exp(self.power * c / 2) / np.sqrt(self.level)


def find_effects(
    rng: np.random.Generator, evaluate: Evaluate, origin: np.ndarray, graph: Graph
) -> tuple[Effects, ...]:
    """The groups of all scales of a graph that have normal effects.

    Costs two evaluations a scale and one more, around a random point near the origin.
    """
    scales = list(graph.scales)
    if not scales:
        return ()
    theta = origin + rng.uniform(-1.0, 1.0, len(origin))
    moves = STEP * np.eye(len(origin))[scales]
    points = np.concatenate([theta[None], theta + moves, theta - moves])
    grad = evaluate(points, "search").grad
    up, down = np.split(grad[1:], 2)
    rows = zip(scales, up - grad[0], grad[0] - down, strict=True)
    found = [_effects(theta, one, above, below, graph) for one, above, below in rows]
    return tuple(one for one in found if one is not None)


def _effects(
    theta: np.ndarray, scale: int, above: np.ndarray, below: np.ndarray, graph: Graph
) -> Effects | None:
    """The group of one scale.

    above, below: changes of the gradient by a step from `theta`, and by one to it.
    """
    near = _neighbours(graph, scale)
    single = {*graph.scales, *graph.scalars}
    members = np.array([k for k in near if k not in single], dtype=int)
    if len(members) < FEWEST or not np.isfinite(above + below).all():
        return None
    r, y = theta[members], above[members]
    slope, shift = np.polyfit(r, y, 1)
    before = np.polyfit(r, below[members], 1)[0]
    if (
        np.var(y - slope * r - shift) > UNEXPLAINED * np.var(y)
        or not slope * before > 0
    ):
        return None
    measured = np.log(before / slope) / STEP
    power = min(POWERS, key=lambda one: abs(one - measured))
    level = slope * np.exp(power * theta[scale]) / np.expm1(-power * STEP)
    if abs(power - measured) > ROUNDED or not level > 0:
        return None
    center = -shift / slope
    for node in set(near) & set(graph.scalars) - set(graph.scales):
        is_linked = np.isin(members, _neighbours(graph, node)).all()
        if is_linked and np.isclose(theta[node], center, atol=1e-3):
            return Effects(scale, members, int(node), 0.0, power, float(level))
    return Effects(scale, members, None, float(center), power, float(level))


def _neighbours(graph: Graph, node: int) -> np.ndarray:
    edges = graph.edges
    near = edges.indices[edges.indptr[node] : edges.indptr[node + 1]]
    return near[near != node]


class NonCentred(NamedTuple):
    """Coordinates in which the effects are standard normal but for the data.

    groups: of effects; all other coordinates stay.
    """

    groups: tuple[Effects, ...]

    def forward(self, u: np.ndarray) -> np.ndarray:
        """Parameters, one point a row."""
        theta = u.copy()
        for one in self.groups:
            width = one.width(u[:, [one.scale]])
            theta[:, one.members] = self._location(one, u) + width * u[:, one.members]
        return theta

    def inverse(self, theta: np.ndarray) -> np.ndarray:
        """Non-centred coordinates of parameters."""
        u = theta.copy()
        for one in self.groups:
            width = one.width(theta[:, [one.scale]])
            shifted = theta[:, one.members] - self._location(one, theta)
            u[:, one.members] = shifted / width
        return u

    def log_det(self, u: np.ndarray) -> np.ndarray:
        """Log determinants of the map to the parameters."""
        total = np.zeros(len(u))
        for one in self.groups:
            total += len(one.members) * np.log(one.width(u[:, one.scale]))
        return total

    def pull_back(self, u: np.ndarray, grad: np.ndarray) -> np.ndarray:
        """Gradients of the energy of these coordinates from those of the parameters."""
        pulled = grad.copy()
        for one in self.groups:
            own = grad[:, one.members] * one.width(u[:, [one.scale]])
            slope = np.sum(own * u[:, one.members], axis=1) - len(one.members)
            pulled[:, one.members] = own
            pulled[:, one.scale] += one.power / 2 * slope
            if one.location is not None:
                pulled[:, one.location] += grad[:, one.members].sum(axis=1)
        return pulled

    def _location(self, one: Effects, rows: np.ndarray) -> np.ndarray | float:
        return one.center if one.location is None else rows[:, [one.location]]

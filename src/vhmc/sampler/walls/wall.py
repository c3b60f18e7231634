r"""Walls of a posterior, and the layer in whose coordinates there are none."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vhmc.transport.walls import Walls

PARALLEL = 1e-9
"""Squared sine of the angle of two walls below which they are opposite each other."""
LEAST_ANGLE = 1e-3
"""Volume that unit normals must span to be taken as independent."""


@dataclass(frozen=True, eq=False)
class Wall:
    r"""The density is zero where $n \cdot \theta < b$.

    normal: $n$, a unit vector that points to the side with a density.
    bound: $b$, rather too low than too high.
    """

    normal: np.ndarray
    bound: float

    @property
    def axis(self) -> int | None:
        """The only coordinate that counts, if it is one alone."""
        places = np.flatnonzero(self.normal)
        return int(places[0]) if len(places) == 1 else None

    def is_beyond(self, thetas: np.ndarray) -> np.ndarray:
        """Which points have no density because of it."""
        return thetas @ self.normal <= self.bound


def beyond(walls: Sequence[Wall], thetas: np.ndarray) -> np.ndarray:
    """Which points have no density because of any wall."""
    found = np.zeros(len(thetas), dtype=bool)
    for wall in walls:
        found |= wall.is_beyond(thetas)
    return found


def layer_of(
    walls: Sequence[Wall], scales: np.ndarray, inside: np.ndarray
) -> Walls | None:
    """The layer of walls whose normals are independent, as many as there are.

    scales: of the parameters, in whose units angles are measured.
    inside: a point with a density.
    """
    dim = len(scales)
    matrix, low, high = np.eye(dim), np.full(dim, -np.inf), np.full(dim, np.inf)
    taken: list[int] = []
    # Walls of one parameter keep their place; the others take what is left.
    for wall in sorted(walls, key=lambda wall: wall.axis is None):
        row, is_reversed = _opposite(wall, matrix, taken)
        if row is None:
            row = _place(wall, matrix, taken, scales)
            if row is None:
                continue
            is_reversed = wall.axis is not None and wall.normal[row] < 0
            matrix[row] = -wall.normal if is_reversed else wall.normal
            taken.append(row)
        if is_reversed:
            high[row] = min(high[row], -wall.bound)
        else:
            low[row] = max(low[row], wall.bound)
    if not taken:
        return None
    distance = matrix @ inside
    ends = np.minimum(distance - low, high - distance)
    scale = np.where(np.isfinite(ends) & (ends > 0), ends, 1.0)
    return Walls(matrix, low, high, scale)


def scaled(layer: Walls, scale: np.ndarray) -> Walls:
    """The same walls, with other widths of the density next to them."""
    return Walls(layer.matrix, layer.low, layer.high, scale)


def _opposite(
    wall: Wall, matrix: np.ndarray, taken: Sequence[int]
) -> tuple[int | None, bool]:
    """The place of a wall that is parallel, and whether it faces this one."""
    for row in taken:
        cosine = matrix[row] @ wall.normal
        if 1 - cosine**2 < PARALLEL:
            return row, bool(cosine < 0)
    return None, False


def _place(
    wall: Wall, matrix: np.ndarray, taken: Sequence[int], scales: np.ndarray
) -> int | None:
    """The coordinate that a wall replaces; None if its normal depends on others."""
    weights = np.abs(wall.normal * scales)
    weights[list(taken)] = 0.0
    row = int(np.argmax(weights))
    if not weights[row] > 0:
        return None
    trial = matrix.copy()
    trial[row] = wall.normal
    units = trial * scales
    units /= np.linalg.norm(units, axis=1, keepdims=True)
    return row if abs(np.linalg.det(units)) > LEAST_ANGLE else None

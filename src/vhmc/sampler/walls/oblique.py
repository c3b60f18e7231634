r"""Walls that are planes, in any direction.

With $c$ a point that has a density, a plane is $a \cdot (\theta - c) = 1$: the inverse
of the distance to it is linear in the direction that one looks in. So the ends of the
density in $d + 1$ directions determine $a$, with one to spare, in any units.
"""

from collections.abc import Callable

import numpy as np

from vhmc.sampler.walls.probe import Probe, halve, simplest
from vhmc.sampler.walls.wall import Wall

HALVINGS = 16
ASIDE = 0.5
"""Of the way to the wall, by which one looks aside."""
REACH = 2.0
"""Of the way to the wall, at which there should be no density aside of it either."""
FLAT = 1e-3
"""Residual of the plane through all ends, over the distance, at which it is one."""
TOLERANCE = 2.0**-7
"""Distance from the plane, over that to it, at which it is tried elsewhere."""
MARGIN = 2.0**-12
"""By which the plane is moved outwards, over the distance to it."""
BESIDE = 1e-8
"""The same for a plane of round numbers, which is exact or none."""
DIGITS, ROUNDING = 2, 1e-3
"""Decimals of its weights, and by how much its end may be off."""
NUM_TRIALS, LEAST = 4, 2
"""Places at which the plane is tried, and those that must confirm it."""


def plane(
    rng: np.random.Generator,
    probe: Probe,
    inside: np.ndarray,
    outside: np.ndarray,
    scales: np.ndarray,
) -> Wall | None:
    """The plane that separates two points; None if what does is none.

    inside, outside: points with and without a density.
    scales: of the parameters.
    """
    way = (outside - inside) / scales
    dim = len(way)
    # A part of the ends would tell nothing.
    probe.require((dim + 1) * HALVINGS + dim)

    def is_inside(x: np.ndarray) -> np.ndarray:
        return probe(inside + x * scales)

    unit = np.array([[0.0, 1.0]])
    start, ray = inside[None], (way * scales)[None]
    first = halve(probe, start, ray, unit, HALVINGS).mean()
    way = way * first
    length = ASIDE * np.linalg.norm(way) / np.sqrt(dim)
    rays = way + length * np.eye(dim)
    is_turned = is_inside(REACH * rays)
    rays[is_turned] = (way - length * np.eye(dim))[is_turned]
    if is_turned.any() and is_inside(REACH * rays[is_turned]).any():
        return None
    ends = np.tile([0.0, REACH], (dim, 1))
    reached = halve(probe, inside, rays * scales, ends, HALVINGS).mean(axis=1)
    points = np.vstack([way, rays * reached[:, None]])
    slope, *_ = np.linalg.lstsq(points, np.ones(dim + 1), rcond=None)
    if np.abs(points @ slope - 1).max() > FLAT:
        return None
    if not _is_confirmed(rng, is_inside, way, slope, TOLERANCE):
        return None
    normal = -slope / scales
    bound = normal @ inside - 1
    plain, end = _rounded(normal, bound)
    # What remains of the way to the plane of round numbers is exactly one.
    depth = plain @ inside - end
    trial = -plain * scales / depth
    if depth > 0 and _is_confirmed(rng, is_inside, way, trial, BESIDE):
        normal, bound = plain, end
    else:
        bound -= MARGIN
    size = np.linalg.norm(normal)
    return Wall(normal / size, float(bound / size))


def _is_confirmed(
    rng: np.random.Generator,
    is_inside: Callable[[np.ndarray], np.ndarray],
    way: np.ndarray,
    slope: np.ndarray,
    tolerance: float,
) -> bool:
    """Whether the density ends at the plane elsewhere, too.

    tolerance: distance from the plane at which that is tried, over that to it.
    """
    aside = rng.standard_normal((NUM_TRIALS, len(way)))
    aside *= ASIDE * np.linalg.norm(way) / np.linalg.norm(aside, axis=1, keepdims=True)
    places = way + aside
    places += (1 - places @ slope)[:, None] * slope / (slope @ slope)
    near, far = (places * (1 + side * tolerance) for side in (-1, 1))
    has_near, has_far = is_inside(near), is_inside(far)
    return bool(not has_far.any() and has_near.sum() >= LEAST)


def _rounded(normal: np.ndarray, bound: float) -> tuple[np.ndarray, float]:
    """The same plane in round numbers, as a programmer may have written it."""
    largest = np.abs(normal).max()
    weights, end = np.round(normal / largest, DIGITS), bound / largest
    return weights, simplest(end - ROUNDING, end + ROUNDING)

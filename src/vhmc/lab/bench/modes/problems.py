"""The posteriors by name."""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm

from vhmc.lab.bench.modes.labels import all_unknown, known_widths
from vhmc.lab.bench.modes.problem import Normals, Peaks
from vhmc.lab.bench.problem import Draws, Model

SEVEN_THREE = np.array([0.7, 0.3])


def two_modes(dim: int) -> Peaks:
    """Two normals ten standard deviations apart, 0.7 and 0.3 of the mass."""
    means = np.zeros((2, dim))
    means[1] = 10 / np.sqrt(dim)
    return Normals(means, np.ones((2, dim)), SEVEN_THREE).peaks()


def different_shapes(dim: int) -> Peaks:
    """Two normals with other widths in other directions."""
    means = np.zeros((2, dim))
    means[1] = 12 * np.cos(np.arange(dim)) / np.linalg.norm(np.cos(np.arange(dim)))
    sds = np.stack([np.linspace(0.5, 2.0, dim), np.linspace(1.5, 0.4, dim)])
    return Normals(means, sds, SEVEN_THREE).peaks()


def three_modes(dim: int) -> Peaks:
    """Three normals at the corners of a triangle."""
    means = np.zeros((3, dim))
    means[1, 0], means[2, :2] = 12.0, (6.0, 11.0)
    weights = np.array([0.5, 0.35, 0.15])
    return Normals(means, np.ones((3, dim)), weights).peaks()


def six_modes(dim: int) -> Peaks:
    """Six normals on a circle."""
    angle = 2 * np.pi * np.arange(6) / 6
    means = np.zeros((6, dim))
    means[:, 0], means[:, 1] = 9 * np.cos(angle), 9 * np.sin(angle)
    weights = np.array([0.3, 0.2, 0.15, 0.15, 0.1, 0.1])
    return Normals(means, np.ones((6, dim)), weights).peaks()


def narrow_beside_wide(dim: int) -> Peaks:
    """A normal of a third of the width, six sd of the wide one from it."""
    means = np.zeros((2, dim))
    means[1, 0] = 6.0
    sds = np.ones((2, dim))
    sds[1] = 1 / 3
    return Normals(means, sds, SEVEN_THREE).peaks()


def spike_and_slab(dim: int) -> Peaks:
    """Half of the mass in a normal twenty times as wide as the other."""
    sds = np.ones((2, dim))
    sds[1] = 20.0
    return Normals(np.zeros((2, dim)), sds, np.full(2, 0.5)).peaks()


def close_modes(dim: int) -> Peaks:
    """Two normals four standard deviations apart, with mass between them."""
    means = np.zeros((2, dim))
    means[1, 0] = 4.0
    return Normals(means, np.ones((2, dim)), SEVEN_THREE).peaks()


RADIUS, WIDTH = 5.0, 0.5


def ring() -> Peaks:
    """A ring, which is one mode; its halves count as two here."""

    def log_density(theta):
        return norm.logpdf(jnp.hypot(theta[0], theta[1]), RADIUS, WIDTH)

    def label(draws: Draws) -> np.ndarray:
        return (draws["theta"][..., 0] > 0).astype(int)

    # The density of the radius is that of the normal times the radius.
    square = RADIUS**2 + 3 * WIDTH**2
    sd = np.full(2, np.sqrt(square / 2))
    model = Model(log_density, np.array([RADIUS, 1.0]))
    return Peaks(model, label, np.full(2, 0.5), np.zeros(2), sd)


PEAKS: dict[str, Callable[[], Peaks]] = {
    "two-2": lambda: two_modes(2),
    "two-5": lambda: two_modes(5),
    "two-20": lambda: two_modes(20),
    "shapes-3": lambda: different_shapes(3),
    "shapes-10": lambda: different_shapes(10),
    "three-2": lambda: three_modes(2),
    "three-10": lambda: three_modes(10),
    "six-2": lambda: six_modes(2),
    "six-5": lambda: six_modes(5),
    "narrow-2": lambda: narrow_beside_wide(2),
    "narrow-5": lambda: narrow_beside_wide(5),
    "slab-3": lambda: spike_and_slab(3),
    "slab-10": lambda: spike_and_slab(10),
    "close-2": lambda: close_modes(2),
    "close-10": lambda: close_modes(10),
    "labels-2": lambda: known_widths(np.array([-3.0, 3.0])),
    "labels-3": lambda: known_widths(np.array([-5.0, 0.0, 4.0])),
    "labels-unknown-2": lambda: all_unknown(
        np.array([-3.0, 3.0]), np.array([1.0, 1.5]), np.array([60, 40])
    ),
    "ring": ring,
}
"""The posteriors of the benchmark."""

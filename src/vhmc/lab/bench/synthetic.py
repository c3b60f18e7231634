"""Densities whose moments are known exactly."""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from vhmc.lab.bench.problem import Model, Problem

CURVATURE = 0.03
WIDTH = 10.0


def banana(dim: int) -> Problem:
    r"""Twisted Gaussian (Haario et al., 1999); standard normal beyond two dimensions.

    $x_1 \sim N(0, w^2)$ and $x_2 \mid x_1 \sim N(b (x_1^2 - w^2), 1)$, so that $x_2$
    has mean 0 and variance $1 + 2 b^2 w^4$.
    """

    def log_density(theta):
        centre = CURVATURE * (theta[0] ** 2 - WIDTH**2)
        first = (theta[0] / WIDTH) ** 2 + (theta[1] - centre) ** 2
        return -0.5 * (first + jnp.sum(theta[2:] ** 2))

    sd = np.ones(dim)
    sd[:2] = WIDTH, np.sqrt(1 + 2 * CURVATURE**2 * WIDTH**4)
    return _problem(f"banana-{dim}", log_density, sd)


def student_t(dim: int = 10, freedom: float = 5.0) -> Problem:
    r"""Student t with AR(1) correlations of 0.5 and scales from 0.1 to 10.

    Its standard deviations are the scales times $\sqrt{\nu / (\nu - 2)}$.
    """
    scales = np.geomspace(0.1, 10.0, dim)
    places = np.arange(dim)
    correlation = 0.5 ** np.abs(places[:, None] - places[None, :])
    precision = np.linalg.inv(correlation * np.outer(scales, scales))

    def log_density(theta):
        return -0.5 * (freedom + dim) * jnp.log1p(theta @ precision @ theta / freedom)

    sd = scales * np.sqrt(freedom / (freedom - 2))
    return _problem(f"student-t-{dim}", log_density, sd)


def gaussian(dim: int = 50, condition: float = 1e4) -> Problem:
    """Gaussian with random axes, variances spaced evenly on a log scale around 1."""
    axes, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((dim, dim)))
    variances = np.geomspace(condition**-0.5, condition**0.5, dim)
    precision = (axes / variances) @ axes.T
    sd = np.sqrt(axes**2 @ variances)

    def log_density(theta):
        return -0.5 * theta @ precision @ theta

    return _problem(f"gaussian-{dim}", log_density, sd)


def _problem(
    name: str, log_density: Callable[[Array], Array], sd: np.ndarray
) -> Problem:
    """All of these have mean zero and start from a vector of ones."""
    model = Model(log_density, np.ones(len(sd)))
    mean = np.zeros(len(sd))
    return Problem(name, model.make, model.quantities, model.names(), mean, sd)

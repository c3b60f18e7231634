"""Densities of awkward shapes, each of which can be drawn from directly."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jax.scipy.stats import gamma, norm

from vhmc.lab.bench.problem import Model, logs
from vhmc.numerics.constraints import positive, simplex


def funnel() -> Model:
    r"""Neal's funnel, $v \sim N(0, 3^2)$ and nine $x_i \sim N(0, e^v)$."""

    def log_density(theta):
        v, x = theta[0], theta[1:]
        return norm.logpdf(v, 0, 3) + jnp.sum(norm.logpdf(x, 0, jnp.exp(v / 2)))

    def report(d):
        return {"v": d["theta"][..., 0], "asinh_x": np.arcsinh(d["theta"][..., 1:])}

    return Model(log_density, np.ones(10), report=report)


class TwoNormals(NamedTuple):
    """Components with a row of means and standard deviations each."""

    means: np.ndarray
    sds: np.ndarray
    weights: np.ndarray


FAR_MODES = TwoNormals(
    np.array([[-4.0, 0.0], [4.0, 0.0]]), np.ones((2, 2)), np.array([0.7, 0.3])
)

NEAR_MODES = TwoNormals(
    np.array([[-0.9] * 5, [0.9] * 5]),
    np.array([[1.0, 1.0, 1.0, 0.5, 0.5], [0.7, 0.7, 1.0, 1.0, 1.0]]),
    np.array([0.6, 0.4]),
)


def two_modes(mixture: TwoNormals) -> Model:
    """Mixture of two normals, started from between them."""

    def log_density(theta):
        parts = jnp.sum(norm.logpdf(theta, mixture.means, mixture.sds), axis=1)
        return logsumexp(parts + jnp.log(mixture.weights))

    return Model(log_density, np.zeros(mixture.means.shape[1]))


def ring() -> Model:
    """A ring of radius 3 and width 0.3 in the plane."""

    def log_density(theta):
        return norm.logpdf(jnp.sqrt(jnp.sum(theta**2)), 3, 0.3)

    def report(d):
        x, y = d["theta"][..., 0], d["theta"][..., 1]
        return {"x": x, "y": y, "radius": np.hypot(x, y), "xy": x * y}

    return Model(log_density, np.array([2.0, 1.0]), report=report)


GAMMA_SHAPES = np.array([0.3, 1.0, 4.0])
INVERSE_SHAPES = np.array([1.5, 5.0])


def gamma_scales() -> Model:
    """Gamma and inverse-gamma variables, skewed on the log scale."""

    def log_density(p):
        direct = jnp.sum(gamma.logpdf(p["rate"], GAMMA_SHAPES))
        inverse = gamma.logpdf(1 / p["variance"], INVERSE_SHAPES)
        return direct + jnp.sum(inverse - 2 * jnp.log(p["variance"]))

    init = {"rate": np.ones(3), "variance": np.ones(2)}
    return Model(log_density, init, dict.fromkeys(init, positive), logs("variance"))


HEAVY_SCALES = np.array([1.0, 0.5, 2.0, 1.0, 5.0])
HEAVY_CORRELATION = 0.7


def heavy_tails() -> Model:
    """Student t of two degrees of freedom: no variance, so asinh is reported."""
    scatter = equicorrelated(HEAVY_SCALES, HEAVY_CORRELATION)
    precision = np.linalg.inv(scatter)

    def log_density(theta):
        return -0.5 * (2 + 5) * jnp.log1p(theta @ precision @ theta / 2)

    return Model(
        log_density,
        np.ones(5),
        report=lambda d: {"asinh_theta": np.arcsinh(d["theta"] / HEAVY_SCALES)},
    )


SIMPLEX_COUNTS = np.array([0.0, 1.0, 3.0, 10.0, 30.0, 56.0])


def dirichlet() -> Model:
    """Probabilities of six kinds from 100 counts, one never seen; prior of 1/2 each."""

    def log_density(p):
        return jnp.sum((SIMPLEX_COUNTS - 0.5) * jnp.log(p["share"]))

    return Model(log_density, {"share": np.full(6, 1 / 6)}, {"share": simplex})


TRUNCATED_SCALES = np.array([1.0, 0.5, 2.0, 1.0])
TRUNCATED_CORRELATION = 0.5
TRUNCATED_NORMAL = np.array([1.0, 1.0, 0.5, -0.5])
TRUNCATED_EDGE = 0.5


def truncated_gaussian() -> Model:
    """Normal in four dimensions, cut by a plane; its centre is on the side cut off."""
    cov = equicorrelated(TRUNCATED_SCALES, TRUNCATED_CORRELATION)
    precision = np.linalg.inv(cov)

    def log_density(theta):
        is_inside = theta @ TRUNCATED_NORMAL > TRUNCATED_EDGE
        return jnp.where(is_inside, -0.5 * theta @ precision @ theta, -jnp.inf)

    return Model(log_density, np.ones(4))


def rosenbrock() -> Model:
    """Rosenbrock's valley with coefficients 1 and 20."""

    def log_density(theta):
        x, y = theta
        return -((1 - x) ** 2) - 20 * (y - x**2) ** 2

    return Model(log_density, np.array([-1.0, 1.0]))


def equicorrelated(scales: np.ndarray, correlation: float) -> np.ndarray:
    """Covariance matrix with one correlation throughout."""
    eye = np.eye(len(scales))
    return np.outer(scales, scales) * (correlation + (1 - correlation) * eye)

r"""The variational methods of the paper: fixed-form regression and probit VBEM.

Fixed form (Salimans and Knowles, 2013): the Gaussian closest to the posterior in KL
divergence solves a linear regression of the log density on $(1, \theta, \theta
\theta^\top)$ under itself. With gradients and Hessians the regression needs no
inversion of its own.

VBEM for probit regression (Ormerod and Wand, 2010): auxiliary variables
$z_n \sim \mathcal N(\theta^\top x_n, 1)$ with $y_n = [z_n > 0]$ make both
conditionals tractable; the approximation $q(\theta) q(z)$ then ignores that
$\theta$ and $z$ depend on each other, which makes it too narrow and slow to converge.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float
from scipy.special import log_ndtr

from vhmc._types import PRNGKey, Vector
from vhmc.lab.baselines.sgld import LogLikelihood, LogPrior, draw_batches
from vhmc.numerics.gaussian import Gaussian, gaussian


class FixedForm(NamedTuple):
    """A Gaussian, and the number of data rows evaluated to find it."""

    mean: np.ndarray
    covariance: np.ndarray
    num_rows: int


def regression(
    thetas: Float[Array, "n d"], log_densities: Float[Array, " n"]
) -> Gaussian:
    r"""Eq. lr: the Gaussian that linear regression of the log density gives.

    $\tilde\eta = E[\tilde T^\top \tilde T]^{-1} E[\tilde T^\top \log p]$ with means
    over the points, which should be draws of the approximation itself: it is the
    fixed point of this map.

    thetas: at least $(d + 1) (d + 2) / 2$ points.
    """
    number, dim = thetas.shape
    rows, columns = np.tril_indices(dim)
    if number < 1 + dim + len(rows):
        raise ValueError(
            f"{number} points cannot determine the {1 + dim + len(rows)} coefficients "
            f"of a Gaussian in {dim} dimensions"
        )
    # Standardised: monomials of raw parameters would be nearly collinear.
    center, scale = thetas.mean(axis=0), thetas.std(axis=0)
    x = (thetas - center) / scale
    statistics = jnp.concatenate(
        [jnp.ones((number, 1)), x, x[:, rows] * x[:, columns]], axis=1
    )
    solution = jnp.linalg.lstsq(statistics, log_densities)[0]
    linear, quadratic = solution[1 : 1 + dim], solution[1 + dim :]
    precision = jnp.zeros((dim, dim)).at[rows, columns].add(-quadratic)
    precision = precision + precision.T
    mean = center + scale * jnp.linalg.solve(precision, linear)
    return gaussian(mean, precision / jnp.outer(scale, scale))


def fixed_form(
    key: PRNGKey,
    log_prior: LogPrior,
    log_likelihood: LogLikelihood,
    rows: tuple[np.ndarray, ...],
    initial: tuple[Vector, Float[Array, "d d"]],
    num_iterations: int,
    batch_size: int,
) -> FixedForm:
    """Algorithm of Salimans and Knowles with Hessian and minibatches (FF-Minibatch).

    Every iteration draws one parameter and one minibatch; the learning rate is one
    over the root of the number of iterations, and the second half is averaged.

    initial: mean and covariance at the start, usually the prior's.
    """
    if num_iterations < 2:
        raise ValueError(f"num_iterations must be at least 2, got {num_iterations}")
    key_batches, key_draws = jax.random.split(key)
    seed = int(jax.random.randint(key_batches, (), 0, 2**31 - 1))
    rng = np.random.default_rng(seed)
    batches = draw_batches(rng, len(rows[0]), batch_size, num_iterations)
    arrays = tuple(jnp.asarray(part) for part in rows)
    mean, covariance = _iterate(
        key_draws, log_prior, log_likelihood, arrays, initial, jnp.asarray(batches)
    )
    number = num_iterations * batch_size
    return FixedForm(np.asarray(mean), np.asarray(covariance), number)


class _Sums(NamedTuple):
    """Exponentially weighted expectations of the regression."""

    precision: Float[Array, "d d"]
    grad: Vector
    theta: Vector

    @property
    def mean(self) -> Vector:
        return self.theta + jnp.linalg.solve(self.precision, self.grad)


@partial(jax.jit, static_argnums=(1, 2))
def _iterate(key, log_prior, log_likelihood, rows, initial, batches):
    num_iterations, batch_size = batches.shape
    rate = num_iterations**-0.5
    scale = rows[0].shape[0] / batch_size

    def estimate(theta, batch):
        chosen = tuple(part[batch] for part in rows)

        def log_density(theta):
            return log_prior(theta) + scale * log_likelihood(theta, chosen)

        return jax.grad(log_density)(theta), jax.hessian(log_density)(theta)

    def step(carry, inputs):
        sums, total = carry
        count, batch = inputs
        lower = jnp.linalg.cholesky(sums.precision)
        white = jax.random.normal(jax.random.fold_in(key, count), sums.theta.shape)
        theta = sums.mean + solve_triangular(lower, white, lower=True, trans=1)
        grad, hessian = estimate(theta, batch)
        seen = _Sums(-hessian, grad, theta)
        new = jax.tree.map(lambda old, now: (1 - rate) * old + rate * now, sums, seen)
        is_late = count >= num_iterations // 2
        total = jax.tree.map(lambda all_, one: all_ + is_late * one, total, new)
        return (new, total), None

    mean, covariance = initial
    sums = _Sums(jnp.linalg.inv(covariance), jnp.zeros_like(mean), mean)
    zero = jax.tree.map(jnp.zeros_like, sums)
    inputs = jnp.arange(num_iterations), batches
    (_, total), _ = jax.lax.scan(step, (sums, zero), inputs)
    number = num_iterations - num_iterations // 2
    average = _Sums(*(part / number for part in total))
    return average.mean, jnp.linalg.inv(average.precision)


class VBEM(NamedTuple):
    """The Gaussian of the parameters after every iteration.

    means: one row per iteration, the start first.
    covariance: the same throughout.
    """

    means: np.ndarray
    covariance: np.ndarray


def probit_vbem(
    x: np.ndarray, y: np.ndarray, prior_variance: float, num_iterations: int
) -> VBEM:
    """Iterate from the prior's mean; each iteration is one pass over the data."""
    dim = x.shape[1]
    covariance = np.linalg.inv(x.T @ x + np.eye(dim) / prior_variance)
    sign = 2 * y - 1
    mean = np.zeros(dim)
    means = [mean]
    for _ in range(num_iterations):
        predicted = x @ mean
        log_density = -0.5 * predicted**2 - 0.5 * np.log(2 * np.pi)
        hazard = np.exp(log_density - log_ndtr(sign * predicted))
        mean = covariance @ (x.T @ (predicted + sign * hazard))
        means.append(mean)
    return VBEM(np.array(means), covariance)

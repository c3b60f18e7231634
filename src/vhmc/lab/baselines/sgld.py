r"""Stochastic gradient Langevin dynamics (Welling and Teh, 2011).

$$\theta \leftarrow \theta + \frac{\epsilon_t}2 \Bigl(\nabla \log p(\theta)
  + \frac Nn \sum_{i \in \text{batch}} \nabla \log p(x_i \mid \theta)\Bigr)
  + \sqrt{\epsilon_t} \, \eta, \qquad \eta \sim \mathcal N(0, I),$$

without an accept step. Not BlackJAX's, whose preconditioner may not depend on the
position, as the natural gradient does.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from vhmc._types import PRNGKey, Scalar, Vector

LogPrior = Callable[[Vector], Scalar]
LogLikelihood = Callable[[Vector, Any], Scalar]
Preconditioner = Callable[[Vector, Vector, Vector], tuple[Vector, Vector]]
"""From position, gradient and noise to drift and noise."""


class Constant(eqx.Module):
    """A constant step size."""

    step_size: float

    def __call__(self, count: Scalar) -> Scalar:
        return jnp.full_like(count, self.step_size)


class Annealed(eqx.Module):
    r"""Polynomial decay $a (b + t)^{-\delta}$."""

    a: float
    b: float
    delta: float

    def __call__(self, count: Scalar) -> Scalar:
        return self.a * (self.b + count) ** -self.delta


def plain(theta: Vector, grad: Vector, noise: Vector) -> tuple[Vector, Vector]:
    """No preconditioner."""
    return grad, noise


def natural_gradient(
    theta: Vector, grad: Vector, noise: Vector
) -> tuple[Vector, Vector]:
    r"""Amari's natural gradient of an unmixing matrix, $\nabla W^\top W$.

    The noise is $\eta W$, whose covariance is the same metric, and the drift has the
    term $(d + 1) W$, the metric's divergence, without which another law would be
    sampled.
    """
    dim = round(theta.size**0.5)
    matrix = theta.reshape(dim, dim)
    drift = grad.reshape(dim, dim) @ matrix.T @ matrix + (dim + 1) * matrix
    return drift.ravel(), (noise.reshape(dim, dim) @ matrix).ravel()


class SGLDState(NamedTuple):
    """Position and number of steps made."""

    theta: Vector
    num_steps: Scalar


class SGLD(eqx.Module):
    """A chain with all of its settings.

    log_prior, log_likelihood, rows: the model; the likelihood sums over given rows.
    batch_size: rows of a minibatch, drawn without replacement in each epoch.
    schedule: step size by iteration.
    precondition: `natural_gradient` for unmixing matrices.
    thin: steps per draw that is kept.
    """

    log_prior: LogPrior = eqx.field(static=True)
    log_likelihood: LogLikelihood = eqx.field(static=True)
    rows: tuple[jax.Array, ...]
    batch_size: int = eqx.field(static=True)
    schedule: Constant | Annealed
    precondition: Preconditioner = eqx.field(static=True, default=plain)
    thin: int = eqx.field(static=True, default=1)

    def init(self, theta: np.ndarray | Vector) -> SGLDState:
        """The state at `theta`."""
        return SGLDState(jnp.asarray(theta, dtype=float), jnp.zeros(()))

    def advance(
        self, rng: np.random.Generator, state: SGLDState, num_draws: int
    ) -> tuple[SGLDState, np.ndarray]:
        """The next draws, one per row."""
        num_rows, number = len(self.rows[0]), num_draws * self.thin
        batches = draw_batches(rng, num_rows, self.batch_size, number)
        key = jax.random.key(int(rng.integers(2**31)))
        blocks = jnp.asarray(batches.reshape(num_draws, self.thin, -1))
        state, draws = _run(self, key, state, blocks)
        return state, np.asarray(draws)

    @property
    def passes_per_draw(self) -> float:
        """Passes over the data that one draw costs."""
        return self.thin * self.batch_size / len(self.rows[0])


@eqx.filter_jit
def _run(chain: SGLD, key: PRNGKey, state: SGLDState, batches: jax.Array):
    scale = len(chain.rows[0]) / chain.batch_size

    def log_density(theta, rows):
        return chain.log_prior(theta) + scale * chain.log_likelihood(theta, rows)

    def step(state, batch):
        rows = tuple(part[batch] for part in chain.rows)
        grad = jax.grad(log_density)(state.theta, rows)
        step_key = jax.random.fold_in(key, state.num_steps.astype(int))
        noise = jax.random.normal(step_key, state.theta.shape)
        drift, noise = chain.precondition(state.theta, grad, noise)
        size = chain.schedule(state.num_steps)
        theta = state.theta + 0.5 * size * drift + jnp.sqrt(size) * noise
        return SGLDState(theta, state.num_steps + 1), None

    def draw(state, some):
        state, _ = jax.lax.scan(step, state, some)
        return state, state.theta

    return jax.lax.scan(draw, state, batches)


def draw_batches(
    rng: np.random.Generator, num_rows: int, batch_size: int, number: int
) -> np.ndarray:
    """Indices of minibatches without replacement, one batch per row.

    Within an epoch each observation is used at most once; those that do not fill a
    batch are left out, different ones in each epoch.
    """
    if not 1 <= batch_size <= num_rows:
        raise ValueError(
            f"batch_size must be between 1 and the {num_rows} rows, got {batch_size}"
        )
    per_epoch = num_rows // batch_size
    epochs = -(-number // per_epoch)
    used = per_epoch * batch_size
    orders = [rng.permutation(num_rows)[:used] for _ in range(epochs)]
    return np.concatenate(orders).reshape(-1, batch_size)[:number]

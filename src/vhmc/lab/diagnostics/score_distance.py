r"""The score-matching distance $\tilde D_{SM}$ of a surrogate from the posterior."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from vhmc._types import Points, Potential, Scalar


def empirical(potential: Potential, thetas: Points, grads: Points) -> float:
    r"""$\frac12$ mean of $|\nabla z(\theta_n) - \nabla U(\theta_n)|^2$ over pairs.

    For draws of the surrogate's own distribution this estimates $\tilde D_{SM}$
    (eq. smdist); for the training pairs it is the loss of eq. sm a point, less the
    penalty.
    """
    return expected(potential, thetas, grads, jnp.full(len(thetas), 1 / len(thetas)))


def expected(
    potential: Potential, points: Points, grads: Points, shares: Float[Array, " n"]
) -> float:
    r"""$\frac12 \sum_n q_n |\nabla z(\theta_n) - \nabla U(\theta_n)|^2$ by quadrature.

    shares: probabilities $q_n$ that the surrogate's distribution gives to the points.
    """
    return float(_weighted(potential, points, grads, shares))


@eqx.filter_jit
def _weighted(
    potential: Potential, points: Points, grads: Points, shares: Float[Array, " n"]
) -> Scalar:
    errors = jax.lax.map(jax.grad(potential), points, batch_size=4096) - grads
    # A point without probability may have no finite gradient.
    squared = jnp.where(shares > 0, jnp.sum(errors**2, axis=1), 0.0)
    return 0.5 * jnp.sum(shares * squared)

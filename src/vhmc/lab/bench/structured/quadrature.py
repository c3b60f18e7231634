r"""Exact moments of a posterior that is Gaussian given a few scales.

With $u$ the logs of the scales and $x$ the other parameters, $\log p(x, u)$ is
quadratic in $x$: its Hessian gives the conditional precision $P$, its gradient the
conditional mean $m$, and

$$\log p(u) = \log p(m, u) - \tfrac12 \log \det P + \mathrm{const}.$$

Moments are those of the mixture of these Gaussians over a lattice in $u$. The
trapezoidal rule converges faster than any power of the spacing, as $p(u)$ is smooth
and vanishes at both ends. A scale so small that rounding makes the precision
indefinite has the density zero; it is below a ten-millionth of the others.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jax.scipy.linalg import cho_solve
from jaxtyping import Array
from scipy.optimize import minimize

from vhmc.lab.bench.problem import Model

DROP = 25.0
"""The lattice ends where the log density is this far below its maximum."""
OFFSET = 0.05
"""Of the differences that give the curvature at the mode, in log scale."""
SEARCH = {"xatol": 1e-2, "fatol": 1e-3}
"""The mode is where the lattice begins: it need not be exact."""


class Moments(NamedTuple):
    """Means and sds in the order of `model.names()`, and the points they took."""

    mean: np.ndarray
    sd: np.ndarray
    num_nodes: int


class Conditional(NamedTuple):
    """The Gaussian given the scales, and the log density of the log scales."""

    log_density: Array
    mean: Array
    variance: Array


def scale_mixture(model: Model, scales: Sequence[str], spacing: float) -> Moments:
    """Mix conditional Gaussians over a lattice of log scales.

    model: has positive parameters `scales`, and reports its parameters as they are.
    spacing: of the lattice, in conditional standard deviations at the mode.
    """
    rest = {name: value for name, value in model.init.items() if name not in scales}
    start, unravel = ravel_pytree(jax.tree.map(jnp.asarray, rest))
    given = jax.jit(_conditional(model, scales, start * 1.0, unravel))

    def log_density(logs):
        return float(given(jnp.asarray(logs)).log_density)

    steps, origin = _lattice(log_density, np.zeros(len(scales)), spacing)

    def at(place):
        return given(jnp.asarray(origin + steps * np.array(place)))

    places, nodes = _grow(at, len(scales))
    log_densities, means, variances = map(np.stack, zip(*nodes, strict=True))
    weights = np.exp(log_densities - log_densities.max())
    weights /= weights.sum()
    values = np.exp(origin + steps * np.array(places)).T

    def quantities(x, scale_values):
        parts = jax.vmap(unravel)(x) | dict(zip(scales, scale_values, strict=True))
        # JAX sorts names, and a report keeps the order of what it is given.
        return model.quantities({name: np.asarray(parts[name]) for name in model.init})

    means, variances = quantities(means, values), quantities(variances, 0 * values)
    mean = weights @ means
    sd = np.sqrt(weights @ (variances + (means - mean) ** 2))
    return Moments(mean, sd, len(places))


def _conditional(
    model: Model, scales: Sequence[str], start: Array, unravel: Callable
) -> Callable[[Array], Conditional]:
    def conditional(logs):
        values = dict(zip(scales, jnp.exp(logs), strict=True))

        def log_density(x):
            # The sum is the log Jacobian of the exponential.
            return model.log_density(unravel(x) | values) + jnp.sum(logs)

        chol = jnp.linalg.cholesky(-jax.hessian(log_density)(start))
        covariance = cho_solve((chol, True), jnp.eye(len(start)))
        mean = start + cho_solve((chol, True), jax.grad(log_density)(start))
        volume = -jnp.sum(jnp.log(jnp.diagonal(chol)))
        marginal = log_density(mean) + volume
        marginal = jnp.where(jnp.isfinite(marginal), marginal, -jnp.inf)
        return Conditional(marginal, mean, jnp.diagonal(covariance))

    return conditional


def _lattice(
    log_density: Callable[[np.ndarray], float], start: np.ndarray, spacing: float
) -> tuple[np.ndarray, np.ndarray]:
    """Spacing along each axis, and the mode."""
    unit = np.eye(len(start))
    simplex = {"initial_simplex": np.stack([start, *(start + unit)])}
    found = minimize(
        lambda u: -log_density(u), start, method="Nelder-Mead", options=SEARCH | simplex
    )
    sides = OFFSET * unit
    ends = [log_density(found.x + e) + log_density(found.x - e) for e in sides]
    curvatures = -(np.array(ends) + 2 * found.fun) / OFFSET**2
    return spacing / np.sqrt(curvatures), found.x


def _grow(
    evaluate: Callable[[tuple[int, ...]], Conditional], dim: int
) -> tuple[list[tuple[int, ...]], list[Conditional]]:
    """Points of the lattice, from the origin outwards as long as they matter."""
    origin = (0,) * dim
    waiting, seen, nodes = [origin], {origin}, {}
    highest = -np.inf
    while waiting:
        place = waiting.pop()
        node = evaluate(place)
        highest = max(highest, float(node.log_density))
        if node.log_density < highest - DROP:
            continue
        nodes[place] = node
        for axis in range(dim):
            for side in (-1, 1):
                near = (*place[:axis], place[axis] + side, *place[axis + 1 :])
                if near not in seen:
                    seen.add(near)
                    waiting.append(near)
    return list(nodes), list(nodes.values())

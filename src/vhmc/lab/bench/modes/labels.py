"""Mixture models whose components may change their labels."""

from collections.abc import Callable
from itertools import permutations
from math import factorial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jax.scipy.stats import norm
from jaxtyping import Array

from vhmc.lab.bench.modes.problem import Peaks
from vhmc.lab.bench.problem import Draws, Model
from vhmc.numerics.constraints import positive, simplex

PROPOSED = 200_000
"""Points of the importance sample that the moments come from."""
TAILS = 5.0
"""Degrees of freedom of the proposal."""


def known_widths(centres: np.ndarray) -> Peaks:
    """Locations of components of equal weight and width one, from 40 data of each."""
    data = _data(centres, np.ones(len(centres)), np.full(len(centres), 40))
    number = len(centres)

    def log_density(p: dict[str, Array]) -> Array:
        parts = norm.logpdf(data[:, None], p["location"])
        prior = jnp.sum(norm.logpdf(p["location"], 0.0, 10.0))
        return prior + jnp.sum(logsumexp(parts, axis=1) - jnp.log(number))

    model = Model(log_density, {"location": np.linspace(-1.0, 1.0, number)})
    return _peaks(model, {"location": centres})


def all_unknown(centres: np.ndarray, widths: np.ndarray, counts: np.ndarray) -> Peaks:
    """Locations, widths and weights of all components."""
    data = _data(centres, widths, counts)
    number = len(centres)

    def log_density(p: dict[str, Array]) -> Array:
        parts = norm.logpdf(data[:, None], p["location"], p["width"])
        prior = jnp.sum(norm.logpdf(p["location"], 0.0, 10.0))
        prior += jnp.sum(norm.logpdf(jnp.log(p["width"])) - jnp.log(p["width"]))
        prior += jnp.sum(jnp.log(p["weight"]))  # Dirichlet of exponents two
        return prior + jnp.sum(logsumexp(parts + jnp.log(p["weight"]), axis=1))

    init = {
        "location": np.linspace(-1.0, 1.0, number),
        "width": np.ones(number),
        "weight": np.full(number, 1 / number),
    }
    constraints: dict[str, Any] = {"width": positive, "weight": simplex}
    model = Model(log_density, init, constraints)
    near = {"location": centres, "width": widths, "weight": counts / counts.sum()}
    return _peaks(model, near)


def _data(centres: np.ndarray, widths: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Evenly spread quantiles of every component, so that there is nothing to seed."""
    parts = []
    for centre, width, count in zip(centres, widths, counts, strict=True):
        levels = (np.arange(count) + 0.5) / count
        parts.append(centre + width * np.asarray(norm.ppf(levels)))
    return np.concatenate(parts)


def _label(draws: Draws) -> np.ndarray:
    """The number of the permutation that sorts the locations."""
    order = np.argsort(draws["location"], axis=-1)
    size = order.shape[-1]
    places = {one: i for i, one in enumerate(permutations(range(size)))}
    return np.array([places[tuple(row)] for row in order.reshape(-1, size)])


def _peaks(model: Model, near: Draws) -> Peaks:
    """All orders of the labels have the same mass; moments are those of one order.

    near: a point in one of the modes.
    """
    values = _moments_of_one(model, near)
    number = factorial(len(near["location"]))
    return Peaks(model, _label, np.full(number, 1 / number), *values)


def _moments_of_one(model: Model, near: Draws) -> tuple[np.ndarray, np.ndarray]:
    """Mean and sd over all labels, by importance sampling of one mode of them.

    Laplace's Gaussian with heavier tails is the proposal.
    """
    target = model.make()
    energy: Callable[[Array], Array] | None = target.traced_energy
    assert energy is not None
    theta = jnp.asarray(target.parameters.flatten(near))
    gradient, curvature = jax.jit(jax.grad(energy)), jax.jit(jax.hessian(energy))
    for _ in range(30):
        theta = theta - jnp.linalg.solve(curvature(theta), gradient(theta))
    factor = np.linalg.inv(np.linalg.cholesky(np.asarray(curvature(theta)))).T
    rng = np.random.default_rng(0)
    dim = len(theta)
    z = rng.standard_normal((PROPOSED, dim))
    z /= np.sqrt(rng.chisquare(TAILS, (PROPOSED, 1)) / TAILS)
    points = np.asarray(theta) + z @ factor.T
    log_proposal = -0.5 * (TAILS + dim) * np.log1p(np.sum(z**2, axis=1) / TAILS)
    energies = jax.lax.map(energy, jnp.asarray(points), batch_size=1000)
    log_weights = -np.asarray(energies) - log_proposal
    weights = np.exp(log_weights - log_weights.max())
    draws = target.parameters.constrain(points)
    is_one = _label(draws) == _label({name: v[None] for name, v in near.items()})
    weights = weights * is_one / np.sum(weights * is_one)
    # By symmetry each entry has the law of all entries together.
    mean, square = [], []
    for value in draws.values():
        first, second = weights @ value, weights @ value**2
        mean += [np.full(value.shape[1], first.mean())]
        square += [np.full(value.shape[1], second.mean())]
    means, squares = np.concatenate(mean), np.concatenate(square)
    return means, np.sqrt(squares - means**2)

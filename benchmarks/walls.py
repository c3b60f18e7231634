"""Densities that end at walls, written without constraints, against exact draws.

For each shape: the worst error of a mean, in sd, and the worst relative error of an sd,
over the seeds; verdicts; evaluations, and those of them that looked for walls.

Run: python benchmarks/walls.py [--seeds 5] [--budget 1000] [name ...]
"""

import argparse
import warnings
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import beta, gamma

import vhmc

NUM_EXACT = 400_000
NORMAL = np.array([1.0, 1.0, 0.5, -0.5])
CORRELATED = 0.5 * np.ones((4, 4)) + 0.5 * np.eye(4)
PRECISION = np.linalg.inv(CORRELATED)
WALL = np.array([-8.123, 3.7])


class Shape(NamedTuple):
    """A log density where it is finite, where that is, and exact draws of it."""

    start: np.ndarray
    log_density: Callable
    inside: Callable
    draw: Callable


def gaussian(x):
    """Standard normal, without its constant."""
    return -0.5 * jnp.sum(x**2)


def unit(x):
    """Whether a point is in the unit cube."""
    return jnp.all((x > 0) & (x < 1))


def normals(rng, dim, cov=None):
    """Draws of a normal with mean zero."""
    draws = rng.standard_normal((4 * NUM_EXACT, dim))
    return draws if cov is None else draws @ np.linalg.cholesky(cov).T


def kept(draws, is_inside):
    """Draws that are inside."""
    return draws[is_inside(draws)]


def box(dim):
    """Uniform in the unit cube."""
    return Shape(
        np.full(dim, 0.5),
        lambda x: 0.0 * x[0],
        unit,
        lambda rng: rng.uniform(size=(NUM_EXACT, dim)),
    )


SHAPES = {
    "half-normal": Shape(
        np.ones(1), gaussian, lambda x: x[0] > 0, lambda rng: abs(normals(rng, 1))
    ),
    "exponential": Shape(
        np.ones(1),
        lambda x: -x[0],
        lambda x: x[0] > 0,
        lambda rng: rng.exponential(size=(NUM_EXACT, 1)),
    ),
    "box-2": box(2),
    "box-5": box(5),
    "oblique-4": Shape(
        np.ones(4),
        lambda x: -0.5 * x @ PRECISION @ x,
        lambda x: x @ NORMAL > 0.5,
        lambda rng: kept(normals(rng, 4, CORRELATED), lambda x: x @ NORMAL > 0.5),
    ),
    "corner-4": Shape(
        np.ones(4),
        lambda x: -0.5 * x @ PRECISION @ x,
        lambda x: jnp.all(x > 0),
        lambda rng: kept(normals(rng, 4, CORRELATED), lambda x: (x > 0).all(axis=1)),
    ),
    "far-3": Shape(
        np.zeros(3),
        lambda x: gaussian(x - 5),
        lambda x: x[0] > -1.5,
        lambda rng: normals(rng, 3) + 5,
    ),
    "no-round-number": Shape(
        np.full(2, -7.0),
        lambda x: gaussian(2 * (x + 8)),
        lambda x: (x[0] > WALL[0]) & (x[1] < WALL[1]),
        lambda rng: kept(normals(rng, 2) / 2 - 8, lambda x: x[:, 0] > WALL[0]),
    ),
    "beta": Shape(
        np.full(1, 0.5),
        lambda x: beta.logpdf(x[0], 0.5, 0.5),
        unit,
        lambda rng: rng.beta(0.5, 0.5, size=(NUM_EXACT, 1)),
    ),
    "gamma": Shape(
        np.ones(1),
        lambda x: gamma.logpdf(x[0], 0.5),
        lambda x: x[0] > 0,
        lambda rng: rng.gamma(0.5, size=(NUM_EXACT, 1)),
    ),
    "disc": Shape(
        np.zeros(2),
        gaussian,
        lambda x: x @ x < 4,
        lambda rng: kept(normals(rng, 2), lambda x: np.sum(x**2, axis=1) < 4),
    ),
}


def measured(name, seeds, budget):
    """Errors, verdicts and costs of one shape."""
    shape = SHAPES[name]
    exact = shape.draw(np.random.default_rng(1))
    mean, sd = exact.mean(axis=0), exact.std(axis=0)

    def log_density(x):
        return jnp.where(shape.inside(x), shape.log_density(x), -jnp.inf)

    errors, words, costs = [], Counter(), []
    for seed in range(seeds):
        target = vhmc.from_jax(log_density, shape.start)
        posterior = vhmc.sample(target, budget, seed=seed, progress=False)
        draws = posterior.unconstrained.reshape(-1, len(mean))
        mean_error = np.abs((draws.mean(axis=0) - mean) / sd).max()
        errors.append((mean_error, np.abs(draws.std(axis=0) / sd - 1).max()))
        words[posterior.verdict.status] += 1
        costs.append((posterior.num_evaluations, posterior.costs.get("walls", 0)))
    worst, (low, high) = np.max(errors, axis=0), np.array(costs).T
    spans = [f"{part.min()} to {part.max()}" for part in (low, high)]
    verdicts = ", ".join(f"{word} {count}" for word, count in words.items())
    print(f"| {name} | {worst[0]:.3f} | {worst[1]:.3f} | {verdicts} | ", end="")
    print(f"{spans[0]} | {spans[1]} |", flush=True)


def main():
    """Measure the shapes that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=[])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--budget", type=int, default=1000)
    options = parser.parse_args()
    print("| shape | mean error | sd error | verdicts | evaluations | of these |")
    print("| --- | --: | --: | --- | --: | --: |")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of bad verdicts, which are a column
        for name in options.names or SHAPES:
            measured(name, options.seeds, options.budget)


if __name__ == "__main__":
    main()

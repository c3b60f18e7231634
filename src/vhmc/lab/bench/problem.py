"""Posteriors with known moments, errors of draws, and densities for models."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln, xlogy
from jax.scipy.stats import norm
from jaxtyping import Array

from vhmc.evaluation.target import Target
from vhmc.models.from_jax import from_jax
from vhmc.numerics.constraints import AbstractConstraint

Draws = dict[str, np.ndarray]


class Model(NamedTuple):
    """A log density with its parameters, and what is reported of them.

    report: maps named draws to named quantities, both of any leading shape.
    """

    log_density: Callable[[Any], Array]
    init: Any
    constraints: Mapping[str, AbstractConstraint] = {}
    report: Callable[[Draws], Draws] = dict

    def make(self) -> Target:
        """A fresh target, so that its count of evaluations starts at zero."""
        return from_jax(self.log_density, self.init, self.constraints)

    def quantities(self, draws: Draws) -> np.ndarray:
        """What is reported of named draws of any leading shape, along a last axis."""
        name, shape = next((k, v.shape) for k, v in self._start().items())
        values = np.asarray(draws[name])
        leading = values.shape[: values.ndim - len(shape)]
        parts = self.report(draws).values()
        return np.concatenate([np.reshape(p, (*leading, -1)) for p in parts], axis=-1)

    def names(self) -> tuple[str, ...]:
        """Names in the order of `quantities`, entries of an array counted from one."""
        names: list[str] = []
        for name, value in self.report(self._start()).items():
            entries = [f"{name}[{i + 1}]" for i in range(np.size(value))]
            names += entries if np.ndim(value) else [name]
        return tuple(names)

    def _start(self) -> Draws:
        init = self.init if isinstance(self.init, dict) else {"theta": self.init}
        return {name: np.asarray(value, dtype=float) for name, value in init.items()}


class Problem(NamedTuple):
    """A model, and the reference moments of what is reported of it.

    make, quantities, names: those of the model.
    mean: reference means of the quantities.
    sd: reference standard deviations of the quantities.
    """

    name: str
    make: Callable[[], Target]
    quantities: Callable[[Draws], np.ndarray]
    names: tuple[str, ...]
    mean: np.ndarray
    sd: np.ndarray


def with_moments(
    name: str, model: Model, moments: Mapping[str, Mapping[str, float]]
) -> Problem:
    """A problem of a model; `moments` has `mean` and `sd` of each quantity by name."""
    names = model.names()
    mean, sd = (np.array([moments[n][kind] for n in names]) for kind in ("mean", "sd"))
    return Problem(name, model.make, model.quantities, names, mean, sd)


def errors(problem: Problem, draws: Draws) -> tuple[float, float]:
    """Worst error of a mean in reference sd, and worst relative error of an sd.

    Both are infinite if a draw is not finite: a failure must not vanish from a table.
    """
    values = problem.quantities(draws).reshape(-1, len(problem.names))
    if not np.isfinite(values).all():
        return np.inf, np.inf
    mean_errors = np.abs(values.mean(axis=0) - problem.mean) / problem.sd
    sd_errors = np.abs(values.std(axis=0, ddof=1) / problem.sd - 1)
    return float(mean_errors.max()), float(sd_errors.max())


def logs(*names: str) -> Callable[[Draws], Draws]:
    """Report these parameters on a log scale, since their tails are long."""

    def report(draws):
        return {
            f"log_{name}" if name in names else name: (
                np.log(value) if name in names else value
            )
            for name, value in draws.items()
        }

    return report


def negative_binomial(count, log_mean, size) -> Array:
    """Log probability of counts of variance mean + mean^2 / size, up to a constant."""
    log_total = jnp.logaddexp(log_mean, jnp.log(size))
    ways = gammaln(count + size) - gammaln(size)
    return ways + count * log_mean + xlogy(size, size) - (count + size) * log_total


def log_normal(value, location, scale) -> Array:
    """Log-normal log density; location and scale are those of the logarithm."""
    return norm.logpdf(jnp.log(value), location, scale) - jnp.log(value)


def half_normal(value, scale) -> Array:
    """Half-normal log density, up to a constant."""
    return -0.5 * (value / scale) ** 2


def half_cauchy(value, scale) -> Array:
    """Half-Cauchy log density, up to a constant."""
    return -jnp.log1p((value / scale) ** 2)

"""A posterior whose likelihood is a sum over rows of data."""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from vhmc._types import Scalar, Vector
from vhmc.evaluation.target import Target
from vhmc.models.from_jax import from_jax

PRIOR_VARIANCE = 100.0
"""The paper's N(0, 100), read as a variance."""

Rows = tuple[Float[Array, "n ..."], ...]


class RowPotential(eqx.Module):
    """Energy of all rows, not counted.

    The rows are data of the pytree: models that differ in them share compiled code.
    """

    log_prior: Callable[[Vector], Scalar] = eqx.field(static=True)
    log_likelihood: Callable[[Vector, Rows], Scalar] = eqx.field(static=True)
    rows: Rows

    def __call__(self, theta: Vector) -> Scalar:
        """Minus the log density, up to a constant."""
        return -self.log_prior(theta) - self.log_likelihood(theta, self.rows)


class RowModel(NamedTuple):
    """A log prior, and a log likelihood that adds up the rows it is given.

    rows: arrays whose first axes are the observations.
    start: where chains begin unless they know better.
    """

    log_prior: Callable[[Vector], Scalar]
    log_likelihood: Callable[[Vector, Rows], Scalar]
    rows: tuple[np.ndarray, ...]
    start: np.ndarray

    @property
    def num_rows(self) -> int:
        """Number of observations."""
        return len(self.rows[0])

    @property
    def potential(self) -> RowPotential:
        """The energy, for loops inside JAX that count for themselves."""
        rows = tuple(jnp.asarray(part) for part in self.rows)
        return RowPotential(self.log_prior, self.log_likelihood, rows)

    def target(self) -> Target:
        """The posterior of all rows, every call counted."""
        potential = self.potential
        return from_jax(lambda theta: -potential(theta), self.start)


def normal_prior(theta: Vector) -> Scalar:
    """Log density of independent normals, up to a constant."""
    return -0.5 * jnp.sum(theta**2) / PRIOR_VARIANCE

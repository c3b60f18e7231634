r"""Schedules $\mu_t$ from the Laplace guide (0) to the surrogate (1).

A schedule is any callable from the iteration $t = 1, 2, \dots$ to $[0, 1]$.
"""

from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array

Schedule = Callable[[Array], Array]


class Ramp(eqx.Module):
    r"""The paper's $\mu_t = 1 - \exp(-t / n_s)$.

    timescale: iterations $n_s$ after which the surrogate has 63 % of the weight.
    """

    timescale: float

    def __check_init__(self):
        if not self.timescale > 0:
            raise ValueError(f"timescale must be positive, got {self.timescale}")

    def __call__(self, iteration: Array) -> Array:
        r"""Share $\mu_t$ of the surrogate at an iteration."""
        return -jnp.expm1(-iteration / self.timescale)

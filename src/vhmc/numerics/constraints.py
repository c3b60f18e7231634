r"""Constraints: bijections from unconstrained arrays to where a parameter lives.

Each maps a whole parameter at once and carries the log-determinant of its Jacobian, so
that a density in the user's space becomes one on $R^d$.
"""

import abc
import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array

from vhmc._types import Scalar


class AbstractConstraint(abc.ABC):
    """A support and the bijection from an unconstrained array on to it."""

    @property
    @abc.abstractmethod
    def description(self) -> str:
        """The support in words, for messages."""

    @abc.abstractmethod
    def contains(self, value: Array) -> Array:
        """Whether a value lies inside the support."""

    @abc.abstractmethod
    def constrain(self, free: Array) -> Array:
        """From the unconstrained array to the support."""

    @abc.abstractmethod
    def unconstrain(self, value: Array) -> Array:
        """Inverse of `constrain`."""

    @abc.abstractmethod
    def log_jacobian(self, free: Array) -> Scalar:
        """Log of the absolute Jacobian determinant of `constrain`."""


class Real(AbstractConstraint):
    """All finite numbers."""

    description = "finite"

    def contains(self, value: Array) -> Array:
        """Finite everywhere."""
        return jnp.all(jnp.isfinite(value))

    def constrain(self, free: Array) -> Array:
        """Leave as it is."""
        return free

    def unconstrain(self, value: Array) -> Array:
        """Leave as it is."""
        return value

    def log_jacobian(self, free: Array) -> Scalar:
        """Zero."""
        return jnp.zeros(())


class Positive(AbstractConstraint):
    r"""Numbers above zero, $y = e^x$."""

    description = "positive"

    def contains(self, value: Array) -> Array:
        """Finite and above zero everywhere."""
        return jnp.all((value > 0) & jnp.isfinite(value))

    def constrain(self, free: Array) -> Array:
        """Exponential."""
        return jnp.exp(free)

    def unconstrain(self, value: Array) -> Array:
        """Logarithm."""
        return jnp.log(value)

    def log_jacobian(self, free: Array) -> Scalar:
        """Sum of the exponents."""
        return jnp.sum(free)


@dataclass(frozen=True)
class Interval(AbstractConstraint):
    r"""Numbers strictly between two bounds, $y = a + (b - a) / (1 + e^{-x})$."""

    lower: float
    upper: float

    def __post_init__(self):
        if not (math.isfinite(self.lower) and math.isfinite(self.upper)):
            raise ValueError(
                f"an interval needs finite bounds, got {self.lower} and {self.upper}"
            )
        if not self.lower < self.upper:
            raise ValueError(
                f"an interval needs lower < upper, got {self.lower} and {self.upper}"
            )

    @property
    def description(self) -> str:
        """The support in words."""
        return f"strictly between {self.lower:g} and {self.upper:g}"

    def contains(self, value: Array) -> Array:
        """Strictly inside everywhere."""
        return jnp.all((value > self.lower) & (value < self.upper))

    def constrain(self, free: Array) -> Array:
        """Scaled logistic function."""
        return self.lower + (self.upper - self.lower) * jax.nn.sigmoid(free)

    def unconstrain(self, value: Array) -> Array:
        """Logit of the share of the interval."""
        return jnp.log(value - self.lower) - jnp.log(self.upper - value)

    def log_jacobian(self, free: Array) -> Scalar:
        """Sum of the logs of the scaled logistic slopes."""
        slopes = jax.nn.log_sigmoid(free) + jax.nn.log_sigmoid(-free)
        return jnp.sum(slopes + jnp.log(self.upper - self.lower))


class Ordered(AbstractConstraint):
    r"""Increasing along the last axis, $y_1 = x_1$, $y_k = y_{k-1} + e^{x_k}$."""

    description = "strictly increasing along its last axis"

    def contains(self, value: Array) -> Array:
        """Finite with positive gaps."""
        if value.ndim == 0:
            return jnp.array(False)
        return jnp.all(jnp.diff(value) > 0) & jnp.all(jnp.isfinite(value))

    def constrain(self, free: Array) -> Array:
        """Cumulative sum of positive gaps."""
        gaps = jnp.exp(free[..., 1:])
        return jnp.cumsum(jnp.concatenate([free[..., :1], gaps], axis=-1), axis=-1)

    def unconstrain(self, value: Array) -> Array:
        """First value and the logs of the gaps."""
        gaps = jnp.log(jnp.diff(value))
        return jnp.concatenate([value[..., :1], gaps], axis=-1)

    def log_jacobian(self, free: Array) -> Scalar:
        """Sum of the log gaps."""
        return jnp.sum(free[..., 1:])


class Simplex(AbstractConstraint):
    r"""Positive with unit sum along the last axis, by breaking a stick.

    The break $k$ of $n$ takes the share $1 / (1 + e^{-(x_k - \log(n - k))})$ of what is
    left, so zero maps to equal parts. One number fewer comes in than goes out.
    """

    description = "two or more positive numbers with a sum of 1 along its last axis"

    def contains(self, value: Array) -> Array:
        """Positive, and of unit sum to rounding."""
        if value.ndim == 0 or value.shape[-1] < 2:
            return jnp.array(False)
        is_unit = jnp.abs(jnp.sum(value, axis=-1) - 1) < 1e-6
        return jnp.all(value > 0) & jnp.all(is_unit)

    def constrain(self, free: Array) -> Array:
        """Shares of the stick, the last piece being what is left."""
        log_share, log_left = self._log_breaks(free)
        return jnp.exp(
            jnp.concatenate([log_share + log_left[..., :-1], log_left[..., -1:]], -1)
        )

    def unconstrain(self, value: Array) -> Array:
        """Logits of the shares."""
        left = jnp.cumsum(value[..., ::-1], axis=-1)[..., ::-1]
        logits = jnp.log(value[..., :-1]) - jnp.log(left[..., 1:])
        return logits + self._shift(logits)

    def log_jacobian(self, free: Array) -> Scalar:
        """Sum of the logs of the slopes, each scaled by the stick left."""
        log_share, log_left = self._log_breaks(free)
        log_rest = jnp.diff(log_left)
        return jnp.sum(log_share + log_rest + log_left[..., :-1])

    def _log_breaks(self, free: Array) -> tuple[Array, Array]:
        logits = free - self._shift(free)
        log_rest = jnp.cumsum(jax.nn.log_sigmoid(-logits), axis=-1)
        log_left = jnp.concatenate([jnp.zeros_like(log_rest[..., :1]), log_rest], -1)
        return jax.nn.log_sigmoid(logits), log_left

    def _shift(self, free: Array) -> Array:
        return jnp.log(jnp.arange(free.shape[-1], 0, -1, dtype=float))


real = Real()
positive = Positive()
unit_interval = Interval(0.0, 1.0)
ordered = Ordered()
simplex = Simplex()
interval = Interval

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
    """A support, and the bijection from an unconstrained array onto it."""

    @property
    @abc.abstractmethod
    def description(self) -> str:
        """The support in words, for error messages."""

    @abc.abstractmethod
    def contains(self, value: Array) -> Array:
        """Whether a value lies inside the support."""

    @abc.abstractmethod
    def constrain(self, unconstrained: Array) -> Array:
        """From the unconstrained array to the support."""

    @abc.abstractmethod
    def unconstrain(self, value: Array) -> Array:
        """Inverse of `constrain`."""

    @abc.abstractmethod
    def log_jacobian(self, unconstrained: Array) -> Scalar:
        """Log of the absolute Jacobian determinant of `constrain`."""


class Real(AbstractConstraint):
    """All finite numbers."""

    description = "finite"

    def contains(self, value: Array) -> Array:
        return jnp.all(jnp.isfinite(value))

    def constrain(self, unconstrained: Array) -> Array:
        return unconstrained

    def unconstrain(self, value: Array) -> Array:
        return value

    def log_jacobian(self, unconstrained: Array) -> Scalar:
        return jnp.zeros(())


class Positive(AbstractConstraint):
    r"""Numbers above zero, $y = e^x$."""

    description = "positive"

    def contains(self, value: Array) -> Array:
        """Whether all entries are positive and finite."""
        return jnp.all((value > 0) & jnp.isfinite(value))

    def constrain(self, unconstrained: Array) -> Array:
        return jnp.exp(unconstrained)

    def unconstrain(self, value: Array) -> Array:
        return jnp.log(value)

    def log_jacobian(self, unconstrained: Array) -> Scalar:
        """Sum of the unconstrained entries."""
        return jnp.sum(unconstrained)


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
        return f"strictly between {self.lower:g} and {self.upper:g}"

    def contains(self, value: Array) -> Array:
        return jnp.all((value > self.lower) & (value < self.upper))

    def constrain(self, unconstrained: Array) -> Array:
        """Scaled logistic function."""
        return self.lower + (self.upper - self.lower) * jax.nn.sigmoid(unconstrained)

    def unconstrain(self, value: Array) -> Array:
        """Logit of the position within the interval."""
        return jnp.log(value - self.lower) - jnp.log(self.upper - value)

    def log_jacobian(self, unconstrained: Array) -> Scalar:
        """Sum of the log derivatives of the scaled logistic function."""
        slopes = jax.nn.log_sigmoid(unconstrained) + jax.nn.log_sigmoid(-unconstrained)
        return jnp.sum(slopes + jnp.log(self.upper - self.lower))


class Ordered(AbstractConstraint):
    r"""Increasing along the last axis, $y_1 = x_1$, $y_k = y_{k-1} + e^{x_k}$."""

    description = "strictly increasing along its last axis"

    def contains(self, value: Array) -> Array:
        """Whether entries are finite and strictly increasing."""
        if value.ndim == 0:
            return jnp.array(False)
        return jnp.all(jnp.diff(value) > 0) & jnp.all(jnp.isfinite(value))

    def constrain(self, unconstrained: Array) -> Array:
        """Cumulative sum of positive gaps."""
        gaps = jnp.exp(unconstrained[..., 1:])
        return jnp.cumsum(
            jnp.concatenate([unconstrained[..., :1], gaps], axis=-1), axis=-1
        )

    def unconstrain(self, value: Array) -> Array:
        """First value and the logs of the gaps."""
        gaps = jnp.log(jnp.diff(value))
        return jnp.concatenate([value[..., :1], gaps], axis=-1)

    def log_jacobian(self, unconstrained: Array) -> Scalar:
        """Sum of the log gaps."""
        return jnp.sum(unconstrained[..., 1:])


class Simplex(AbstractConstraint):
    r"""Positive with unit sum along the last axis, by stick breaking.

    For $n$ entries, break $k$ takes the fraction $1 / (1 + e^{-(x_k - \log(n - k))})$
    of the remaining stick, so zero maps to equal parts. The unconstrained array has
    one entry fewer along its last axis.
    """

    description = "two or more positive numbers with a sum of 1 along its last axis"

    def contains(self, value: Array) -> Array:
        """Whether entries are positive and sum to 1 within 1e-6."""
        if value.ndim == 0 or value.shape[-1] < 2:
            return jnp.array(False)
        is_unit = jnp.abs(jnp.sum(value, axis=-1) - 1) < 1e-6
        return jnp.all(value > 0) & jnp.all(is_unit)

    def constrain(self, unconstrained: Array) -> Array:
        """Pieces of the stick; the last is the remainder."""
        log_fraction, log_left = self._log_breaks(unconstrained)
        return jnp.exp(
            jnp.concatenate([log_fraction + log_left[..., :-1], log_left[..., -1:]], -1)
        )

    def unconstrain(self, value: Array) -> Array:
        """Logits of the fractions, shifted so that equal parts map to zero."""
        left = jnp.cumsum(value[..., ::-1], axis=-1)[..., ::-1]
        logits = jnp.log(value[..., :-1]) - jnp.log(left[..., 1:])
        return logits + self._shift(logits)

    def log_jacobian(self, unconstrained: Array) -> Scalar:
        """Sum over breaks: log logistic derivative plus log of the remaining stick."""
        log_fraction, log_left = self._log_breaks(unconstrained)
        log_rest = jnp.diff(log_left)
        return jnp.sum(log_fraction + log_rest + log_left[..., :-1])

    def _log_breaks(self, unconstrained: Array) -> tuple[Array, Array]:
        logits = unconstrained - self._shift(unconstrained)
        log_rest = jnp.cumsum(jax.nn.log_sigmoid(-logits), axis=-1)
        log_left = jnp.concatenate([jnp.zeros_like(log_rest[..., :1]), log_rest], -1)
        return jax.nn.log_sigmoid(logits), log_left

    def _shift(self, unconstrained: Array) -> Array:
        return jnp.log(jnp.arange(unconstrained.shape[-1], 0, -1, dtype=float))


real = Real()
positive = Positive()
unit_interval = Interval(0.0, 1.0)
ordered = Ordered()
simplex = Simplex()
interval = Interval

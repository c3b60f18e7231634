r"""Functions of hub parameters, of which natural parameters are linear combinations.

A scale parameter enters a precision as a power: $e^{p c}$ with $c$ its logarithm.
Powers of a bounded parameter's value, and polynomials, serve the others. All are
analytic, so that a derivative can be taken by a complex step.
"""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax

from vhmc._types import Shared

MAX_EXPONENT = 40.0
POWERS = -2.0, -1.0, -0.5, 0.5, 1.0, 2.0


class Link(NamedTuple):
    r"""How a hub's value in the user's space depends on its unconstrained coordinate.

    kind: `exp` ($e^c$ up to scale and shift), `logit` (between two bounds) or `real`.
    low, high: the bounds.
    """

    kind: str = "exp"
    low: float = 0.0
    high: float = 1.0

    @property
    def is_scale(self) -> bool:
        """Whether the value is positive from zero on."""
        return self.kind != "real" and self.low == 0 and self.high > 0


@partial(
    jax.tree_util.register_dataclass,
    data_fields=("center", "scale", "low", "high"),
    meta_fields=("hub", "kind", "power"),
)
@dataclass(frozen=True, eq=False)
class Atom:
    r"""A function of a hub: $(y / s)^p$, $e^{p y / s}$, functions of that, $(v / s)^p$.

    Here $y = c - \bar c$, and $v$ is the value of a bounded parameter.

    hub: its position among the hubs.
    kind: `polynomial`, `exp`, `saturating` (the logistic function of the exponent),
        `softplus` (its integral) or `logit`.
    power: $p$.
    center, scale: $\bar c$ and $s$.
    low, high: bounds of a `logit`.
    """

    hub: int
    kind: str
    power: float
    center: Shared
    scale: Shared
    low: Shared = 0.0
    high: Shared = 1.0

    def __call__(self, c: Shared) -> Shared:
        """Values at hubs, one point a row."""
        xp = c.__array_namespace__()
        own = c[:, self.hub]
        if self.kind == "polynomial":
            return ((own - self.center) / self.scale) ** self.power
        if self.kind == "exp":
            return _exp(xp, self.power * (own - self.center) / self.scale)
        if self.kind == "saturating":
            return 1 / (1 + _exp(xp, -self.power * (own - self.center) / self.scale))
        if self.kind == "softplus":
            exponential = _exp(xp, self.power * (own - self.center) / self.scale)
            return xp.log(1 + exponential)
        value = self.low + (self.high - self.low) / (1 + _exp(xp, -own))
        return (value / self.scale) ** self.power


Term = tuple[Atom, ...]
"""A product of atoms; the empty one is the constant."""


def evaluate(terms: tuple[Term, ...], c: Shared) -> Shared:
    """Values of all terms, one term a row and one point a column."""
    xp = c.__array_namespace__()
    rows = []
    for term in terms:
        row = xp.ones(len(c), dtype=c.dtype)
        for atom in term:
            row = row * atom(c)
        rows.append(row)
    return xp.stack(rows)


def _exp(xp: Shared, exponent: Shared) -> Shared:
    """Exponential of bounded size; constant, with slope zero, beyond the bound."""
    real = xp.real(exponent)
    bounded = xp.where(
        xp.abs(real) < MAX_EXPONENT, exponent, real.clip(-MAX_EXPONENT, MAX_EXPONENT)
    )
    return xp.exp(bounded)

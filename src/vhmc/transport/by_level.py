r"""The conditional layer whose levels have natural parameters of their own.

In each level of the elimination $d, e, h$ are linear combinations of functions of the
hubs. That is exact for the first level of a Gaussian model and close for the others,
and fits of different levels cannot upset each other.
"""

from typing import NamedTuple

import numpy as np

from vhmc._types import Shared
from vhmc.transport.conditional import STEP, AbstractConditional, Moments
from vhmc.transport.hub_functions import Term, evaluate

FLOOR = 0.05
"""Precisions are held above half of this, smoothly, in standardised coordinates."""


class NaturalParameters(NamedTuple):
    """Of the variables of one level, by function of the hubs.

    terms, linear_terms: functions for $d$ and $e$, and for $h$.
    precision: $d$, of shape (terms, q).
    edges: $e$, of shape (terms, q, p).
    linear: $h$, of shape (linear terms, q).
    """

    terms: tuple[Term, ...]
    linear_terms: tuple[Term, ...]
    precision: Shared
    edges: Shared
    linear: Shared


class ByLevel(AbstractConditional):
    """A conditional layer with its own functions of the hubs in every level.

    parameters: of the conditionals of each level.
    """

    parameters: tuple[NaturalParameters, ...]

    def _moments(self, c: Shared) -> list[Moments]:
        return [moments(c, parameters) for parameters in self.parameters]

    def _slopes(
        self, c: np.ndarray, hub: int, all_moments: list[Moments]
    ) -> list[Moments]:
        # Only the functions of the hubs need complex numbers.
        shifted = c.astype(complex)
        shifted[:, hub] += 1j * STEP
        pairs = zip(self.parameters, all_moments, strict=True)
        return [_slopes(shifted, *pair) for pair in pairs]


def moments(c: Shared, parameters: NaturalParameters) -> Moments:
    """The conditionals of a level at hubs, one point a row."""
    xp = c.__array_namespace__()
    phi = evaluate(parameters.terms, c)
    precision = floored(xp, parameters.precision.T @ phi)
    edges = xp.tensordot(parameters.edges, phi, axes=(0, 0))
    linear = parameters.linear.T @ evaluate(parameters.linear_terms, c)
    return Moments(precision, edges / precision[:, None], linear / precision)


def _slopes(
    shifted: np.ndarray, parameters: NaturalParameters, level: Moments
) -> Moments:
    """Derivatives of the conditionals of a level.

    shifted: hubs, one of them by an imaginary step.
    """
    phi, psi = (
        np.imag(evaluate(terms, shifted)) / STEP
        for terms in (parameters.terms, parameters.linear_terms)
    )
    precision, gain, mean = level
    # The derivative of the floor, from its value.
    kept = -np.expm1(0.5 - precision / FLOOR)
    by_precision = kept * (parameters.precision.T @ phi)
    edges = np.tensordot(parameters.edges, phi, axes=(0, 0))
    linear = parameters.linear.T @ psi
    return Moments(
        by_precision,
        (edges - gain * by_precision[:, None]) / precision[:, None],
        (linear - mean * by_precision) / precision,
    )


def floored(xp: Shared, raw: Shared) -> Shared:
    """Positive precisions; exponentially close to the raw ones above the floor."""
    scaled = raw / FLOOR - 0.5
    is_large = xp.real(scaled) > 30
    soft = xp.log1p(xp.exp(xp.where(is_large, 0.0, scaled)))
    return FLOOR * (0.5 + xp.where(is_large, scaled, soft))

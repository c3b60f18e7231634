r"""Potentials: callable pytrees from a vector to minus a log density.

Weights are ordinary leaves, so a potential whose weights changed is the same program:
whatever takes a potential as an argument is compiled once.
"""

import equinox as eqx
import jax
from jaxtyping import Array, Float

from vhmc._types import Potential, Scalar, Vector
from vhmc.numerics.bases import AbstractBasis


class Surrogate(eqx.Module):
    r"""Random network $z(\theta) = \sum_i v_i \sigma(\theta; \gamma_i)$ (eq. slfn).

    As a distribution it is $q_v(\theta) \propto \exp(-z(\theta))$ (eq. free), known up
    to its constant.
    """

    basis: AbstractBasis
    weights: Float[Array, " s"]

    def __call__(self, theta: Vector) -> Scalar:
        r"""Energy $z(\theta)$."""
        return self.weights @ self.basis.features(theta)

    def log_density(self, theta: Vector) -> Scalar:
        """Log of $q_v$, up to a constant."""
        return -self(theta)

    def score(self, theta: Vector) -> Vector:
        r"""Score $\psi_v(\theta) = \nabla \log q_v(\theta) = -\nabla z(\theta)$."""
        return -jax.grad(self)(theta)


class Blend(eqx.Module):
    r"""Regularised potential $V_t = \mu z + (1 - \mu) g$ of Algorithm 2."""

    surrogate: Potential
    guide: Potential
    mu: Scalar

    def __call__(self, theta: Vector) -> Scalar:
        r"""Energy $V_t(\theta)$."""
        return self.mu * self.surrogate(theta) + (1 - self.mu) * self.guide(theta)

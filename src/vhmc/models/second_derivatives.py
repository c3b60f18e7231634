"""Hessians of energies, by whatever differentiation a model allows."""

from collections.abc import Callable

import jax
import numpy as np

from vhmc._types import Potential
from vhmc.evaluation.target import Evaluations

ORDERS = (jax.hessian, lambda energy: jax.jacrev(jax.grad(energy)))
"""Forward over reverse, which is cheaper; reverse over reverse, for functions with
their own reverse rule, such as `jax.experimental.ode.odeint`."""


def traced_hessian(
    energy: Potential, start: np.ndarray
) -> Callable[[np.ndarray], jax.Array] | None:
    """The compiled Hessian of an energy; none if JAX can differentiate it only once.

    Found out by tracing: the energy is not evaluated.

    start: a point of the right shape.
    """
    for order in ORDERS:
        hessian = jax.jit(order(energy))
        try:
            hessian.trace(start)
        except (TypeError, ValueError, NotImplementedError):
            continue  # what JAX raises where a rule is missing
        return hessian
    return None


def differenced_hessian(
    evaluate: Callable[[np.ndarray], Evaluations],
    theta: np.ndarray,
    noise_step: float = 0.0,
) -> np.ndarray:
    """Second derivatives by central differences of gradients at two points a parameter.

    NaN where a gradient is missing.

    noise_step: relative step of the finite differences behind the gradients; zero if
        the gradients are exact.
    """
    # The cube root balances rounding against truncation; gradients that are finite
    # differences themselves are noisier and need a wider step.
    width = max(np.cbrt(np.finfo(float).eps), np.sqrt(noise_step))
    widths = width * np.maximum(1.0, np.abs(theta))
    steps = np.diag(widths)
    answer = evaluate(np.concatenate([theta + steps, theta - steps]))
    grads = np.where(np.isfinite(answer.energy)[:, None], answer.grad, np.nan)
    jacobian = (grads[: len(theta)] - grads[len(theta) :]) / (2 * widths[:, None])
    return (jacobian + jacobian.T) / 2

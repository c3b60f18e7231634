"""Models that are any Python function: NumPy, a subprocess, a simulator."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from numpy.typing import ArrayLike

from vhmc._types import Potential, Scalar, Vector
from vhmc.targets.parameters import Parameters
from vhmc.targets.target import Evaluations, Target

ValueAndGrad = Callable[[np.ndarray], tuple[Any, ArrayLike]]


def from_callable(
    value_and_grad: ValueAndGrad, dim: int, init: ArrayLike | None = None
) -> Target:
    """Target of a Python function; nothing is traced or pickled.

    value_and_grad: takes a vector of length `dim`, returns the log density up to a
        constant and its gradient there.
    dim: number of parameters.
    init: vector to start from, zero unless given.
    """
    if dim < 1:
        raise ValueError(f"dim must be at least 1, got {dim}")
    start = np.zeros(dim) if init is None else np.asarray(init, dtype=float)
    if start.shape != (dim,):
        raise ValueError(f"init must have shape ({dim},), got {start.shape}")
    return HostTarget(value_and_grad, Parameters(start, {}))


class HostTarget(Target):
    """A target evaluated on the host, one point after the other."""

    def __init__(self, value_and_grad: ValueAndGrad, parameters: Parameters):
        super().__init__(parameters)
        self._value_and_grad = value_and_grad

    def _evaluate(self, thetas: np.ndarray) -> Evaluations:
        rows = [self._evaluate_one(theta) for theta in thetas]
        energy = np.array([value for value, _ in rows])
        grad = np.array([grad for _, grad in rows]).reshape(thetas.shape)
        return Evaluations(energy, grad)

    def _evaluate_one(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        self._counter.add(1)
        # A copy: a function that works in place must not move the chain.
        answer = self._value_and_grad(theta.copy())
        try:
            value, grad = answer
        except (TypeError, ValueError) as error:
            raise ValueError(
                "value_and_grad must return the log density and its gradient"
            ) from error
        value, grad = np.asarray(value, dtype=float), np.asarray(grad, dtype=float)
        if value.size != 1:
            raise ValueError(
                f"the log density must be one number, got shape {value.shape}"
            )
        if grad.shape != (self.dim,):
            raise ValueError(
                f"the gradient must have shape ({self.dim},), got {grad.shape}"
            )
        return -value.item(), -grad

    def hessian(self, theta: np.ndarray) -> np.ndarray:
        """Second derivatives by central differences of gradients: 2 `dim` calls."""
        # The cube root balances rounding against the change of the curvature.
        widths = np.cbrt(np.finfo(float).eps) * np.maximum(1.0, np.abs(theta))
        steps = np.diag(widths)
        grads = self.evaluate(np.concatenate([theta + steps, theta - steps])).grad
        jacobian = (grads[: self.dim] - grads[self.dim :]) / (2 * widths[:, None])
        return (jacobian + jacobian.T) / 2

    @property
    def hessian_price(self) -> int:
        """Two calls a dimension."""
        return 2 * self.dim

    @functools.cached_property
    def potential(self) -> Potential:
        """The true energy through a host call that gives value and gradient at once."""
        shapes = (
            jax.ShapeDtypeStruct((), float),
            jax.ShapeDtypeStruct((self.dim,), float),
        )

        def host(thetas):
            thetas = np.asarray(thetas)
            answers = self.evaluate(thetas.reshape(-1, self.dim))
            leading = thetas.shape[:-1]
            return answers.energy.reshape(leading), answers.grad.reshape(thetas.shape)

        def call(theta):
            return jax.pure_callback(host, shapes, theta, vmap_method="expand_dims")

        @jax.custom_vjp
        def potential(theta: Vector) -> Scalar:
            return call(theta)[0]

        potential.defvjp(call, lambda grad, cotangent: (cotangent * grad,))
        return potential

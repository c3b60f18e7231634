"""Models that run on the host: any language, any machine, nothing traced."""

import functools
from collections.abc import Callable

import jax
import numpy as np

from vhmc._types import Potential, Scalar, Vector
from vhmc.evaluation.space import Space
from vhmc.evaluation.target import Answers, Target


class HostTarget(Target):
    """A target evaluated outside of JAX.

    ask: log densities on the free vectors, Jacobians included, and their gradients.
    route: how the model is evaluated, in a few words.
    price: calls of the model for one point.
    noise_step: width of the differences that gradients come from, if they do.
    is_serial: whether points are answered one after the other.
    """

    def __init__(
        self,
        ask: Callable[[np.ndarray], Answers],
        parameters: Space,
        route: str,
        price: int = 1,
        noise_step: float = 0.0,
        is_serial: bool = True,
    ):
        super().__init__(parameters)
        self._ask, self.route, self.price = ask, route, price
        self.is_serial = is_serial
        self._noise_step = noise_step

    def _evaluate(self, thetas: np.ndarray) -> Answers:
        return self._ask(thetas)

    def hessian(self, theta: np.ndarray) -> np.ndarray:
        """Second derivatives by central differences of gradients: 2 `dim` points.

        Not a number where one of them has no gradient.
        """
        # The cube root balances rounding against the change of the curvature; where
        # gradients are differences themselves, their noise asks for more.
        width = max(np.cbrt(np.finfo(float).eps), np.sqrt(self._noise_step))
        widths = width * np.maximum(1.0, np.abs(theta))
        steps = np.diag(widths)
        answer = self.evaluate(np.concatenate([theta + steps, theta - steps]))
        grads = np.where(np.isfinite(answer.energy)[:, None], answer.grad, np.nan)
        jacobian = (grads[: self.dim] - grads[self.dim :]) / (2 * widths[:, None])
        return (jacobian + jacobian.T) / 2

    @property
    def hessian_price(self) -> int:
        """Two points a dimension."""
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

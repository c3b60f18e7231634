"""Targets of models that run outside JAX, in any language and on any machine."""

import functools
from collections.abc import Callable

import jax
import numpy as np

from vhmc._types import Potential, Scalar, Vector
from vhmc.evaluation.observable import Observable
from vhmc.evaluation.space import Space
from vhmc.evaluation.target import Answers, Target
from vhmc.models.second_derivatives import differenced_hessian


class HostTarget(Target):
    """A target evaluated outside JAX.

    ask: function of unconstrained vectors of shape (n, dim) that returns their log
        densities, Jacobians included, and gradients; `Caller` makes one of a function
        of a single vector.
    parameters: the layout of the unconstrained vector.
    route: how the model is evaluated, in a few words.
    price: evaluations for the value and the gradient at one point.
    noise_step: relative step of the finite differences behind the gradients; zero if
        the gradients are exact.
    is_serial: whether the points of a batch are evaluated one after the other.
    observable: of a forward model whose outputs are part of what `ask` returns.
    is_hand_written: whether the gradient is the user's own.
    """

    def __init__(
        self,
        ask: Callable[[np.ndarray], Answers],
        parameters: Space,
        route: str,
        price: int = 1,
        noise_step: float = 0.0,
        is_serial: bool = True,
        observable: Observable | None = None,
        is_hand_written: bool = False,
    ):
        super().__init__(parameters)
        self._ask, self.route, self.price = ask, route, price
        self.is_serial, self.observable = is_serial, observable
        self._noise_step, self.is_hand_written = noise_step, is_hand_written

    def _evaluate(self, thetas: np.ndarray) -> Answers:
        return self._ask(thetas)

    def hessian(self, theta: np.ndarray) -> np.ndarray:
        """Second derivatives by central differences of gradients at 2 `dim` points."""
        return differenced_hessian(self.evaluate, theta, self._noise_step)

    @property
    def hessian_price(self) -> int:
        return 2 * self.dim

    @functools.cached_property
    def potential(self) -> Potential:
        """The true energy by a host callback, which returns value and gradient."""
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

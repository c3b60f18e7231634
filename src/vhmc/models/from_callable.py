"""Turn any Python function into a target: NumPy, a subprocess, a simulator."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from vhmc._arguments import shown, whole
from vhmc._types import Vector
from vhmc.evaluation.observable import Observable
from vhmc.evaluation.target import Answers, Target
from vhmc.models.batches import batched
from vhmc.models.caller import Caller
from vhmc.models.differences import differences as checked_differences
from vhmc.models.host import HostTarget
from vhmc.models.parameters import Parameters
from vhmc.numerics.constraints import AbstractConstraint

Names = Sequence[str] | Mapping[str, tuple[int, ...]]


def from_callable(
    value_and_grad: Callable[[np.ndarray], Any],
    dim: int,
    init: ArrayLike | None = None,
    *,
    names: Names | None = None,
    constraints: Mapping[str, AbstractConstraint] | None = None,
    batch: bool = False,
    differences: str | None = None,
    step: float | None = None,
    parallel: Any = None,
    timeout: float | None = None,
) -> Target:
    """Target of a Python function, which JAX need not trace.

    Where the function raises, takes too long or returns a number that is not finite,
    the point is rejected and the reason is recorded.

    value_and_grad: takes a vector of length `dim` in the user's space and returns the
        log density there, up to a constant, and its gradient. The Jacobian of the
        constraints is added here.
    dim: number of parameters.
    init: initial vector; zero by default.
    names: a name for each parameter, or a dict from names to shapes; by default all
        parameters are one vector `theta`.
    constraints: supports of parameters by name; those not named are real.
    batch: whether the function takes points of shape (n, dim) and returns n values and
        gradients of shape (n, dim).
    differences: `forward` or `central` if the function returns the value alone. The
        gradient then takes 1 + dim or 1 + 2 dim values, each counted as an evaluation.
    step: relative step of the differences; by default it balances rounding against
        truncation. A noisy model, such as an adaptive solver, needs a larger one.
    parallel: object whose `map` evaluates several points at once: a pool of threads or
        processes, a Dask client, an MPI executor. Processes need a function that can be
        pickled.
    timeout: seconds to wait for one evaluation. Python cannot stop a running function:
        after the timeout it goes on in a background thread.
    """
    parameters = flat_parameters(dim, init, names, constraints or {})
    caller = Caller(
        value_and_grad,
        with_grad=differences is None,
        batch=batch,
        parallel=parallel,
        timeout=timeout,
    )
    ask: Callable[[np.ndarray], Answers] = caller
    if constraints:
        ask = unconstrained(caller, parameters, with_grad=differences is None)
    return host_target(
        ask, parameters, "a Python function", caller.is_serial, differences, step
    )


def host_target(
    ask: Callable[[np.ndarray], Answers],
    parameters: Parameters,
    route: str,
    is_serial: bool,
    differences: str | None,
    step: float | None,
    observable: Observable | None = None,
) -> HostTarget:
    """Target of a function of unconstrained points, with differences if asked for.

    ask, parameters, route, is_serial, observable: as in `HostTarget`.
    differences, step: as in `from_callable`.
    """
    if differences is None:
        if step is not None:
            raise ValueError("step is for differences, and none were asked for")
        return HostTarget(
            ask,
            parameters,
            route,
            is_serial=is_serial,
            observable=observable,
            is_hand_written=True,
        )
    rule = checked_differences(differences, step)

    return HostTarget(
        lambda thetas: rule.answers(ask, thetas),
        parameters,
        f"{route}, gradients by {differences} differences",
        price=rule.price(parameters.dim),
        noise_step=rule.step,
        is_serial=is_serial,
        observable=observable,
    )


def flat_parameters(
    dim: int,
    init: ArrayLike | None,
    names: Names | None,
    constraints: Mapping[str, AbstractConstraint],
) -> Parameters:
    """Parameters of a flat vector in the user's space, as in `from_callable`."""
    dim = whole("dim", dim, 1)
    start = np.zeros(dim) if init is None else _vector(init)
    if start.shape != (dim,):
        raise ValueError(f"init must have shape ({dim},), got {start.shape}")
    shapes = {"theta": (dim,)} if names is None else _shapes(names)
    sizes = [int(np.prod(shape)) for shape in shapes.values()]
    if sum(sizes) != dim:
        raise ValueError(f"names are for {sum(sizes)} parameters, dim is {dim}")
    parts = np.split(start, np.cumsum(sizes)[:-1])
    values = {
        name: part.reshape(shape)
        for (name, shape), part in zip(shapes.items(), parts, strict=True)
    }
    return Parameters(values, constraints)


def _shapes(names: Names) -> dict[str, tuple[int, ...]]:
    are_words = isinstance(names, Sequence | Mapping) and not isinstance(names, str)
    are_words = are_words and all(isinstance(n, str) and n.strip() for n in names)
    if not are_words or len(set(names)) != len(names):
        raise ValueError(
            "names must be different words, or a dict from them to shapes, "
            f"got {shown(names)}"
        )
    if not isinstance(names, Mapping):
        return dict.fromkeys(names, ())
    shapes = {}
    for name, shape in names.items():
        label = f"the shape of {shown(name)}"
        if not isinstance(shape, tuple | list):
            raise ValueError(f"{label} must be a tuple, got {shown(shape)}")
        shapes[name] = tuple(whole(label, n, 1) for n in shape)
    return shapes


def _vector(init: ArrayLike) -> np.ndarray:
    try:
        return np.asarray(init, dtype=float)
    except (TypeError, ValueError) as error:
        message = f"init must be a vector of real numbers, got {shown(init)}"
        raise ValueError(message) from error


def unconstrained(
    caller: Caller, parameters: Parameters, with_grad: bool
) -> Callable[[np.ndarray], Answers]:
    """A function of the user's space as one of the unconstrained vector.

    The log-Jacobians are added, and the gradients pulled back if there are any.
    """

    def log_jacobian(theta: Vector) -> jax.Array:
        return parameters.unflatten(theta)[1]

    def pull(theta: Vector, grad: Float[Array, " n"]) -> Vector:
        (pulled,) = jax.vjp(parameters.flat_values, theta)[1](grad)
        return pulled + jax.grad(log_jacobian)(theta)

    points, log_jacobians = batched(parameters.flat_values), batched(log_jacobian)
    pulled = batched(pull)

    def ask(thetas: np.ndarray) -> Answers:
        answer = caller(points(thetas))
        grad = pulled(thetas, answer.grad) if with_grad else answer.grad
        value = answer.value + log_jacobians(thetas)
        return answer._replace(value=value, grad=grad)

    return ask

"""Posteriors of forward models with independent normal errors: outputs are kept.

The log density is the prior's less half of the sum of squared misfits, so that a
surrogate may learn the outputs in place of the log density. The constant of the errors
is taken with the prior.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from vhmc._arguments import shown
from vhmc._types import Scalar, Vector
from vhmc.evaluation.observable import Observable
from vhmc.evaluation.target import Answers
from vhmc.models.batches import batched
from vhmc.models.caller import Caller
from vhmc.models.from_callable import host_target, unconstrained
from vhmc.models.host import HostTarget
from vhmc.models.parameters import Parameters

Forward = Callable[[np.ndarray], Any]
PullBack = Callable[[np.ndarray, np.ndarray], Any]
Prior = Callable[[Any], Any] | tuple[ArrayLike, ArrayLike]


class LogLikelihood:
    """Log likelihood at a point, its gradient, and the outputs of the forward model.

    Picklable if its functions are, so that workers can run it.

    forward: from a point in the user's space to the outputs.
    vjp: vector-Jacobian product at a point; None if only values are wanted.
    data, sd: measured outputs and the standard deviations of their errors.
    """

    def __init__(
        self, forward: Forward, vjp: PullBack | None, data: np.ndarray, sd: np.ndarray
    ):
        self._forward, self._vjp = forward, vjp
        self._data, self._sd = data, sd

    def __call__(self, point: np.ndarray) -> tuple[Any, np.ndarray]:
        """The answer that `Checked` expects, and the outputs."""
        # Copies: functions that work in place must not change each other's arguments.
        outputs = np.array(self._forward(point.copy()), dtype=float).ravel()
        if outputs.shape != self._data.shape:
            raise ValueError(
                f"the forward model returned {outputs.size} outputs, the data are "
                f"{self._data.size} numbers"
            )
        misfit = (outputs - self._data) / self._sd
        value = -0.5 * misfit @ misfit
        if self._vjp is None:
            return value, outputs
        if not np.isfinite(value):
            return (value, np.full_like(point, np.nan)), outputs
        grad = np.array(self._vjp(point, -misfit / self._sd), dtype=float)
        return (value, grad.reshape(point.shape)), outputs


def least_squares_target(
    likelihood: LogLikelihood,
    data: np.ndarray,
    sd: np.ndarray,
    log_prior: Callable[[Any], Any],
    parameters: Parameters,
    route: str,
    *,
    is_constrained: bool,
    differences: str | None,
    step: float | None,
    parallel: Any,
    timeout: float | None = None,
) -> HostTarget:
    """Target of a likelihood and a prior, which remembers the outputs.

    log_prior: of a flat vector in the user's space, for JAX to trace.
    parameters: layout of that vector.
    differences, step, parallel, timeout: as in `from_callable`.
    """
    caller = Caller(
        likelihood,
        with_grad=differences is None,
        num_outputs=len(data),
        parallel=parallel,
        timeout=timeout,
    )

    constant = log_constant(sd)

    def prior(theta: Vector) -> Scalar:
        value = jnp.asarray(log_prior(parameters.flat_values(theta)), dtype=float)
        return -value.reshape(()) - constant

    def prior_with_jacobian(theta: Vector) -> Scalar:
        return prior(theta) - parameters.unflatten(theta)[1]

    in_full = prior_with_jacobian if is_constrained else prior
    prior_rows = batched(jax.value_and_grad(in_full))
    # The transform of a likelihood has no Jacobian, `unconstrained` adds one.
    beyond = batched(jax.value_and_grad(prior)) if is_constrained else prior_rows
    ask: Callable[[np.ndarray], Answers] = caller
    if is_constrained:
        ask = unconstrained(caller, parameters, with_grad=differences is None)

    def answers(thetas: np.ndarray) -> Answers:
        answer = ask(thetas)
        energy, grad = beyond(thetas)
        total = answer.grad if differences else answer.grad - grad
        return answer._replace(value=answer.value - energy, grad=total)

    return host_target(
        answers,
        parameters,
        route,
        caller.is_serial,
        differences,
        step,
        Observable(data, sd, in_full, prior_rows),
    )


def normal_errors(data: ArrayLike, sd: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Data as a vector, and the standard deviation of each error."""
    try:
        values = np.array(data, dtype=float).ravel()
    except (TypeError, ValueError) as error:
        raise ValueError(f"data must be numbers, got {shown(data)}") from error
    if not values.size or not np.isfinite(values).all():
        raise ValueError("data must be finite numbers, one at least")
    try:
        sds = np.array(sd, dtype=float)
        sds = np.broadcast_to(sds.ravel() if sds.ndim else sds, values.shape).copy()
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"noise_sd must be a number, or one for each entry of data, got {shown(sd)}"
        ) from error
    if not ((sds > 0) & np.isfinite(sds)).all():
        raise ValueError("standard deviations of the noise must be positive")
    return values, sds


def as_log_prior(prior: Prior, dim: int) -> Callable[[Any], Any]:
    """A log density that JAX can trace, of a function or of means and sds."""
    if callable(prior):
        return prior
    try:
        mean, sd = (
            np.broadcast_to(np.asarray(part, dtype=float), (dim,)) for part in prior
        )
    except (TypeError, ValueError) as error:
        raise ValueError(
            "prior must be a log density that JAX can trace, or a pair of means and "
            f"standard deviations of {dim} parameters"
        ) from error
    if not ((sd > 0) & np.isfinite(sd)).all():
        raise ValueError("standard deviations of the prior must be positive")
    constant = log_constant(sd)
    return lambda theta: constant - 0.5 * jnp.sum(((theta - mean) / sd) ** 2)


def log_constant(sd: np.ndarray) -> float:
    """Log density of independent normals at their means."""
    return float(-np.sum(np.log(sd)) - 0.5 * np.size(sd) * np.log(2 * np.pi))

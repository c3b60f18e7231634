"""Turn a log density written in JAX into a target."""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp

from vhmc._types import Scalar, Vector
from vhmc.evaluation.target import Target
from vhmc.models.parameters import Parameters
from vhmc.models.traced import TracedTarget
from vhmc.numerics.constraints import AbstractConstraint


def from_jax(
    log_density: Callable[[Any], Any],
    init: Any,
    constraints: Mapping[str, AbstractConstraint] | None = None,
) -> Target:
    """Target of a log density that JAX can trace.

    log_density: log posterior density up to a constant, as a function of the
        parameters in the user's space; the Jacobian of the constraints is added here.
    init: initial values, whose structure defines the parameters: a dict of numbers and
        arrays (or any pytree), or one flat vector, as `log_density` takes it.
    constraints: supports of parameters by name; those not named are real.
    """
    parameters = Parameters(init, constraints or {})
    _check_density(log_density, parameters)

    def energy(theta: Vector) -> Scalar:
        values, log_jacobian = parameters.unflatten(theta)
        return -(jnp.asarray(log_density(values), dtype=float) + log_jacobian)

    return TracedTarget(energy, parameters)


def _check_density(log_density: Callable[[Any], Any], parameters: Parameters) -> None:
    """Trace the user's function once; nothing is evaluated."""
    try:
        answer = jax.eval_shape(
            lambda theta: log_density(parameters.unflatten(theta)[0]), parameters.start
        )
    except jax.errors.TracerArrayConversionError as error:
        raise ValueError(
            "log_density uses NumPy on its argument, which JAX cannot trace: use "
            "jax.numpy, or from_callable with a gradient of your own"
        ) from error
    except jax.errors.JAXTypeError as error:
        raise ValueError(
            "log_density uses `if`, `while` or Python's math on its argument, which "
            "JAX cannot trace: use jax.numpy (jnp.where for `if`), or from_callable "
            "with a gradient of your own"
        ) from error
    shape = getattr(answer, "shape", None)
    if shape is None:
        raise ValueError(
            f"log_density must return one number, got {type(answer).__name__}"
        )
    if shape != () or not jnp.issubdtype(answer.dtype, jnp.floating):
        raise ValueError(
            f"log_density must return one real number, got {answer.dtype} of shape "
            f"{shape}"
        )

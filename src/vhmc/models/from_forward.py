"""Turn a forward model, data with normal errors and a prior into a target."""

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
from numpy.typing import ArrayLike

from vhmc._arguments import shown
from vhmc.evaluation.target import Target
from vhmc.models.from_callable import Names, flat_parameters
from vhmc.models.least_squares import (
    Forward,
    LogLikelihood,
    Prior,
    PullBack,
    as_log_prior,
    least_squares_target,
    normal_errors,
)
from vhmc.numerics.constraints import AbstractConstraint


def from_forward(
    forward: Forward,
    data: ArrayLike,
    noise_sd: ArrayLike,
    *,
    prior: Prior,
    vjp: PullBack | None = None,
    dim: int | None = None,
    init: ArrayLike | None = None,
    names: Names | None = None,
    constraints: Mapping[str, AbstractConstraint] | None = None,
    differences: str | None = None,
    step: float | None = None,
    parallel: Any = None,
    timeout: float | None = None,
) -> Target:
    r"""Target of a forward model whose outputs are measured with normal errors.

    The log density is that of the prior less
    $\frac12 \sum_i (F_i(\theta) - y_i)^2 / \sigma_i^2$, with the constants of normal
    densities. The outputs of every evaluation are kept, and `vhmc.sample` may learn
    them in place of the log density: each evaluation then teaches as many numbers as
    there are data. The outputs and one vector-Jacobian product at one point count as
    one evaluation.

    forward: takes a vector of length `dim` in the user's space and returns the outputs,
        as many as there are data.
    data: $y$, the measured outputs.
    noise_sd: $\sigma$, a number or one for each entry of `data`.
    prior: log density of the parameters, a function of the vector that JAX can trace,
        or a pair of means and standard deviations of independent normals. It must be
        proper.
    vjp: takes a vector and a cotangent, one number for each output, and returns the
        gradient of their product $\sum_i c_i F_i(\theta)$, as an adjoint solver does.
        None if JAX can trace `forward`.
    dim: number of parameters; by default that of `init` or of the prior's means.
    init: initial vector; by default the prior's means if it is a pair, else zero.
    names, constraints, differences, step, parallel, timeout: as in `from_callable`;
        `differences` serves if there is no `vjp`.
    """
    if not callable(forward):
        raise ValueError(f"forward must be a function, got {shown(forward)}")
    if vjp is not None and differences is not None:
        raise ValueError("give vjp or differences, not both")
    values, sds = normal_errors(data, noise_sd)
    if init is None and isinstance(prior, tuple) and len(prior) == 2:
        init = _means(prior[0], dim)
    size = dim if dim is not None or init is None else np.size(init)
    if size is None:
        raise ValueError("give dim, the number of parameters")
    parameters = flat_parameters(size, init, names, constraints or {})
    if vjp is None and differences is None:
        forward, vjp = _traced(forward)
    return least_squares_target(
        LogLikelihood(forward, vjp, values, sds),
        values,
        sds,
        as_log_prior(prior, size),
        parameters,
        f"a forward model with {len(values)} outputs",
        is_constrained=bool(constraints),
        differences=differences,
        step=step,
        parallel=parallel,
        timeout=timeout,
    )


def _means(means: Any, dim: int | None) -> np.ndarray | None:
    """The prior's means as initial values, if they tell how many there are."""
    means = np.asarray(means, dtype=float)
    if dim is not None and not means.ndim:
        return np.full(dim, float(means))
    return means if means.ndim else None


def _traced(forward: Forward) -> tuple[Forward, PullBack]:
    """A forward model of JAX, compiled, with its vector-Jacobian product."""

    def pull_back(theta: Any, cotangent: Any) -> Any:
        return jax.vjp(lambda point: jax.numpy.ravel(forward(point)), theta)[1](
            cotangent
        )[0]

    return jax.jit(forward), jax.jit(pull_back)

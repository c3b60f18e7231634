r"""Laplace's approximation: the mode $\theta^L$ and the curvature there."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
import scipy.optimize

from vhmc.evaluation.target import Target
from vhmc.numerics.gaussian import Gaussian, gaussian, positive_definite

FARTHEST = 0.1
"""Standard deviations from the mode at which its search counts as unfinished."""
NEGLIGIBLE = 1e-6
"""Fall of the energy, in nats, for which the search does not go on."""


class Laplace(NamedTuple):
    """A Gaussian at the mode, with what finding it cost and what went wrong.

    guide: the Gaussian potential.
    energy: true energy at the mode.
    num_search: evaluations spent on the mode.
    num_hessian: evaluations spent on the curvature.
    warnings: sentences for the user; empty if all went well.
    """

    guide: Gaussian
    energy: float
    num_search: int
    num_hessian: int
    warnings: tuple[str, ...]


def laplace(target: Target, start: np.ndarray, max_evaluations: int = 1000) -> Laplace:
    """Find the mode by SciPy's L-BFGS, then the Hessian there.

    start: unconstrained vector, `target.start` or `target.parameters.flatten(values)`.
    max_evaluations: of the search; its last line search may go over by a few.
    """
    before = target.num_evaluations
    found = _search(target, start, max_evaluations)
    num_search = target.num_evaluations - before
    hessian = target.hessian(found.theta)
    num_hessian = target.num_evaluations - before - num_search
    precision, repairs = positive_definite(hessian)
    warnings = found.warnings + repairs
    distance = np.sqrt(found.grad @ np.linalg.solve(precision, found.grad))
    if not repairs and distance > FARTHEST:
        warnings += (
            f"the search for the mode ended {distance:.2g} standard deviations from it",
        )
    guide = gaussian(jnp.asarray(found.theta), jnp.asarray(precision))
    return Laplace(guide, found.energy, num_search, num_hessian, warnings)


class _Found(NamedTuple):
    theta: np.ndarray
    energy: float
    grad: np.ndarray
    warnings: tuple[str, ...]


def _search(target: Target, start: np.ndarray, max_evaluations: int) -> _Found:
    first = target.evaluate(start[None])
    if first.reason[0]:
        raise ValueError(
            "the log density and its gradient must be finite at the start "
            f"{start}: {first.reason[0]}"
        )
    begin = target.num_evaluations - 1
    here = _Found(start, float(first.energy[0]), first.grad[0], ())
    while True:
        left = max_evaluations - (target.num_evaluations - begin)
        before, here = here, _descend(target, here, max(left, 1))
        if here.warnings or before.energy - here.energy < NEGLIGIBLE:
            return here


def _descend(target: Target, start: _Found, max_evaluations: int) -> _Found:
    """One run of L-BFGS.

    It ends where the energy falls by a tiny fraction of its fall since the
    start: after a long fall that is still much, and another run goes on.
    """
    highest = start.energy

    def objective(theta):
        nonlocal highest
        if np.array_equal(theta, start.theta):  # already evaluated
            return 0.0, start.grad
        answer = target.evaluate(theta[None])
        energy, grad = float(answer.energy[0]), answer.grad[0]
        if np.isfinite(energy) and np.isfinite(grad).all():
            highest = max(highest, energy)
            return energy - start.energy, grad
        # A wall just above all that was seen: the line search then halves its step,
        # where a huge number would shrink it to nothing.
        return highest - start.energy + 1.0, np.zeros_like(theta)

    # Energies are in nats for any units of theta, and only their differences matter:
    # so the search ends by the fall of the energy since the start alone.
    result = scipy.optimize.minimize(
        objective,
        start.theta,
        jac=True,
        method="L-BFGS-B",
        options={
            "maxfun": max_evaluations,
            "maxiter": max_evaluations,
            "ftol": 1e-9,
            "gtol": 0.0,
        },
    )
    warnings: tuple[str, ...] = ()
    if result.status == 1:
        warnings = (f"the search for the mode stopped early: {result.message}",)
    energy = float(result.fun) + start.energy
    return _Found(result.x, energy, result.jac, warnings)

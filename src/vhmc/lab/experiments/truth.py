"""Exact posterior moments, which errors are measured against."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from vhmc._types import Potential
from vhmc.lab.baselines import ExactHMC
from vhmc.numerics.gaussian import Gaussian
from vhmc.numerics.hmc import HMC, HMCState
from vhmc.numerics.mass import mass_from_covariance

STEP_SIZE, NUM_STEPS = 0.5, 3
"""A quarter of the Gaussian's period in three steps: draws are nearly independent."""


class Truth(NamedTuple):
    """Posterior mean and covariance, and the draws that they rest on."""

    mean: np.ndarray
    covariance: np.ndarray
    num_draws: int
    acceptance: float

    def record(self, num_chains: int) -> dict[str, Any]:
        """How it was found, for `run.json`."""
        return {
            "method": f"HMC on the exact posterior, Laplace mass, {num_chains} chains",
            "draws": self.num_draws,
            "acceptance": self.acceptance,
        }

    def independent(self, rng: np.random.Generator, number: int) -> np.ndarray:
        """Independent draws of a Gaussian with these moments."""
        white = rng.standard_normal((number, len(self.mean)))
        return self.mean + white @ np.linalg.cholesky(self.covariance).T


def exact_moments(
    potential: Potential,
    guide: Gaussian,
    num_draws: int,
    num_chains: int,
    seed: int,
    on_progress: Callable[[float], None] = lambda _: None,
) -> Truth:
    """Moments by HMC on the exact potential, with Laplace's covariance as mass.

    They are summed block by block, so any number of draws fits into memory.
    """
    rng = np.random.default_rng(seed)
    chain, state, center, _ = started(rng, potential, guide, num_chains)
    dim = len(center)
    state, _ = chain.advance(rng, state, 20)
    total, squares = np.zeros(dim), np.zeros((dim, dim))
    count, acceptance = 0, []
    while count < num_draws:
        state, block = chain.advance(rng, state, 20)
        draws = block.theta.reshape(-1, dim) - center
        total += draws.sum(axis=0)
        squares += draws.T @ draws
        count += len(draws)
        acceptance.append(block.acceptance)
        on_progress(count / num_draws)
    mean = total / count
    covariance = squares / count - np.outer(mean, mean)
    return Truth(center + mean, covariance, count, float(np.mean(acceptance)))


def started(
    rng: np.random.Generator, potential: Potential, guide: Gaussian, num_chains: int
) -> tuple[ExactHMC, HMCState, np.ndarray, np.ndarray]:
    """Exact chains at draws of Laplace's Gaussian; its mean and Cholesky factor."""
    covariance = np.linalg.inv(np.asarray(guide.precision))
    mass = mass_from_covariance(jnp.asarray(covariance))
    kernel = HMC(mass, jnp.asarray(STEP_SIZE), jnp.asarray(NUM_STEPS))
    chain = ExactHMC(kernel, potential)
    lower, center = np.linalg.cholesky(covariance), np.asarray(guide.mean)
    white = rng.standard_normal((num_chains, len(center)))
    return chain, chain.init(center + white @ lower.T), center, lower


def relative_error(found: np.ndarray, truth: np.ndarray) -> float:
    """Eq. REMC: sum of absolute errors over the sum of absolute values."""
    return float(np.abs(found - truth).sum() / np.abs(truth).sum())


def covariance_of(draws: np.ndarray) -> np.ndarray:
    """Sample covariance as the paper defines it; one draw per row."""
    centred = draws - draws.mean(axis=0)
    return centred.T @ centred / len(draws)


def zero_variance_mean(draws: np.ndarray, grads: np.ndarray) -> np.ndarray:
    r"""Mean of draws, with gradients as control variates (Mira et al., 2013).

    $E[\nabla U] = 0$ under the posterior, so $\bar\theta - A \overline{\nabla U}$ has
    the same expectation for any matrix $A$; that of linear regression removes all of
    the variance if the posterior is Gaussian, and most of it if it is nearly so.

    draws, grads: one row per draw, and the gradients of the energy there.
    """
    centred, scores = draws - draws.mean(axis=0), grads - grads.mean(axis=0)
    slopes = np.linalg.lstsq(scores, centred, rcond=None)[0]
    return draws.mean(axis=0) - grads.mean(axis=0) @ slopes

r"""Moments to measure errors against: exact chains, with gradients as control variates.

In coordinates $u$ in which Laplace's Gaussian is standard, with $g = \nabla_u U$,
$E[g] = 0$ and $E[u g^\top] = I$ whatever the posterior (Stein). So

$$E[u] = E[u - g], \qquad E[u u^\top] = I + E[u (u - g)^\top],$$

and the right sides hardly vary where the posterior is close to a Gaussian: a few
thousand draws give a covariance that would otherwise take millions.
"""

from typing import NamedTuple

import numpy as np

from vhmc.lab.bench.tall.problems import TallProblem
from vhmc.lab.experiments.truth import relative_error, started
from vhmc.paper.laplace_guide import laplace

CHAINS, BURN_IN = 16, 10
REM, REC = 0.01, 0.10
"""Relative errors of mean and covariance at which a method has arrived."""
LEAST_ROUNDS = 8
KNOWN = 0.05
"""Error of the reference by that at which a method has arrived: small enough."""


class Reference(NamedTuple):
    """Exact moments.

    mode: where Laplace's Gaussian is.
    rem, rec: how far apart those of the two halves of the draws are, halved: the error
        of the reference itself.
    """

    mean: np.ndarray
    covariance: np.ndarray
    mode: np.ndarray
    rem: float
    rec: float


def reference(problem: TallProblem, num_rounds: int, seed: int = 0) -> Reference:
    """Sixteen chains, until the moments are known well or `num_rounds` are made."""
    target = problem.target()
    guide = laplace(target, target.start).guide
    rng = np.random.default_rng(seed)
    potential = problem.model.potential
    chain, state, mode, lower = started(rng, potential, guide, CHAINS)
    state, _ = chain.advance(rng, state, BURN_IN)
    firsts, seconds = [], []
    for _ in range(num_rounds):
        state, _ = chain.advance(rng, state, 1)
        u = np.linalg.solve(lower, (np.asarray(state.theta) - mode).T).T
        gap = u - np.asarray(state.grad) @ lower
        firsts.append(gap.mean(axis=0))
        seconds.append(u.T @ gap / len(u))
        if len(firsts) < LEAST_ROUNDS:
            continue
        found = _reference(np.array(firsts), np.array(seconds), mode, lower)
        if found.rem <= KNOWN * REM and found.rec <= KNOWN * REC:
            break
    return found


def _reference(
    firsts: np.ndarray, seconds: np.ndarray, mode: np.ndarray, lower: np.ndarray
) -> Reference:
    (mean, covariance), one, other = (
        _moments(firsts[part], seconds[part], mode, lower)
        for part in (slice(None), slice(None, None, 2), slice(1, None, 2))
    )
    rem, rec = (relative_error(*pair) / 2 for pair in zip(one, other, strict=True))
    return Reference(mean, covariance, mode, rem, rec)


def _moments(
    firsts: np.ndarray, seconds: np.ndarray, mode: np.ndarray, lower: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    first = firsts.mean(axis=0)
    second = np.eye(len(mode)) + seconds.mean(axis=0)
    second = (second + second.T) / 2 - np.outer(first, first)
    return mode + lower @ first, lower @ second @ lower.T

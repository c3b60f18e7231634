r"""Errors of draws from the true gradients at some of them, by Stein's identities.

For draws of $p \propto e^{-U}$, with mean $m$ and covariance $C$,

$$E[\nabla U] = 0, \qquad E[(x - m) \nabla U^\top] = I.$$

They need no density of the draws, and what they miss is what the draws have wrong.
"""

from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import pdist, squareform

NUM_BOOTSTRAP = 2000
"""Sums with random signs that the discrepancy is compared with."""


class SteinErrors(NamedTuple):
    """Errors of draws to first order, by parameter, each with its standard error.

    mean, mean_se: of means, in sd of the draws.
    sd, sd_se: of sds, relative.
    """

    mean: np.ndarray
    mean_se: np.ndarray
    sd: np.ndarray
    sd_se: np.ndarray


def stein_errors_of(
    draws: np.ndarray, theta: np.ndarray, grad: np.ndarray
) -> SteinErrors:
    r"""Errors of means and sds of draws.

    With $r = C \nabla U - (x - m)$, which is zero where $p$ is the Gaussian of the
    draws, the error of the mean is $E[r]$, and that of the variance
    $E[(x - m) r]$, to first order. The second term of $r$ has a mean that is known
    from all draws: it makes both much less noisy.

    draws: all of them, one row each.
    theta, grad: some of them, and gradients of the energy there.
    """
    mean, covariance = draws.mean(axis=0), np.atleast_2d(np.cov(draws.T))
    sd = np.sqrt(np.diag(covariance))
    centred = (theta - mean) / sd
    rest = grad @ covariance / sd - centred
    ratio = centred * rest
    number = len(theta)
    scale = np.sqrt(np.maximum(1 + ratio.mean(axis=0), 0.0))
    slope = 0.5 / np.maximum(scale, 0.25)
    return SteinErrors(
        rest.mean(axis=0),
        rest.std(axis=0, ddof=1) / np.sqrt(number),
        scale - 1,
        slope * ratio.std(axis=0, ddof=1) / np.sqrt(number),
    )


def stein_p_value(
    rng: np.random.Generator, draws: np.ndarray, theta: np.ndarray, grad: np.ndarray
) -> float:
    r"""P-value of the kernelised Stein discrepancy, by signs drawn at random.

    In coordinates in which the draws are white, with the kernel
    $(1 + |x - y|^2 / \ell^2)^{-1/2}$, where $\ell$ is the median distance.

    draws, theta, grad: as in `stein_errors_of`; the points are independent.
    """
    covariance = np.atleast_2d(np.cov(draws.T))
    factor = np.linalg.cholesky(covariance)
    x = np.linalg.solve(factor, (theta - draws.mean(axis=0)).T).T
    score = -grad @ factor
    dim = x.shape[1]
    lengths = pdist(x)
    scale = np.median(lengths) ** 2
    squares = squareform(lengths**2)
    base = 1 + squares / scale
    first = base**-1.5 / scale  # minus the slope of the kernel along x - y
    along = score @ x.T
    own = np.diag(along)
    # s(x) . (x - y) and (x - y) . s(y), for all pairs.
    left, right = own[:, None] - along, along.T - own[None, :]
    trace = dim * first - 3 * base**-2.5 / scale**2 * squares
    kernel = (score @ score.T) * base**-0.5 + first * (left - right) + trace
    np.fill_diagonal(kernel, 0.0)
    signs = rng.choice([-1.0, 1.0], (NUM_BOOTSTRAP, len(x)))
    sums = np.einsum("bi,bi->b", signs @ kernel, signs)
    return float((1 + np.sum(sums >= kernel.sum())) / (1 + NUM_BOOTSTRAP))

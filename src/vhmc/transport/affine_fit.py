r"""The Gaussian of least Fisher divergence from points and gradients, in closed form.

Among Gaussians with mean $\mu$ and covariance $\Sigma$ the mean over points of
$|\nabla U - \Sigma^{-1} (\theta - \mu)|^2_\Sigma$ is least where

$$\Sigma \, \mathrm{cov}(\nabla U) \, \Sigma = \mathrm{cov}(\theta), \quad
  \mu = \bar\theta - \Sigma \, \overline{\nabla U}.$$

For a Gaussian posterior that is the posterior, wherever the points lie.
"""

import numpy as np

from vhmc.transport.affine import Frame

PRIOR_POINTS = 5.0
"""Points that the old frame is worth, beside one for every four dimensions."""

CHANGE = 1e-4, 1e4
"""Least and largest variance of a new frame within the old one."""
SURE = 1.5
"""States of a chain are worth less than as many independent points."""
MOST_STRETCH = 10.0
MOST_STRETCHED = 3
NOTABLE = 3.0
"""Standard errors by which a variance along one direction exceeds one."""
LEAP = 1.5
"""Width along such a direction over that of the points."""
OVERSHOOT = 1.2
"""Points that outgrow a frame are on their way: it is made wider than they are yet."""


def refit(x: np.ndarray, grad: np.ndarray, weights: np.ndarray) -> Frame:
    """Frame from weighted points and gradients, shrunk towards the standard normal."""
    dim = x.shape[1]
    total = weights.sum() ** 2 / np.sum(weights**2)
    share = weights / weights.sum()
    prior = PRIOR_POINTS + dim / 4
    keep = total / (total + prior)
    mean_x, mean_grad = share @ x, share @ grad
    spread_x, spread_grad = (
        keep * (rows - mean).T @ ((rows - mean) * share[:, None])
        + (1 - keep) * np.eye(dim)
        for rows, mean in ((x, mean_x), (grad, mean_grad))
    )
    values, vectors = np.linalg.eigh(geometric_mean(spread_x, spread_grad))
    covariance = (vectors * np.clip(values, *CHANGE)) @ vectors.T
    mean = keep * (mean_x - covariance @ mean_grad)
    return Frame(mean, np.linalg.cholesky(covariance))


def stretch(x: np.ndarray) -> Frame:
    r"""Wider frame along directions in which points are more than standard normal.

    A residual can bend a wide Gaussian but not reach beyond a narrow one, where
    $|x|^2 / 2$ outgrows every network. Only spreads well above the edge that sampling
    noise gives to standard normal points (Marchenko and Pastur) count.
    """
    num_distinct, dim = len(np.unique(x, axis=0)), x.shape[1]
    if num_distinct <= dim:
        return Frame(np.zeros(dim), np.eye(dim))
    edge = SURE * (1 + np.sqrt(dim / num_distinct)) ** 2
    values, vectors = np.linalg.eigh(np.cov(x.T).reshape(dim, dim))
    widths = np.where(values > edge, OVERSHOOT * np.sqrt(values), 1.0)
    widths = np.minimum(widths, MOST_STRETCH)
    covariance = (vectors * widths**2) @ vectors.T
    # Where it was too narrow it may sit at one end, too.
    shift = vectors @ (np.where(widths > 1, 1.0, 0.0) * (vectors.T @ x.mean(axis=0)))
    return Frame(shift, np.linalg.cholesky(covariance))


def stretch_along(x: np.ndarray, directions: np.ndarray) -> Frame:
    """Wider frame along single directions that points have outgrown.

    Chains leave a mode for the mass in a few directions out of many, and the surrogate
    is in their way. Along a given direction noise is small, so less is sure sooner.

    directions: unit vectors, one a row.
    """
    dim = x.shape[1]
    frame = Frame(np.zeros(dim), np.eye(dim))
    num_distinct = len(np.unique(x, axis=0))
    for _ in range(MOST_STRETCHED):
        along = frame.to_x(x) @ directions.T
        spread = np.std(along, axis=0)
        widest = int(np.argmax(spread))
        if spread[widest] ** 2 < 1 + NOTABLE * np.sqrt(2 / num_distinct):
            break
        direction = directions[widest]
        width = min(LEAP * spread[widest], MOST_STRETCH)
        # The factor stays triangular, as every frame's.
        covariance = np.eye(dim) + (width**2 - 1) * np.outer(direction, direction)
        shift = along[:, widest].mean() * direction
        frame = frame.then(Frame(shift, np.linalg.cholesky(covariance)))
    return frame


def geometric_mean(covariance: np.ndarray, information: np.ndarray) -> np.ndarray:
    r"""Positive solution of $\Sigma F \Sigma = C$: the midpoint of $C$ and $F^{-1}$."""
    values, vectors = np.linalg.eigh(information)
    root, inverse_root = (
        (vectors * values**power) @ vectors.T for power in (0.5, -0.5)
    )
    middle_values, middle_vectors = np.linalg.eigh(root @ covariance @ root)
    middle = (middle_vectors * np.sqrt(np.maximum(middle_values, 0))) @ middle_vectors.T
    mean = inverse_root @ middle @ inverse_root
    return (mean + mean.T) / 2

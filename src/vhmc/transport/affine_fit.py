r"""Fit the affine layer: the Gaussian of least Fisher divergence, in closed form.

Among Gaussians with mean $\mu$ and covariance $\Sigma$ the mean over points of
$|\nabla U - \Sigma^{-1} (\theta - \mu)|^2_\Sigma$ is least where

$$\Sigma \, \mathrm{cov}(\nabla U) \, \Sigma = \mathrm{cov}(\theta), \quad
  \mu = \bar\theta - \Sigma \, \overline{\nabla U}.$$

For a Gaussian posterior that is the posterior, wherever the points lie.
"""

import numpy as np

from vhmc.transport.affine import Affine

PRIOR_POINTS = 5.0
"""Weight of the identity, in points; one more is added for every four dimensions."""

VARIANCES = 1e-4, 1e4
"""Least and largest variance of the layer."""
SURE = 1.5
"""Factor on the edge of the noise: states of a chain are not independent."""
MAX_WIDTH = 10.0
MAX_DIRECTIONS = 3
NOTABLE = 3.0
"""Standard errors by which a variance along one direction exceeds one."""
LEAP = 1.5
"""New width along such a direction over that of the points."""
OVERSHOOT = 1.2
"""New width over that of the points: chains that widen are still on their way."""


def fit_affine(x: np.ndarray, grad: np.ndarray, weights: np.ndarray) -> Affine:
    """The layer of least divergence, shrunk towards the identity.

    x, grad: points and gradients of the energy, one a row.
    weights: of the points.
    """
    dim = x.shape[1]
    total = weights.sum() ** 2 / np.sum(weights**2)
    probability = weights / weights.sum()
    prior = PRIOR_POINTS + dim / 4
    keep = total / (total + prior)
    mean_x, mean_grad = probability @ x, probability @ grad
    spread_x, spread_grad = (
        keep * (rows - mean).T @ ((rows - mean) * probability[:, None])
        + (1 - keep) * np.eye(dim)
        for rows, mean in ((x, mean_x), (grad, mean_grad))
    )
    values, vectors = np.linalg.eigh(geometric_mean(spread_x, spread_grad))
    covariance = (vectors * np.clip(values, *VARIANCES)) @ vectors.T
    mean = keep * (mean_x - covariance @ mean_grad)
    return Affine(mean, np.linalg.cholesky(covariance))


def widen(x: np.ndarray) -> Affine:
    r"""Layer that widens directions in which points exceed the standard normal.

    A residual can bend a wide Gaussian but not reach beyond a narrow one, where
    $|x|^2 / 2$ outgrows every network. Only variances well above the edge of the
    spectrum of standard normal points (Marchenko and Pastur) count.
    """
    num_distinct, dim = len(np.unique(x, axis=0)), x.shape[1]
    if num_distinct <= dim:
        return Affine(np.zeros(dim), np.eye(dim))
    edge = SURE * (1 + np.sqrt(dim / num_distinct)) ** 2
    values, vectors = np.linalg.eigh(np.cov(x.T).reshape(dim, dim))
    widths = np.where(values > edge, OVERSHOOT * np.sqrt(values), 1.0)
    widths = np.minimum(widths, MAX_WIDTH)
    covariance = (vectors * widths**2) @ vectors.T
    # Where the layer was too narrow its mean may be off as well.
    shift = vectors @ (np.where(widths > 1, 1.0, 0.0) * (vectors.T @ x.mean(axis=0)))
    return Affine(shift, np.linalg.cholesky(covariance))


def widen_along(x: np.ndarray, directions: np.ndarray) -> Affine:
    """Layer that widens single directions in which points exceed the standard normal.

    Chains leave a mode for the mass in a few directions out of many, and a narrow
    surrogate holds them back. Along a given direction the noise is small, so a smaller
    excess counts.

    directions: unit vectors, one a row.
    """
    dim = x.shape[1]
    layer = Affine(np.zeros(dim), np.eye(dim))
    num_distinct = len(np.unique(x, axis=0))
    for _ in range(MAX_DIRECTIONS):
        along = layer.inverse(x) @ directions.T
        spread = np.std(along, axis=0)
        widest = int(np.argmax(spread))
        if spread[widest] ** 2 < 1 + NOTABLE * np.sqrt(2 / num_distinct):
            break
        direction = directions[widest]
        width = min(LEAP * spread[widest], MAX_WIDTH)
        # The factor stays triangular, as in every affine layer.
        covariance = np.eye(dim) + (width**2 - 1) * np.outer(direction, direction)
        shift = along[:, widest].mean() * direction
        layer = layer.compose(Affine(shift, np.linalg.cholesky(covariance)))
    return layer


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

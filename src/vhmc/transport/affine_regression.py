r"""Fit the affine layer by regression of gradients on points, in present coordinates.

The symmetric matrix $A$ and the mean $\mu$ that lower the mean of
$|\nabla U - A (x - \mu)|^2$ are the mean Hessian of a smooth energy at normal points,
and their Gaussian is stationary for the Kullback-Leibler divergence (Stein's identity).
The Gaussian of least Fisher divergence (`affine_fit`) measures errors in its own
coordinates, in which a narrower one has smaller errors: it is too narrow wherever the
energy is no quadratic. It needs fewer points, and converges from anywhere.
"""

import numpy as np

from vhmc.transport.affine import Affine
from vhmc.transport.affine_fit import PRIOR_POINTS

PRECISIONS = 0.8, 20.0
"""Least and largest precision of the layer: a map grows in small steps only, since
points that are few may not determine a precision."""


def fit_by_regression(x: np.ndarray, grad: np.ndarray, weights: np.ndarray) -> Affine:
    """The layer of least squared error of the gradients, shrunk towards the identity.

    x, grad: points and gradients of the energy, one a row.
    weights: of the points.
    """
    dim = x.shape[1]
    total = weights.sum() ** 2 / np.sum(weights**2)
    keep = total / (total + PRIOR_POINTS + dim / 4)
    probability = weights / weights.sum()
    mean_x, mean_grad = probability @ x, probability @ grad
    weighted = (x - mean_x).T * probability
    spread, cross = (
        keep * weighted @ rows + (1 - keep) * np.eye(dim)
        for rows in (x - mean_x, grad - mean_grad)
    )
    # The symmetric solution of C A + A C = B + B', in the eigenvectors of C.
    values, vectors = np.linalg.eigh(spread)
    sides = vectors.T @ (cross + cross.T) @ vectors
    precision = vectors @ (sides / (values[:, None] + values)) @ vectors.T
    values, vectors = np.linalg.eigh((precision + precision.T) / 2)
    covariance = (vectors / np.clip(values, *PRECISIONS)) @ vectors.T
    mean = keep * (mean_x - covariance @ mean_grad)
    return Affine(mean, np.linalg.cholesky((covariance + covariance.T) / 2))

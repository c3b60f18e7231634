"""Cap the weight of points with large score errors, so that none dominates a fit."""

import numpy as np

MAX_ERROR = 9.0
"""Squared score error by dimension at which influence is capped: three sds."""


def capped_weights(square: np.ndarray, dim: int) -> np.ndarray:
    """Weights under which no squared error counts for more than `MAX_ERROR * dim`."""
    return np.minimum(1.0, MAX_ERROR * dim / np.maximum(square, 1e-12))


def influence(x: np.ndarray, grad: np.ndarray) -> np.ndarray:
    """Capped weights of points by their errors from the standard normal's score."""
    return capped_weights(np.sum((grad - x) ** 2, axis=1), x.shape[1])


def robust_score_errors(x: np.ndarray, grad: np.ndarray) -> np.ndarray:
    """Squared errors from the standard normal's score, by dimension, log-capped."""
    square = np.sum((grad - x) ** 2, axis=1) / x.shape[1]
    return log_capped(square)[0]


def log_capped(square: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Squares that grow by their logarithm beyond `MAX_ERROR`, and the derivatives."""
    ratio = np.maximum(square / MAX_ERROR, 1.0)
    return np.minimum(square, MAX_ERROR) + MAX_ERROR * np.log(ratio), 1 / ratio

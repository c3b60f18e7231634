"""Minibatches without replacement, epoch by epoch."""

from collections.abc import Callable
from typing import Any

import numpy as np

from vhmc._types import Scalar, Vector

LogPrior = Callable[[Vector], Scalar]
LogLikelihood = Callable[[Vector, Any], Scalar]


def draw_batches(
    rng: np.random.Generator, num_rows: int, batch_size: int, number: int
) -> np.ndarray:
    """Indices of rows, one minibatch a row.

    In an epoch every row is used once at most: the few that do not fill a batch are
    left out, others in each epoch.
    """
    if not 1 <= batch_size <= num_rows:
        raise ValueError(
            f"batch_size must be between 1 and the {num_rows} rows, got {batch_size}"
        )
    per_epoch = num_rows // batch_size
    epochs = -(-number // per_epoch)
    orders = [
        rng.permutation(num_rows)[: per_epoch * batch_size] for _ in range(epochs)
    ]
    return np.concatenate(orders).reshape(-1, batch_size)[:number]

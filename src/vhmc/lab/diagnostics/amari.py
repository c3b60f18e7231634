"""Compare unmixing matrices, which are known up to order and scale of their rows."""

import itertools

import numpy as np


def amari_distance(one: np.ndarray, other: np.ndarray) -> float:
    """Distance that ignores order, scale and sign of rows (Amari et al., 1996).

    Not normalised: at most 2 d (d - 1) for d rows.
    """
    cross = np.abs(one @ np.linalg.inv(other))
    by_row = cross / cross.max(axis=1, keepdims=True)
    by_column = cross / cross.max(axis=0, keepdims=True)
    return float((by_row.sum(axis=1) - 1).sum() + (by_column.sum(axis=0) - 1).sum())


def is_same_twin(draws: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Whether each matrix is nearer to the reference than to any of its twins.

    A twin has the reference's rows in another order or with other signs; an average
    over draws of several twins is meaningless.

    draws: matrices along the first axis.
    """
    dim = len(reference)
    inner = np.einsum("nij,kj->nik", draws, reference)
    # The nearest twin pairs rows so that the sum of absolute inner products is largest.
    rows = np.arange(dim)
    twins = [
        np.abs(inner[:, rows, list(order)]).sum(axis=1)
        for order in itertools.permutations(range(dim))
    ]
    own = inner[:, rows, rows].sum(axis=1)
    return own >= np.max(twins, axis=0) * (1 - 1e-12)

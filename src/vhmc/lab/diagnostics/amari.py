"""How far two unmixing matrices are apart, whatever their rows' order and scale."""

import itertools

import numpy as np


def amari_distance(one: np.ndarray, other: np.ndarray) -> float:
    """Amari, Cichocki and Yang (1996): zero for rows permuted, scaled or turned around.

    Not divided by anything: at most 2 d (d - 1) for d rows.
    """
    cross = np.abs(one @ np.linalg.inv(other))
    by_row = cross / cross.max(axis=1, keepdims=True)
    by_column = cross / cross.max(axis=0, keepdims=True)
    return float((by_row.sum(axis=1) - 1).sum() + (by_column.sum(axis=0) - 1).sum())


def is_same_twin(draws: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Whether each matrix is nearer to the reference than to any of its twins.

    A twin has the reference's rows in another order or with other signs; an average
    over draws of several twins means nothing.

    draws: one matrix an entry of the first axis.
    """
    dim = len(reference)
    inner = np.einsum("nij,kj->nik", draws, reference)
    # The nearest twin pairs rows so that the absolute inner products add up to most.
    rows = np.arange(dim)
    twins = [
        np.abs(inner[:, rows, list(order)]).sum(axis=1)
        for order in itertools.permutations(range(dim))
    ]
    own = inner[:, rows, rows].sum(axis=1)
    return own >= np.max(twins, axis=0) * (1 - 1e-12)

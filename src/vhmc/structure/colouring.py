"""Groups of parameters that may be moved together to see a sparse Hessian."""

import numpy as np
import scipy.sparse as sp

MAX_ALONE = 16
"""Parameters of most links that are moved one at a time, at most."""


def groups_of(graph: sp.csr_matrix) -> list[np.ndarray]:
    """The fewest groups that are found, each of which is moved as one.

    Parameters of most links are groups of their own. The others share a group if no
    parameter among them is linked to two: then it tells which of them it answers.

    graph: symmetric, with its diagonal.
    """
    linked = graph.toarray().astype(bool)
    order = np.argsort(-linked.sum(axis=1), kind="stable")
    best: list[np.ndarray] = []
    for number in range(min(MAX_ALONE, len(order)) + 1):
        alone, rest = order[:number], np.sort(order[number:])
        groups = [alone[k : k + 1] for k in range(number)] + _shared(linked, rest)
        if not best or len(groups) < len(best):
            best = groups
    return best


def hessian_from(
    graph: sp.csr_matrix, groups: list[np.ndarray], changes: np.ndarray
) -> np.ndarray:
    """The Hessian from directional derivatives of the gradient.

    changes: of shape (groups, dim): sum of the Hessian's columns over each group.
    """
    linked = graph.toarray().astype(bool)
    dim = len(linked)
    alone = np.array([group[0] for group in groups if len(group) == 1], dtype=int)
    is_shared = np.ones(dim, dtype=bool)
    is_shared[alone] = False
    matrix = np.zeros((dim, dim))
    for group, change in zip(groups, changes, strict=True):
        for column in group:
            # What parameters moved alone answer to a group is a sum over it.
            rows = linked[column] & (is_shared | (len(group) == 1))
            matrix[rows, column] = change[rows]
    for column in alone:
        matrix[column] = matrix[:, column]
    return (matrix + matrix.T) / 2


def _shared(linked: np.ndarray, rest: np.ndarray) -> list[np.ndarray]:
    """Groups of parameters without common neighbours among these, greedily."""
    inner = linked[np.ix_(rest, rest)]
    groups: list[list[int]] = []
    reached: list[np.ndarray] = []
    for place in range(len(rest)):
        for group, seen in zip(groups, reached, strict=True):
            if not (seen & inner[place]).any():
                group.append(place)
                seen |= inner[place]
                break
        else:
            groups.append([place])
            reached.append(inner[place].copy())
    return [rest[group] for group in groups]

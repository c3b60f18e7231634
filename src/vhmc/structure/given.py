"""Read the structure that a user passes."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from vhmc._arguments import shown
from vhmc.structure.record import Structure


def given(spec: Any, labels: Sequence[str]) -> Structure | None:
    """Structure from what a user passes; None if it is to be found.

    A structure that has hubs but no graph still needs one; one that `is_off` does not.

    spec: True or None to find it; False for none; a symmetric matrix of zeros and ones,
        dense or sparse; or a dict with "hubs", names of parameters, or "graph", such a
        matrix, or both.
    labels: names of the entries of the unconstrained vector.
    """
    names = tuple(labels)
    if spec is None or spec is True:
        return None
    if spec is False:
        return Structure(names)
    if not isinstance(spec, Mapping):
        return Structure(names, checked_graph(spec, len(names)), "given")
    unknown = [key for key in spec if key not in ("hubs", "graph")]
    if unknown or not spec:
        raise ValueError(
            f'structure as a dict takes "hubs" and "graph", got {shown(spec)}'
        )
    hubs = _indices(spec.get("hubs", ()), names)
    graph = spec.get("graph")
    matrix = None if graph is None else checked_graph(graph, len(names))
    return Structure(names, matrix, "given", hubs)


def checked_graph(matrix: Any, dim: int) -> sp.csr_matrix:
    """A matrix of zeros and ones, made symmetric, with its diagonal set."""
    array = sp.coo_matrix(matrix) if sp.issparse(matrix) else _array(matrix)
    if array is None:
        raise ValueError(
            "structure must be True, False, a matrix of zeros and ones or a dict, "
            f"got {shown(matrix)}"
        )
    if array.shape != (dim, dim):
        raise ValueError(
            f"structure must have a row and a column for each of the {dim} "
            f"unconstrained parameters, got shape {array.shape}"
        )
    entries = array.data if sp.issparse(array) else array
    if not np.isin(entries, (0, 1)).all():
        raise ValueError("structure must have entries 0 and 1 only")
    one_way = sp.csr_matrix(array.astype(bool))
    graph = sp.csr_matrix(one_way + one_way.T + sp.eye(dim, dtype=bool, format="csr"))
    graph.eliminate_zeros()
    graph.sort_indices()
    return graph


def _array(matrix: Any) -> np.ndarray | None:
    """An array of numbers; None if it is none."""
    try:
        array = np.asarray(matrix)
    except ValueError:
        return None
    return array if array.ndim and array.dtype.kind in "biuf" else None


def _indices(hubs: Any, labels: tuple[str, ...]) -> tuple[int, ...]:
    """Places of parameters by label, or by name for all entries of an array."""
    names = [hubs] if isinstance(hubs, str) else hubs
    if not isinstance(names, Sequence) or not all(isinstance(n, str) for n in names):
        raise ValueError(f"hubs must be names of parameters, got {shown(hubs)}")
    found: list[int] = []
    for name in names:
        places = [i for i, label in enumerate(labels) if label == name]
        places = places or [
            i for i, label in enumerate(labels) if label.startswith(f"{name}[")
        ]
        if not places:
            known = ", ".join(dict.fromkeys(label.split("[")[0] for label in labels))
            raise ValueError(f"hub {name} is not a parameter: there are {known}")
        found += places
    return tuple(dict.fromkeys(found))

"""The graph of a model that JAX cannot trace, from points that a run has evaluated."""

import numpy as np

from vhmc.evaluation.evaluator import EvaluationLog
from vhmc.structure.probed import graph_from_gradients, num_points_needed, standardised
from vhmc.structure.record import Structure
from vhmc.surrogate.near_mass import near_mass

MAX_DIM = 100
"""Dimensions beyond which no graph is looked for, as each one takes time."""
CENTRAL = 0.5, 8
"""Points that are used: this part of them, or so many for each parameter if more."""
ROUNDS = 4, 16
"""Rounds of training after which a graph is looked for again.

Few points can miss weak edges: at the end of warm-up, with four for each parameter,
seven weak ones of a logistic model of 26 parameters.
"""


def refined(structure: Structure, log: EvaluationLog) -> Structure:
    """The structure with a graph from gradients; itself if that says nothing new.

    A function of the points alone, so that a run that is replayed finds the same. Only
    for a model whose graph could not be read. If one was found before, edges are added
    and none is removed: with fewer points, some may have been missed.

    log: all points evaluated so far.
    """
    if not _is_sought(structure):
        return structure
    points = near_mass(log)
    chosen = _central(points.theta)
    found = graph_from_gradients(points.theta[chosen], points.grad[chosen])
    if found is None:
        return structure
    if structure.source == "gradients" and structure.graph is not None:
        found = found + structure.graph
        if found.nnz == structure.graph.nnz:
            return structure
    return structure.with_graph(found, "gradients")


def num_missing(structure: Structure, log: EvaluationLog) -> int:
    """Points that must still be evaluated before a graph can be looked for."""
    if not _is_sought(structure):
        return 0
    return max(0, num_points_needed(structure.dim) - len(near_mass(log).theta))


def _is_sought(structure: Structure) -> bool:
    return structure.source in ("assumed", "gradients") and structure.dim <= MAX_DIM


def _central(thetas: np.ndarray) -> np.ndarray:
    """Places of the points nearest to the median, by the worst coordinate.

    Which parameters an entry of the gradient depends on can be told anywhere, and best
    where it is a simple function of them: not far along a funnel.
    """
    part, each = CENTRAL
    distance = np.abs(standardised(thetas)).max(axis=1)
    number = max(int(part * len(thetas)), each * thetas.shape[1])
    return np.sort(np.argsort(distance, kind="stable")[:number])

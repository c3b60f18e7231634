"""The graph of a model that JAX cannot trace, from points that a run has evaluated."""

import numpy as np

from vhmc.evaluation.evaluator import EvaluationLog
from vhmc.structure.probed import graph_from_gradients, standardised
from vhmc.structure.record import Structure
from vhmc.surrogate.trainer import near_mass

MAX_DIM = 100
"""Dimensions beyond which no graph is looked for, as each one takes time."""
FEWEST = 60, 8
"""Points that are needed: so many, and so many for each parameter.

With six for each, five weak edges of a logistic model of 26 parameters were missed.
"""
CENTRAL = 0.5
"""Part of the points that is used, if that is more."""
ROUNDS = 4, 16
"""Rounds of training after which a graph is looked for while none is known."""


def refined(structure: Structure, log: EvaluationLog) -> Structure:
    """The structure with a graph from gradients; itself if that says nothing new.

    A function of the points alone, so that a run that is replayed finds the same. Only
    for a model whose graph could not be read. If one was found before, edges are added
    and none is removed: where the draws were not good, one may have been missing.

    log: all points evaluated so far.
    """
    if structure.source not in ("assumed", "gradients") or structure.dim > MAX_DIM:
        return structure
    points = near_mass(log)
    least, each = FEWEST
    needed = max(least, each * structure.dim)
    if len(points.theta) < needed:
        return structure
    chosen = _central(points.theta, needed)
    found = graph_from_gradients(points.theta[chosen], points.grad[chosen])
    if found is None:
        return structure
    if structure.source == "gradients" and structure.graph is not None:
        found = found + structure.graph
        if found.nnz == structure.graph.nnz:
            return structure
    return structure.with_graph(found, "gradients")


def _central(thetas: np.ndarray, least: int) -> np.ndarray:
    """Places of the points nearest to the median, by the worst coordinate.

    Which parameters an entry of the gradient depends on can be told anywhere, and best
    where it is a simple function of them: not far along a funnel.
    """
    distance = np.abs(standardised(thetas)).max(axis=1)
    number = max(least, int(CENTRAL * len(thetas)))
    return np.sort(np.argsort(distance, kind="stable")[:number])

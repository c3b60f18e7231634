"""Evaluated points near the mass, and the first map that they give."""

import numpy as np

from vhmc.evaluation.evaluator import EvaluationLog
from vhmc.surrogate.training_set import AWAY
from vhmc.transport.affine import Affine
from vhmc.transport.affine_fit import fit_affine
from vhmc.transport.influence import influence
from vhmc.transport.map_fit import EvaluatedPoints
from vhmc.transport.transport_map import TransportMap

FEWEST_FOR_GRAPH = 24
"""Points below which no map is fitted along a graph."""


def near_mass(log: EvaluationLog) -> EvaluatedPoints:
    """Finite points but those of the search, which may lie where no mass is."""
    known = log.is_finite & ~np.isin(log.phase, AWAY)
    if known.sum() < FEWEST_FOR_GRAPH:
        known = log.is_finite
    return EvaluatedPoints(log.theta[known], log.energy[known], log.grad[known])


def affine_map(log: EvaluationLog) -> TransportMap:
    """A map from points alone: the Gaussian of least Fisher divergence."""
    usable = log.is_finite & ~np.isin(log.phase, AWAY)
    usable = usable if usable.any() else log.is_finite
    theta, grad = log.theta[usable], log.grad[usable]
    # The later points know better where the mass is.
    theta, grad = theta[-max(len(theta) // 2, 1) :], grad[-max(len(grad) // 2, 1) :]
    spread = np.maximum(theta.std(axis=0), 1e-8)
    layer = Affine(theta.mean(axis=0), np.diag(spread))
    x = layer.inverse(theta)
    pulled = layer.pull_back(x, grad)
    inner = fit_affine(x, pulled, influence(x, pulled))
    return TransportMap((layer.compose(inner),))

"""A map of mass that surrounds a mode, as a slab does its spike."""

import numpy as np

from vhmc.evaluation.evaluator import Evaluator
from vhmc.sampler.locate import Located, Modes
from vhmc.sampler.modes.outside import Outside
from vhmc.sampler.plan import Plan
from vhmc.sampler.warm_up import warm_up
from vhmc.transport.affine import Affine
from vhmc.transport.transport_map import TransportMap


def wide_map(
    rng: np.random.Generator,
    evaluator: Evaluator,
    found: Outside,
    theta: np.ndarray,
    plan: Plan,
) -> TransportMap | None:
    """A Gaussian as wide as the mass outside; None where it does not cover any.

    theta: draws of the posterior as it is known, one a row.
    """
    center, dim = np.mean(theta, axis=0), theta.shape[1]
    scatter = np.cov(theta.T).reshape(dim, dim)
    layer = Affine(center, np.linalg.cholesky(scatter))
    squares = np.mean(layer.inverse(found.theta) ** 2, axis=1)
    width = np.sqrt(found.mass @ squares / found.mass.sum())
    if not width > 1:
        return None
    layer = Affine(center, width * layer.factor)
    nowhere = np.zeros((0, dim))
    modes = Modes(nowhere, np.zeros(0), nowhere, np.zeros(0, dtype=bool), has_mode=True)
    located = Located(layer, [], modes)
    most = plan.warm_up // 2
    return TransportMap((warm_up(rng, evaluator.evaluate, located, most, plan.chains),))

"""Take what is known of a posterior from one set of coordinates to another."""

import numpy as np

from vhmc.sampler.locate import Modes
from vhmc.transport.layer import AbstractLayer


def recast(modes: Modes, old: AbstractLayer | None, new: AbstractLayer) -> Modes:
    """Ends of descents inside of a layer, given those inside of another one.

    old: the layer that they are inside of, if any.
    """
    if not len(modes.ends):
        return modes
    theta, energy, grad = modes.ends, modes.energies, modes.grads
    if old is not None:
        grad = old.push_forward(theta, grad + old.log_det_grad(theta))
        energy = energy + old.log_det(theta)
        theta = old.forward(theta)
    with np.errstate(all="ignore"):
        x, inner, log_det = new.pulled_back(theta, grad)
    is_known = np.isfinite(x.sum(axis=1) + inner.sum(axis=1) + log_det)
    return modes._replace(
        ends=x[is_known],
        energies=(energy - log_det)[is_known],
        grads=inner[is_known],
        arrived=modes.arrived[is_known],
    )

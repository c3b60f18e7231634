"""Means of parameters with gradients as control variates (Mira et al., 2013)."""

import numpy as np


def zero_variance_mean(draws: np.ndarray, grads: np.ndarray) -> np.ndarray:
    r"""Mean of draws, less what their gradients say of its chance.

    $E[\nabla U] = 0$ under the posterior, so $\bar\theta - A \overline{\nabla U}$ has
    the same expectation for any matrix $A$; that of linear regression leaves nothing
    of the variance if the posterior is Gaussian, and little if it is close to one.

    draws, grads: one row a draw, with the energy's gradient there.
    """
    centred, scores = draws - draws.mean(axis=0), grads - grads.mean(axis=0)
    slopes = np.linalg.lstsq(scores, centred, rcond=None)[0]
    return draws.mean(axis=0) - grads.mean(axis=0) @ slopes

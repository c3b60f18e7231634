r"""Bridge sampling: the ratio of two normalising constants, from draws of both.

Meng and Wong (1996). For $p_i = q_i / Z_i$ and $n_i$ draws of each, the ratio
$r = Z_1 / Z_2$ of least variance solves

$$n_1 \, \mathrm{mean}_1 \, \frac{1}{1 + e^{l - c}}
  = n_2 \, \mathrm{mean}_2 \, \frac{1}{1 + e^{c - l}},
  \quad l = \log q_1 / q_2, \quad c = \log r + \log n_2 / n_1,$$

to which their iteration converges. The left side rises with $c$ and the right one
falls, so there is one solution, and it is found within a bracket.
"""

from typing import NamedTuple

import numpy as np
import scipy.optimize
from scipy.special import expit

from vhmc.numerics.effective_size import FEWEST_DRAWS, mean_ess

FEWEST_SHARED = 5.0
"""Draws that both densities must share for a ratio to be believed at all."""
BEYOND = 50.0
"""Distance in nats of the bracket's ends from the outermost log ratios."""


class Bridge(NamedTuple):
    """A ratio of normalising constants, with how far it can be trusted.

    log_ratio: of the first constant to the second; not a number without any overlap.
    error: its standard error; infinite if the draws share next to nothing.
    overlap: of the two densities: 1 if they are the same, 0 if they have no common
        support.
    """

    log_ratio: float
    error: float
    overlap: float


def bridge(first: np.ndarray, second: np.ndarray) -> Bridge:
    r"""Log ratio of the normalising constants of two densities, by an optimal bridge.

    Each argument holds $\log q_1 / q_2$ of the unnormalised densities, that is the
    second energy less the first. Shape (chain, draw) for chains, whose effective sizes
    are then estimated, and (draw,) for independent draws. Infinite where only one
    density vanishes.

    first: at draws of the first density.
    second: at draws of the second.
    """
    num_first, num_second = _effective(first), _effective(second)
    shift = np.log(num_second / num_first)

    def excess(centre: float) -> float:
        gone, come = np.mean(expit(centre - first)), np.mean(expit(second - centre))
        return float(num_first * gone - num_second * come)

    ratios = np.concatenate([first.ravel(), second.ravel()])
    finite = ratios[np.isfinite(ratios)]
    if not len(finite):
        return Bridge(np.nan, np.inf, 0.0)
    low, high = finite.min() - BEYOND, finite.max() + BEYOND
    if not excess(low) < 0 < excess(high):
        return Bridge(np.nan, np.inf, 0.0)
    centre = float(scipy.optimize.brentq(excess, low, high, xtol=1e-10))
    # By each side, the chance that a draw might as well be one of the other density.
    gone, come = expit(centre - first), expit(second - centre)
    shared = num_first * float(np.mean(gone))
    overlap = shared * (1 / num_first + 1 / num_second)
    error = np.hypot(_relative_error(gone), _relative_error(come))
    return Bridge(
        float(centre - shift),
        float(error) if shared >= FEWEST_SHARED else np.inf,
        min(1.0, overlap),
    )


def _effective(values: np.ndarray) -> float:
    """Effective number of draws for a mean of values, at most their number."""
    if values.ndim == 1 or values.shape[1] < FEWEST_DRAWS:
        return float(values.size)
    finite = np.where(np.isfinite(values), values, _outermost(values))
    size = float(mean_ess(finite)) if np.ptp(finite) > 0 else np.nan
    return float(values.size) if np.isnan(size) else min(size, float(values.size))


def _outermost(values: np.ndarray) -> np.ndarray:
    """The largest finite size with the values' signs, in place of infinite ones."""
    finite = values[np.isfinite(values)]
    return np.sign(values) * (np.abs(finite).max() if len(finite) else 1.0)


def _relative_error(values: np.ndarray) -> float:
    """Standard error of a mean, relative to it."""
    deviation = np.std(values, ddof=1) / np.mean(values)
    return float(deviation / np.sqrt(_effective(values)))

"""Importance weights: their tails, their efficiency, the acceptance they imply."""

import numpy as np

from vhmc._imports import load_arviz

FEWEST = 25
"""Weights below which no tail can be fitted."""


def pareto_smooth(
    log_ratios: np.ndarray, reff: float = 1.0
) -> tuple[np.ndarray, float]:
    """Pareto-smoothed log weights and the shape of their tail, by either ArviZ.

    reff: relative efficiency of the draws; the less, the longer is the tail.
    """
    if len(log_ratios) < FEWEST or np.ptp(log_ratios) == 0:
        return log_ratios, np.inf
    arviz = load_arviz()
    if hasattr(arviz, "psislw"):
        log_weights, tail = arviz.psislw(log_ratios, reff=reff)
    else:
        from arviz_stats.base import array_stats

        # ArviZ 1 takes log likelihoods, as for leave-one-out, and changes their sign.
        log_weights, tail = array_stats.psislw(-log_ratios, reff=reff)
    return np.asarray(log_weights), float(tail)


def efficiency(log_weights: np.ndarray, probability: np.ndarray) -> float:
    r"""Importance efficiency $E[w]^2 / E[w^2]$.

    probability: of the draws, under which they represent their density.
    """
    weights = np.exp(log_weights - np.max(log_weights))
    return float((probability @ weights) ** 2 / (probability @ weights**2))


def independent_acceptance(log_weights: np.ndarray, probability: np.ndarray) -> float:
    r"""Mean of $\min(1, w_j / w_i)$ over pairs: acceptance of independent proposals."""
    known = np.isfinite(log_weights)
    finite, part = log_weights[known], probability[known]
    gain = finite[None, :] - finite[:, None]
    return float(part @ np.exp(np.minimum(gain, 0.0)) @ part)

"""Importance weights: how well draws of one density serve another."""

import numpy as np

from vhmc import _arviz

FEWEST = 25
"""Weights below which no tail can be fitted."""


def pareto_smooth(log_ratios: np.ndarray) -> tuple[np.ndarray, float]:
    """Pareto-smoothed log weights and the shape of their tail, by either ArviZ."""
    if len(log_ratios) < FEWEST or np.ptp(log_ratios) == 0:
        return log_ratios, np.inf
    arviz = _arviz.load()
    if hasattr(arviz, "psislw"):
        log_weights, tail = arviz.psislw(log_ratios)
    else:
        from arviz_stats.base import array_stats

        # ArviZ 1 takes log likelihoods, as for leave-one-out, and changes their sign.
        log_weights, tail = array_stats.psislw(-log_ratios)
    return np.asarray(log_weights), float(tail)


def normalised(log_weights: np.ndarray) -> np.ndarray:
    """Weights that add up to one."""
    weights = np.exp(log_weights - np.max(log_weights))
    return weights / weights.sum()


def efficiency(log_weights: np.ndarray, share: np.ndarray) -> float:
    r"""Share of the draws that count, $E[w]^2 / E[w^2]$.

    share: probabilities under which the draws represent their density.
    """
    weights = np.exp(log_weights - np.max(log_weights))
    return float((share @ weights) ** 2 / (share @ weights**2))


def delayed_acceptance(log_weights: np.ndarray, share: np.ndarray) -> float:
    r"""Mean of $\min(1, w_j / w_i)$ over pairs: acceptance of independent proposals."""
    known = np.isfinite(log_weights)
    finite, part = log_weights[known], share[known]
    gain = finite[None, :] - finite[:, None]
    return float(part @ np.exp(np.minimum(gain, 0.0)) @ part)

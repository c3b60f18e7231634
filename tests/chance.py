"""One rule for all statistical tests."""

import numpy as np

LIMIT = 5.0
"""With 50 batches the ratio below is close to Student's t with 49 degrees of freedom:
above 5 about once in 130,000 comparisons, whatever the target."""


def standard_errors(draws: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Distance of each sample mean from the truth in Monte Carlo standard errors.

    Rows are draws in order of time; batches must be long against the autocorrelation.
    """
    batches = draws.reshape(50, -1, draws.shape[-1]).mean(1)
    error = batches.std(0, ddof=1) / np.sqrt(len(batches))
    return np.abs(batches.mean(0) - truth) / error

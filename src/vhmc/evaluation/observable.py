r"""What a target knows of itself where its likelihood is a model with normal errors.

The energy is $U(\theta) = p(\theta) + \frac12 |(F(\theta) - y) / \sigma|^2$, with $p$
the prior's energy and the constant of the errors, $F$ the forward model's outputs and
$y$ the data. A surrogate may then learn $F$ in place of $U$.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from vhmc._types import Potential


class Observable(NamedTuple):
    """Data with normal errors, and the rest of the energy.

    data: measured outputs.
    sd: standard deviations of their errors.
    prior: energy of the prior on the unconstrained space, with the constant of the
        errors' density, for JAX to trace.
    prior_rows: its values and gradients on the host, at one point a row.
    """

    data: np.ndarray
    sd: np.ndarray
    prior: Potential
    prior_rows: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]

    def misfit(self, outputs: np.ndarray) -> np.ndarray:
        """Outputs less the data, in standard deviations, one row a point."""
        return (outputs - self.data) / self.sd

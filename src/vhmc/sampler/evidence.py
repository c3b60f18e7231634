r"""The evidence: the log of the posterior's normalising constant, without evaluations.

With $q = e^{-V} / Z_q$ the surrogate and $e^{-U}$ the density as the model gives it,

$$\log \int e^{-U} = \log Z_q + \log E_q \, e^{V - U}.$$

The first term is that of a density which costs nothing: a bridge from the standard
normal of the latent coordinates, in which the surrogate is nearly one. The second is
the mean weight of the checked draws.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from vhmc.numerics.bridge import bridge
from vhmc.sampler.check import Check
from vhmc.sampler.drawing import Drawn, Mixed
from vhmc.surrogate.mixture import Mixture
from vhmc.surrogate.surrogate import Surrogate

MOST_DRAWS = 2000
"""Draws of the standard normal at one end of the bridge, at most.

The residual at 8,000 took over a second; with 2,000 the error of the bridge was half of
that of the weights at most, on five runs in 2 to 30 dimensions."""
UNSTABLE = 0.7
"""Pareto k of the weights above which their mean has no error that can be estimated."""


class Evidence(NamedTuple):
    """Log of a normalising constant, in nats, and its standard error."""

    value: float
    error: float

    def __str__(self) -> str:
        if not np.isfinite(self.error):
            return "not known"
        digits = 1 - np.floor(np.log10(max(self.error, 1e-4)))
        digits = int(np.clip(digits, 0, 4))
        return f"{self.value:.{digits}f} ± {self.error:.{digits}f}"


def log_evidence(
    rng: np.random.Generator,
    surrogate: Surrogate | Mixture,
    drawn: Drawn | Mixed,
    check: Check,
) -> Evidence:
    r"""Log of $\int e^{-U}$ with its standard error; infinite where nothing is known.

    All arguments are of one attempt, in the same coordinates. A layer outside of them
    changes nothing: it has its determinant in both energies.
    """
    own = normaliser(rng, surrogate, drawn)
    weight = log_mean_weight(surrogate, check, drawn.ess)
    return Evidence(own.value + weight.value, float(np.hypot(own.error, weight.error)))


def normaliser(
    rng: np.random.Generator, surrogate: Surrogate | Mixture, drawn: Drawn | Mixed
) -> Evidence:
    r"""Log of $\int e^{-V}$, which is zero for a mixture, with its error."""
    if isinstance(surrogate, Mixture):
        return Evidence(0.0, float(np.exp(surrogate.log_masses) @ surrogate.errors))
    assert isinstance(drawn, Drawn)
    return log_normaliser(rng, surrogate, drawn)


def log_normaliser(
    rng: np.random.Generator, surrogate: Surrogate, drawn: Drawn
) -> Evidence:
    r"""Log of $\int e^{-V}$ of a surrogate, in latent or other coordinates.

    Without a residual, and with a guard that no draw meets, it is
    $\frac d2 \log 2 \pi$ exactly.

    drawn: its draws.
    """
    dim = surrogate.dim
    normal = rng.standard_normal((min(drawn.energy.size, MOST_DRAWS), dim))
    added = surrogate.residual.energies(normal)
    added = added + surrogate.guard.energy(np.linalg.norm(normal, axis=1))
    own = np.sum(drawn.x**2, axis=-1) / 2 - drawn.energy
    found = bridge(own, -added)
    constant = 0.5 * dim * float(np.log(2 * np.pi))
    return Evidence(found.log_ratio + constant, found.error)


def log_mean_weight(
    surrogate: Surrogate | Mixture, check: Check, ess: float
) -> Evidence:
    r"""Log of the mean of $w = e^{V - U}$ over draws of the surrogate.

    Where the weights have too heavy a tail for a variance, all that they add to the
    mean of their logs counts as an error: the truth may be far above.

    ess: effective number of the draws that the checked ones were chosen from.
    """
    known = np.isfinite(check.energy)
    if not known.any():
        return Evidence(np.nan, np.inf)
    raw, part = np.full(len(known), -np.inf), check.probability
    raw[known] = surrogate.energies(check.theta[known]) - check.energy[known]
    value = float(logsumexp(raw, b=part))
    excess = np.exp(raw - value) - 1
    variance = len(raw) / max(1, len(raw) - 1) * np.sum((part * excess) ** 2)
    variance += part @ excess**2 / max(ess, 1.0)
    if check.pareto_k > UNSTABLE:
        variance += (value - np.average(raw[known], weights=part[known])) ** 2
    return Evidence(value, float(np.sqrt(variance)))

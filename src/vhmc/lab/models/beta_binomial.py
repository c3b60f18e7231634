r"""The beta-binomial model of overdispersed death rates (Albert, 2009).

Deaths $y_j$ of $n_j$ at risk have mean rate $m$ and precision $K$; the prior is
$p(m, K) \propto [m (1 - m)]^{-1} (1 + K)^{-2}$. The paper prints $x_2 =
\mathrm{logit}(K)$, which has no meaning for $K > 1$; we use $x_2 = \log K$, as the R
package LearnBayes does.
"""

from importlib import resources
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln
from jaxtyping import Array

from vhmc.evaluation.target import Target
from vhmc.models.from_jax import from_jax
from vhmc.numerics.constraints import positive, unit_interval

START = {"m": 0.001, "K": 1000.0}
STIRLING = 1000.0  # the first term left out is below 1e-18 there


class Mortality(NamedTuple):
    """People at risk and deaths, by city."""

    at_risk: np.ndarray
    deaths: np.ndarray


def cancer_mortality() -> Mortality:
    """Stomach cancer in the 20 largest cities of Missouri (Tsutakawa et al., 1985)."""
    with resources.files(__package__).joinpath("cancermortality.csv").open() as file:
        table = np.loadtxt(file, delimiter=",", skiprows=1)
    return Mortality(*table.T)


def log_density(data: Mortality, m: Array, K: Array) -> Array:
    """Log posterior density of rate and precision, up to a constant."""
    at_risk, deaths = jnp.asarray(data.at_risk), jnp.asarray(data.deaths)
    alive = at_risk - deaths
    likelihood = (
        log_rising(K * m, deaths)
        + log_rising(K * (1 - m), alive)
        - log_rising(K, at_risk)
    )
    prior = -jnp.log(m) - jnp.log1p(-m) - 2 * jnp.log1p(K)
    return jnp.sum(likelihood) + prior


def log_rising(x: Array, n: Array) -> Array:
    r"""Log of the rising factorial $\Gamma(x + n) / \Gamma(x)$, stable for large $x$.

    The difference of two log-gammas has no digit left once $x$ is near $10^{15}$; from
    `STIRLING` on we take the difference of two Stirling series term by term.
    """
    large = jnp.maximum(x, STIRLING)
    series = (
        (large - 0.5) * jnp.log1p(n / large)
        + n * (jnp.log(large + n) - 1)
        + (1 / (large + n) - 1 / large) / 12
        - (1 / (large + n) ** 3 - 1 / large**3) / 360
    )
    small = jnp.minimum(x, STIRLING)
    return jnp.where(x < STIRLING, gammaln(small + n) - gammaln(small), series)


def beta_binomial(data: Mortality | None = None) -> Target:
    r"""Target on $x_1 = \mathrm{logit}(m)$, $x_2 = \log K$."""
    data = cancer_mortality() if data is None else data
    return from_jax(
        lambda params: log_density(data, **params),
        START,
        constraints={"m": unit_interval, "K": positive},
    )

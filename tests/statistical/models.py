"""Three models from which parameters and data can be drawn: all that proof needs.

Each is written once, in JAX: its log density serves every kernel and the whole sampler.
Parameters are drawn as unconstrained vectors, of which ranks and moments are taken.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import vhmc
from vhmc.models.parameters import Parameters


@dataclass(frozen=True)
class Model:
    """A joint law of parameters and data.

    init: names and shapes of the parameters, with values to start from.
    constraints: where they live.
    prior: from a key to an unconstrained vector.
    simulate: from a key and named values to data.
    log_density: of named values and data together.
    budget: evaluations with which the default sampler does well.
    """

    init: dict[str, Any]
    constraints: dict[str, Any]
    prior: Callable[[jax.Array], jax.Array]
    simulate: Callable[[jax.Array, dict[str, jax.Array]], Any]
    log_density: Callable[[dict[str, jax.Array], Any], jax.Array]
    budget: int

    @functools.cached_property
    def parameters(self) -> Parameters:
        return Parameters(self.init, self.constraints)

    @property
    def dim(self) -> int:
        return self.parameters.dim

    def energy(self, theta: jax.Array, data: Any) -> jax.Array:
        """Minus the log density of an unconstrained vector, Jacobian included."""
        values, log_jacobian = self.parameters.unflatten(theta)
        return -self.log_density(values, data) - log_jacobian

    def data(self, key: jax.Array, theta: jax.Array) -> Any:
        """Data given an unconstrained vector."""
        return self.simulate(key, self.parameters.unflatten(theta)[0])

    def joint(self, key: jax.Array) -> tuple[jax.Array, Any]:
        """An unconstrained vector from the prior, and data given it."""
        key_theta, key_data = jax.random.split(key)
        theta = self.prior(key_theta)
        return theta, self.data(key_data, theta)


# Mean and variance of six observations, with the conjugate prior: v is inverse gamma
# with shape 4 and scale 3, the mean normal with variance v.
SHAPE, SCALE = 4, 3.0


def _normal_prior(key):
    key_variance, key_mean = jax.random.split(key)
    # A gamma variable of whole shape is a sum of exponential ones.
    gamma = jnp.sum(jax.random.exponential(key_variance, (SHAPE,)))
    log_variance = jnp.log(SCALE) - jnp.log(gamma)
    mean = jnp.exp(log_variance / 2) * jax.random.normal(key_mean)
    return jnp.stack([mean, log_variance])


def _normal_data(key, values):
    noise = jax.random.normal(key, (6,))
    return values["mean"] + jnp.sqrt(values["variance"]) * noise


def _normal_density(values, data):
    mean, variance = values["mean"], values["variance"]
    log_prior = -(SHAPE + 1) * jnp.log(variance) - SCALE / variance
    squares = mean**2 + jnp.sum((data - mean) ** 2)
    return log_prior - 3.5 * jnp.log(variance) - 0.5 * squares / variance


NORMAL = Model(
    {"mean": 0.0, "variance": 1.0},
    {"variance": vhmc.positive},
    _normal_prior,
    _normal_data,
    _normal_density,
    400,
)


# Intercept and two slopes with unit normal priors, fifteen binary answers.
def _logistic_data(key, values):
    key_design, key_answer = jax.random.split(key)
    design = jax.random.normal(key_design, (15, 3)).at[:, 0].set(1.0)
    chance = jax.nn.sigmoid(design @ values["beta"])
    return design, jax.random.uniform(key_answer, (15,)) < chance


def _logistic_density(values, data):
    design, answers = data
    margins = jnp.where(answers, 1.0, -1.0) * (design @ values["beta"])
    return -0.5 * jnp.sum(values["beta"] ** 2) + jnp.sum(jax.nn.log_sigmoid(margins))


LOGISTIC = Model(
    {"beta": np.zeros(3)},
    {},
    lambda key: jax.random.normal(key, (3,)),
    _logistic_data,
    _logistic_density,
    400,
)


# Four groups of three observations with unit noise; the spread of the groups' means is
# unknown, its logarithm normal with sd 0.5.
GROUPS, IN_GROUP, LOG_SD = 4, 3, 0.5


def _hierarchical_prior(key):
    white = jax.random.normal(key, (2 + GROUPS,))
    log_spread = LOG_SD * white[1]
    means = white[0] + jnp.exp(log_spread) * white[2:]
    return jnp.concatenate([white[:1], log_spread[None], means])


def _hierarchical_data(key, values):
    return values["means"][:, None] + jax.random.normal(key, (GROUPS, IN_GROUP))


def _hierarchical_density(values, data):
    centre, spread, means = values["centre"], values["spread"], values["means"]
    log_spread = jnp.log(spread)
    log_prior = -0.5 * centre**2 - 0.5 * (log_spread / LOG_SD) ** 2 - log_spread
    log_prior -= 0.5 * jnp.sum(((means - centre) / spread) ** 2) + GROUPS * log_spread
    return log_prior - 0.5 * jnp.sum((data - means[:, None]) ** 2)


HIERARCHICAL = Model(
    {"centre": 0.0, "spread": 1.0, "means": np.zeros(GROUPS)},
    {"spread": vhmc.positive},
    _hierarchical_prior,
    _hierarchical_data,
    _hierarchical_density,
    800,
)


# Four data of the square of a number, whose sign they do not tell.
def _square_data(key, values):
    return values["x"] ** 2 + 1.5 * jax.random.normal(key, (4,))


def _square_density(values, data):
    residuals = (data - values["x"] ** 2) / 1.5
    return -0.5 * (values["x"] / 2) ** 2 - 0.5 * jnp.sum(residuals**2)


SQUARE = Model(
    {"x": 1.0},
    {},
    lambda key: 2 * jax.random.normal(key, (1,)),
    _square_data,
    _square_density,
    800,
)

MODELS = {"normal": NORMAL, "logistic": LOGISTIC, "hierarchical": HIERARCHICAL}

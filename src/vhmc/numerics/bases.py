r"""Random features: the nodes $\sigma(\theta; \gamma_i)$ of eq. slfn.

A basis is drawn once and never trained. Every law takes the Gaussian `guide` that
says where the posterior is believed to be; `standard_normal(dim)` in its place gives
nodes of unit scale around the origin.
"""

import abc
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.scipy as jsp
from jaxtyping import Array, Float

from vhmc._types import Points, PRNGKey, Vector
from vhmc.numerics.gaussian import Gaussian, standard_normal

Features = Float[Array, " s"]
Square = Float[Array, "s s"]


class AbstractBasis(eqx.Module):
    """A fixed vector of features of theta."""

    @property
    @abc.abstractmethod
    def num_features(self) -> int:
        """The paper's $s$."""

    @abc.abstractmethod
    def features(self, theta: Vector) -> Features:
        r"""Node outputs $\sigma(\theta; \gamma_i)$."""

    @abc.abstractmethod
    def jacobian(self, theta: Vector) -> Float[Array, "d s"]:
        r"""Node gradients as columns: the paper's $A(\theta)$."""


@jax.custom_jvp
def softplus(x: Array) -> Array:
    r"""Smooth hinge $\log(1 + e^x)$, the paper's activation.

    The derivative is given by hand because the leapfrog step needs it alone:
    JAX's own rule computes the value on the way.
    """
    return jnp.logaddexp(x, 0.0)


softplus.defjvps(lambda tangent, _, x: tangent * jsp.special.expit(x))


class Additive(AbstractBasis):
    r"""Additive nodes $\sigma(w_i \cdot \theta + b_i)$."""

    directions: Float[Array, "s d"]
    offsets: Features
    activation: Callable[[Array], Array] = eqx.field(static=True, default=softplus)

    @property
    def num_features(self) -> int:
        return self.offsets.shape[0]

    def features(self, theta: Vector) -> Features:
        return self.activation(self.directions @ theta + self.offsets)

    def jacobian(self, theta: Vector) -> Float[Array, "d s"]:
        r"""Columns $\sigma'(w_i \cdot \theta + b_i) w_i$."""
        return self.directions.T * self._slopes(theta[None, :])

    def _slopes(self, thetas: Points) -> Float[Array, "n s"]:
        inputs = thetas @ self.directions.T + self.offsets[None, :]
        return jax.jvp(self.activation, (inputs,), (jnp.ones_like(inputs),))[1]


class Radial(AbstractBasis):
    r"""Squared-exponential nodes $\exp(-|R(\theta - c_i)|^2 / 2)$.

    Centred at all training points they span GP regression, at fewer inducing points
    sparse GP regression, when the weights are penalised by `gram` (the prior
    covariance between the centres) in place of the identity.
    """

    centers: Float[Array, "s d"]
    whiten: Float[Array, "d d"]

    @property
    def num_features(self) -> int:
        return self.centers.shape[0]

    def features(self, theta: Vector) -> Features:
        scaled = (theta[None, :] - self.centers) @ self.whiten.T
        return jnp.exp(-0.5 * jnp.sum(scaled**2, axis=1))

    def jacobian(self, theta: Vector) -> Float[Array, "d s"]:
        scaled = (theta[None, :] - self.centers) @ self.whiten.T
        return -(scaled @ self.whiten).T * self.features(theta)[None, :]

    def gram(self) -> Square:
        """Kernel matrix of the centres."""
        return jax.vmap(self.features)(self.centers)


def additive(
    key: PRNGKey,
    num_features: int,
    guide: Gaussian,
    *,
    activation: Callable[[Array], Array] = softplus,
    scale: float = 1.0,
) -> Additive:
    r"""Draw additive nodes in the coordinates where `guide` is standard normal.

    There, with $x = R (\theta - \mu)$ and $P = R^\top R$ the guide's precision,
    $w_i \sim N(0, c^2 I / d)$ and $b_i \sim N(0, 1)$; $c$ is `scale`. In the user's
    coordinates a node is $\sigma(R^\top w_i \cdot (\theta - \mu) + b_i)$.
    """
    _check_count(num_features)
    key_directions, key_offsets = jax.random.split(key)
    dim = guide.mean.shape[0]
    normals = jax.random.normal(key_directions, (num_features, dim))
    directions = scale / jnp.sqrt(dim) * normals @ guide.whiten
    offsets = jax.random.normal(key_offsets, (num_features,))
    return Additive(directions, offsets - directions @ guide.mean, activation)


def unit_additive(key: PRNGKey, num_features: int, guide: Gaussian) -> Additive:
    """Additive nodes of unit scale around the origin, wherever the guide is.

    They serve where parameters are of the order of one and chains begin far away.
    """
    return additive(key, num_features, standard_normal(guide.mean.shape[0]))


def fourier(
    key: PRNGKey, num_features: int, guide: Gaussian, *, scale: float = 1.0
) -> Additive:
    r"""Draw cosine nodes: the random Fourier features of a squared exponential.

    In the guide's coordinates $w_i \sim N(0, c^2 I)$, so the kernel has length scale
    $1 / c$ there, and $b_i$ is uniform on $[0, 2 \pi)$, which makes sines as likely
    as cosines.
    """
    _check_count(num_features)
    key_directions, key_phases = jax.random.split(key)
    dim = guide.mean.shape[0]
    normals = jax.random.normal(key_directions, (num_features, dim))
    directions = scale * normals @ guide.whiten
    phases = jax.random.uniform(key_phases, (num_features,), maxval=2 * jnp.pi)
    return Additive(directions, phases - directions @ guide.mean, jnp.cos)


def radial(
    key: PRNGKey, num_features: int, guide: Gaussian, *, length_scale: float = 1.0
) -> Radial:
    """Draw radial nodes: centres from the guide, lengths in its standard deviations."""
    _check_count(num_features)
    dim = guide.mean.shape[0]
    normals = jax.random.normal(key, (num_features, dim))
    centers = guide.mean[None, :] + jnp.linalg.solve(guide.whiten, normals.T).T
    return Radial(centers, guide.whiten / length_scale)


def radial_at(centers: Float[Array, "s d"], length_scale: float = 1.0) -> Radial:
    """Radial nodes centred at given points, the same length in every coordinate."""
    return Radial(centers, jnp.eye(centers.shape[1]) / length_scale)


def _check_count(num_features: int) -> None:
    if num_features < 1:
        raise ValueError(f"the number of nodes must be at least 1, got {num_features}")

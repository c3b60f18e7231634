r"""The layer of a latent Gaussian model: Gaussian given hubs, by a linear predictor.

With hubs $c$, the rest $r$ and the predictor $\eta = m(c) + A(c) r$, which the model's
program computes, the rest has the energy

$$\tfrac12 r^\top Q(c) r - q(c)^\top r
  + \tfrac12 \eta^\top D(c) \eta - b(c)^\top \eta.$$

So its precision is $P(c) = Q + A^\top D A$ and its mean
$P^{-1} (q + A^\top (b - D m))$: how they depend on the hubs is known but for
$Q, q, D, b$, which hardly do.
"""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_solve, solve_triangular

from vhmc._types import Scalar, Shared, Vector
from vhmc.structure.shocks import Shocks
from vhmc.transport.hub_functions import Term, evaluate
from vhmc.transport.layer import AbstractLayer

CHUNK = 128
"""Points of the one compiled program."""


class Factors(NamedTuple):
    """Energies of rest and predictor, by function of the hubs.

    own, own_linear: $Q$ and $q$, of shapes (terms, r, r) and (terms, r).
    outer, outer_linear: $D$ and $b$, of shapes (terms, m, m) and (terms, m).
    """

    own: Shared
    own_linear: Shared
    outer: Shared
    outer_linear: Shared


class LatentGaussian(AbstractLayer):
    """A layer that leaves hubs alone and standardises all else given the hubs.

    hubs, rest: places of each.
    quantity: the predictor, a function of the unconstrained vector for JAX.
    terms: functions of the hubs.
    factors: of the energy, by these functions.
    middle: hubs at which the layer's linear part is taken.
    """

    hubs: Shared
    rest: Shared
    quantity: Callable[[Vector], Vector] = eqx.field(static=True)
    terms: tuple[Term, ...]
    factors: Factors
    middle: Shared

    def forward(self, x: np.ndarray) -> np.ndarray:
        return _by_chunk(_outward, self, x)

    def inverse(self, theta: Shared) -> Shared:
        if not isinstance(theta, np.ndarray):
            return jax.vmap(self.inward)(theta)
        return _by_chunk(_inward, self, theta)

    def pull_back(self, x: np.ndarray, grad: np.ndarray) -> np.ndarray:
        return _by_chunk(_pulled, self, x, grad)

    def push_forward(self, x: np.ndarray, grad: np.ndarray) -> np.ndarray:
        return _by_chunk(_pushed, self, self.forward(x), grad)

    def log_det(self, x: Shared) -> Shared:
        if not isinstance(x, np.ndarray):
            return jax.vmap(self.volume)(x)
        return _by_chunk(_volumes, self, x)

    def log_det_grad(self, x: np.ndarray) -> np.ndarray:
        return _by_chunk(_volume_grads, self, x)

    def rest_energy(self, c: np.ndarray) -> np.ndarray:
        r"""Energies that integrating the rest out leaves at hubs, one point a row.

        $\frac12 \log \det P - \frac12 h^\top P^{-1} h
        + \frac12 m^\top D m - b^\top m$, with $h = q + A^\top (b - D m)$.
        """
        return _by_chunk(_rest_energies, self, c)

    def rest_slopes(self, c: np.ndarray) -> np.ndarray:
        """Derivatives of `rest_energy` along the hubs."""
        return _by_chunk(_rest_slopes, self, c)

    @property
    def linear_part(self) -> np.ndarray:
        """Of the rest given the middle hubs."""
        matrix = np.eye(len(self.hubs) + len(self.rest))
        factor = np.asarray(self._conditional(jnp.asarray(self.middle))[0])
        matrix[np.ix_(self.rest, self.rest)] = np.linalg.inv(factor).T
        return matrix

    @property
    def hub_list(self) -> list[int]:
        return [int(hub) for hub in self.hubs]

    @property
    def cliques(self) -> tuple[np.ndarray, ...]:
        """The hubs alone, and all coordinates."""
        return self.hubs, np.arange(len(self.hubs) + len(self.rest))

    def outward(self, x: Vector) -> Vector:
        """Outer coordinates of one point, for JAX."""
        factor, mean = self._conditional(x[self.hubs])
        rest = mean + solve_triangular(factor, x[self.rest], lower=True, trans=1)
        return x.at[self.rest].set(rest)

    def inward(self, theta: Vector) -> Vector:
        """Latent coordinates of one point, for JAX."""
        factor, mean = self._conditional(theta[self.hubs])
        return theta.at[self.rest].set(factor.T @ (theta[self.rest] - mean))

    def volume(self, x: Vector) -> Scalar:
        """Log determinant at one point, for JAX."""
        return -jnp.sum(jnp.log(jnp.diagonal(self._conditional(x[self.hubs])[0])))

    def energy_of_hubs(self, c: Vector) -> Scalar:
        """What integrating the rest out leaves at one point, for JAX."""
        factor, mean, constant = self._integrated(c)
        half = factor.T @ mean
        return jnp.sum(jnp.log(jnp.diagonal(factor))) - 0.5 * half @ half + constant

    def _conditional(self, c: Shared) -> tuple[Shared, Shared]:
        """Cholesky factor of the precision, and the mean, given the hubs."""
        return self._integrated(c)[:2]

    def _integrated(self, c: Shared) -> tuple[Shared, Shared, Shared]:
        """The same, and the energy of a rest of zero."""
        offset, slopes = affine_parts(self.quantity, self.hubs, self.rest, c)
        phi = evaluate(self.terms, c[None])[:, 0]
        own, own_linear, outer, outer_linear = (
            jnp.tensordot(phi, part, 1) for part in self.factors
        )
        precision = own + slopes.T @ outer @ slopes
        linear = own_linear + slopes.T @ (outer_linear - outer @ offset)
        factor = jnp.linalg.cholesky(precision)
        constant = 0.5 * offset @ outer @ offset - outer_linear @ offset
        return factor, cho_solve((factor, True), linear), constant


def affine_parts(
    quantity: Callable[[Vector], Vector], hubs: Shared, rest: Shared, c: Shared
) -> tuple[Shared, Shared]:
    """Values at a rest of zero, and slopes along it, of an affine quantity."""
    base = jnp.zeros(len(hubs) + len(rest)).at[hubs].set(c)
    if isinstance(quantity, Shocks):
        return quantity.affine_parts(base, rest)

    def given(r: Shared) -> Shared:
        return quantity(base.at[rest].set(r))

    zero = jnp.zeros(len(rest))
    return given(zero), jax.jacfwd(given)(zero)


def affine_at(
    quantity: Callable[[Vector], Vector],
    hubs: np.ndarray,
    rest: np.ndarray,
    c: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Offsets and slopes of the predictor at hubs, one point a row."""
    offsets, slopes = [], []
    for begin in range(0, len(c), CHUNK):
        some = c[begin : begin + CHUNK]
        padded = np.resize(some, (CHUNK, c.shape[1]))
        found = _affine_compiled(quantity, hubs, rest, padded)
        offsets.append(np.array(found[0])[: len(some)])
        slopes.append(np.array(found[1])[: len(some)])
    return np.concatenate(offsets), np.concatenate(slopes)


@eqx.filter_jit
def _affine_compiled(
    quantity: Callable[[Vector], Vector], hubs: Shared, rest: Shared, c: Shared
) -> tuple[Shared, Shared]:
    return jax.vmap(lambda one: affine_parts(quantity, hubs, rest, one))(c)


def _outward(layer: LatentGaussian, x: Vector) -> Vector:
    return layer.outward(x)


def _inward(layer: LatentGaussian, theta: Vector) -> Vector:
    return layer.inward(theta)


def _pulled(layer: LatentGaussian, x: Vector, grad: Vector) -> Vector:
    return jax.vjp(layer.outward, x)[1](grad)[0]


def _pushed(layer: LatentGaussian, theta: Vector, grad: Vector) -> Vector:
    return jax.vjp(layer.inward, theta)[1](grad)[0]


def _volumes(layer: LatentGaussian, x: Vector) -> Scalar:
    return layer.volume(x)


def _volume_grads(layer: LatentGaussian, x: Vector) -> Vector:
    return jax.grad(layer.volume)(x)


def _rest_energies(layer: LatentGaussian, c: Vector) -> Scalar:
    return layer.energy_of_hubs(c)


def _rest_slopes(layer: LatentGaussian, c: Vector) -> Vector:
    return jax.grad(layer.energy_of_hubs)(c)


@eqx.filter_jit
def _compiled(function: Callable, layer: LatentGaussian, *rows: Shared) -> Shared:
    return jax.vmap(lambda *one: function(layer, *one))(*rows)


def _by_chunk(
    function: Callable, layer: LatentGaussian, *arrays: np.ndarray
) -> np.ndarray:
    """A function of a layer and one point, at all rows, a fixed number at a time."""
    number, parts = len(arrays[0]), []
    for begin in range(0, max(number, 1), CHUNK):
        rows = [array[begin : begin + CHUNK] for array in arrays]
        padded = [np.resize(some, (CHUNK, some.shape[1])) for some in rows]
        found = np.array(_compiled(function, layer, *padded))
        parts.append(found[: len(rows[0])])
    return np.concatenate(parts)

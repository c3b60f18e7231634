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
from typing import NamedTuple, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_solve, solve_triangular

from vhmc._types import Scalar, Shared, Vector
from vhmc.structure.program.points import map_points
from vhmc.structure.shocks import Shocks
from vhmc.transport.hub_functions import Term, evaluate
from vhmc.transport.layer import AbstractLayer

CHUNK = 128
"""Points of a compiled program of the layer."""
PARTS_CHUNK = 512
"""The same of the program of the predictor's parts, asked for by the thousand."""
Parts: TypeAlias = Callable[[Shared], tuple[Shared, Shared]]
"""From hubs to the values of the predictor at a rest of zero, and its slopes."""


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
        return self._by_chunk(_outward, x)

    def inverse(self, theta: Shared) -> Shared:
        if not isinstance(theta, np.ndarray):
            return jax.vmap(self.inward)(theta)
        return self._by_chunk(_inward, theta)

    def pull_back(self, x: np.ndarray, grad: np.ndarray) -> np.ndarray:
        return self._by_chunk(_pulled, x, grad)

    def push_forward(self, x: np.ndarray, grad: np.ndarray) -> np.ndarray:
        return self._by_chunk(_pushed, self.forward(x), grad)

    def log_det(self, x: Shared) -> Shared:
        if not isinstance(x, np.ndarray):
            return jax.vmap(self.volume)(x)
        return self._by_chunk(_volumes, x)

    def log_det_grad(self, x: np.ndarray) -> np.ndarray:
        return self._by_chunk(_volume_grads, x)

    def rest_energy(self, c: np.ndarray) -> np.ndarray:
        r"""Energies that integrating the rest out leaves at hubs, one point a row.

        $\frac12 \log \det P - \frac12 h^\top P^{-1} h
        + \frac12 m^\top D m - b^\top m$, with $h = q + A^\top (b - D m)$.
        """
        begins = range(0, max(len(c), 1), PARTS_CHUNK)
        rows = [c[begin : begin + PARTS_CHUNK] for begin in begins]
        return np.concatenate([self._rest_energies(some) for some in rows])

    def rest_slopes(self, c: np.ndarray) -> np.ndarray:
        """Derivatives of `rest_energy` along the hubs."""
        return self._by_chunk(_rest_slopes, self._with_hubs(c))[:, self.hubs]

    @property
    def dim(self) -> int:
        return len(self.hubs) + len(self.rest)

    @property
    def linear_part(self) -> np.ndarray:
        """Of the rest given the middle hubs."""
        matrix = np.eye(self.dim)
        factor = np.asarray(self.integrated(jnp.asarray(self.middle))[0])
        matrix[np.ix_(self.rest, self.rest)] = np.linalg.inv(factor).T
        return matrix

    @property
    def hub_list(self) -> list[int]:
        return [int(hub) for hub in self.hubs]

    @property
    def cliques(self) -> tuple[np.ndarray, ...]:
        """The hubs alone, and all coordinates."""
        return self.hubs, np.arange(self.dim)

    def outward(self, x: Vector, parts: Parts | None = None) -> Vector:
        """Outer coordinates of one point, for JAX; `parts` as in `inward`."""
        factor, mean, _ = self.integrated(x[self.hubs], parts)
        rest = mean + solve_triangular(factor, x[self.rest], lower=True, trans=1)
        return x.at[self.rest].set(rest)

    def inward(self, theta: Vector, parts: Parts | None = None) -> Vector:
        """Latent coordinates of one point, for JAX.

        parts: of the predictor, a function of the hubs; its program's unless given.
        """
        factor, mean, _ = self.integrated(theta[self.hubs], parts)
        return theta.at[self.rest].set(factor.T @ (theta[self.rest] - mean))

    def volume(self, x: Vector, parts: Parts | None = None) -> Scalar:
        """Log determinant at one point, for JAX."""
        factor, *_ = self.integrated(x[self.hubs], parts)
        return -jnp.sum(jnp.log(jnp.diagonal(factor)))

    def integrated(
        self, c: Shared, parts: Parts | None = None
    ) -> tuple[Shared, Shared, Shared]:
        """Given hubs: factor of the precision, the mean, and the energy of no rest."""
        offset, slopes = (parts or self._parts)(c)
        phi = evaluate(self.terms, c[None])[:, 0]
        own, own_linear, outer, outer_linear = (
            jnp.tensordot(phi, part, 1) for part in self.factors
        )
        precision = own + slopes.T @ outer @ slopes
        linear = own_linear + slopes.T @ (outer_linear - outer @ offset)
        factor = jnp.linalg.cholesky(precision)
        constant = 0.5 * offset @ outer @ offset - outer_linear @ offset
        return factor, cho_solve((factor, True), linear), constant

    def _rest_energies(self, c: np.ndarray) -> np.ndarray:
        """By NumPy: many hubs are asked for, and never a derivative."""
        offset, slopes = affine_at(self.quantity, self.hubs, self.rest, c)
        phi = evaluate(self.terms, c)
        own, own_linear, outer, outer_linear = (
            np.tensordot(phi, part, (0, 0)) for part in self._lean_factors()
        )
        across = np.swapaxes(slopes, 1, 2)
        both = np.concatenate([slopes, offset[:, :, None]], axis=2)
        both = outer[:, :, None] * both if outer.ndim == 2 else outer @ both
        weighted, seen = both[:, :, :-1], both[:, :, -1]
        linear = own_linear + (across @ (outer_linear - seen)[:, :, None])[:, :, 0]
        factor = _factors(own + across @ weighted)
        half = np.linalg.solve(factor, linear[:, :, None])[:, :, 0]
        log_det = np.log(np.diagonal(factor, axis1=1, axis2=2)).sum(axis=1)
        constant = np.sum((0.5 * seen - outer_linear) * offset, axis=1)
        return log_det - 0.5 * np.sum(half**2, axis=1) + constant

    def _lean_factors(self) -> Factors:
        """The factors for NumPy; diagonals alone where the outer ones have no more."""
        own, own_linear, outer, outer_linear = map(np.asarray, self.factors)
        diagonal = np.diagonal(outer, axis1=1, axis2=2)
        if np.count_nonzero(outer) == np.count_nonzero(diagonal):
            outer = diagonal
        return Factors(own, own_linear, outer, outer_linear)

    def _parts(self, c: Shared) -> tuple[Shared, Shared]:
        return affine_parts(self.quantity, self.hubs, self.rest, c)

    def _with_hubs(self, c: np.ndarray) -> np.ndarray:
        """Points that have these hubs, and a rest of zero."""
        points = np.zeros((len(c), self.dim))
        points[:, self.hubs] = c
        return points

    def _by_chunk(self, function: Callable, *arrays: np.ndarray) -> np.ndarray:
        """A function of layer, jet and one point, a fixed number of rows at a time."""
        parts = []
        for begin in range(0, max(len(arrays[0]), 1), CHUNK):
            rows = [array[begin : begin + CHUNK] for array in arrays]
            padded = [np.resize(some, (CHUNK, some.shape[1])) for some in rows]
            jets = _jets(self.quantity, self.hubs, self.rest, padded[0][:, self.hubs])
            found = np.array(_compiled(function, self, jets, *padded))
            parts.append(found[: len(rows[0])])
        return np.concatenate(parts)


class Jet(eqx.Module):
    """An affine quantity near hubs: its parts, and their first derivatives.

    The program of a quantity may be long. In a jet it is compiled once, and not once
    for every function of the layer and every number of terms.

    c: the hubs.
    offset, slopes: values at a rest of zero, and slopes along it.
    offset_by_hub, slopes_by_hub: their derivatives along the hubs, on a last axis.
    """

    c: Shared
    offset: Shared
    slopes: Shared
    offset_by_hub: Shared
    slopes_by_hub: Shared

    def __call__(self, c: Shared) -> tuple[Shared, Shared]:
        """The parts, to first order."""
        way = c - self.c
        return self.offset + self.offset_by_hub @ way, self.slopes + (
            self.slopes_by_hub @ way
        )


@eqx.filter_jit
def _jets(
    quantity: Callable[[Vector], Vector], hubs: Shared, rest: Shared, c: Shared
) -> Jet:
    """The jets at hubs, one a row."""

    def jet(one):
        def parts(c):
            return affine_parts(quantity, hubs, rest, c)

        return Jet(one, *parts(one), *jax.jacfwd(parts)(one))

    return map_points(jet, jnp.asarray(c))


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
    for begin in range(0, len(c), PARTS_CHUNK):
        some = c[begin : begin + PARTS_CHUNK]
        padded = np.resize(some, (PARTS_CHUNK, c.shape[1]))
        found = _affine_compiled(quantity, hubs, rest, padded)
        offsets.append(np.array(found[0])[: len(some)])
        slopes.append(np.array(found[1])[: len(some)])
    return np.concatenate(offsets), np.concatenate(slopes)


@eqx.filter_jit
def _affine_compiled(
    quantity: Callable[[Vector], Vector], hubs: Shared, rest: Shared, c: Shared
) -> tuple[Shared, Shared]:
    return map_points(
        lambda one: affine_parts(quantity, hubs, rest, one), jnp.asarray(c)
    )


def _outward(layer: LatentGaussian, jet: Jet, x: Vector) -> Vector:
    return layer.outward(x, jet)


def _inward(layer: LatentGaussian, jet: Jet, theta: Vector) -> Vector:
    return layer.inward(theta, jet)


def _pulled(layer: LatentGaussian, jet: Jet, x: Vector, grad: Vector) -> Vector:
    return jax.vjp(lambda one: layer.outward(one, jet), x)[1](grad)[0]


def _pushed(layer: LatentGaussian, jet: Jet, theta: Vector, grad: Vector) -> Vector:
    return jax.vjp(lambda one: layer.inward(one, jet), theta)[1](grad)[0]


def _volumes(layer: LatentGaussian, jet: Jet, x: Vector) -> Scalar:
    return layer.volume(x, jet)


def _volume_grads(layer: LatentGaussian, jet: Jet, x: Vector) -> Vector:
    return jax.grad(lambda one: layer.volume(one, jet))(x)


def _factors(matrices: np.ndarray) -> np.ndarray:
    """Cholesky factors, of nan where a matrix is not positive definite."""
    try:
        return np.linalg.cholesky(matrices)
    except np.linalg.LinAlgError:
        if len(matrices) == 1:
            return np.full_like(matrices, np.nan)
        return np.concatenate([_factors(half) for half in np.array_split(matrices, 2)])


def _rest_energies(layer: LatentGaussian, jet: Jet, x: Vector) -> Scalar:
    """What integrating the rest out leaves at one point."""
    factor, mean, constant = layer.integrated(x[layer.hubs], jet)
    half = factor.T @ mean
    return jnp.sum(jnp.log(jnp.diagonal(factor))) - 0.5 * half @ half + constant


def _rest_slopes(layer: LatentGaussian, jet: Jet, x: Vector) -> Vector:
    return jax.grad(lambda one: _rest_energies(layer, jet, one))(x)


@eqx.filter_jit
def _compiled(
    function: Callable, layer: LatentGaussian, jets: Jet, *rows: Shared
) -> Shared:
    return map_points(lambda one: function(layer, *one), (jets, *rows))

r"""The residual of a model whose data see the parameters through a known quantity.

$$z(x) = \sum_p (F(\eta_p) + c_p \eta_p) + U_0(\theta) - \tfrac12 |x|^2,
\quad \theta = T(x),$$

with $F$ a function that all data share, $T$ an affine map, and $U_0$ the energy of the
priors: effects that are normal given their scales, and functions of single parameters.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from vhmc._types import Scalar, Shared, Vector
from vhmc.surrogate.residual import AbstractResidual
from vhmc.transport.affine import Affine

BATCH = 32
"""Points that are computed together: one shape is compiled once."""


class Table(eqx.Module):
    """A smooth function of one variable, by cubic pieces between equal steps.

    Beyond the ends it goes on as a parabola.

    low, step: of the grid.
    values, slopes: on the grid.
    bends: second derivatives below and above the ends.
    """

    low: Shared
    step: Shared
    values: Shared
    slopes: Shared
    bends: Shared

    def __call__(self, x: Shared) -> Shared:
        """Values at points."""
        number = len(self.values)
        place = jnp.clip((x - self.low) / self.step, 0.0, number - 1.0)
        beyond = x - self.low - place * self.step
        index = jnp.clip(place.astype(int), 0, number - 2)
        u = place - index
        f, g = self.values[index], self.values[index + 1]
        df, dg = self.slopes[index] * self.step, self.slopes[index + 1] * self.step
        inside = f + u * (
            df + u * (3 * (g - f) - 2 * df - dg + u * (2 * (f - g) + df + dg))
        )
        end = jnp.where(beyond < 0, self.slopes[0], self.slopes[-1])
        bend = jnp.where(beyond < 0, self.bends[0], self.bends[1])
        return inside + end * beyond + 0.5 * bend * beyond**2


class NormalEffects(eqx.Module):
    r"""Energy $e^{-p c} (\frac{b}{2} \sum r_k^2 + \ldots)$ of effects given a scale.

    A quadratic form in the sum of squares and the sum of the members, and a location.

    scale, members, location: their coordinates; without a location it is the scale
        again, with weights of zero.
    weights: of $\frac12 \sum r^2$, $\sum r$, $m \sum r$, $\frac12 m^2$, $m$ and 1.
    """

    scale: Shared
    members: Shared
    location: Shared
    power: Shared
    weights: Shared

    def __call__(self, theta: Vector) -> Scalar:
        """Energy at a point."""
        parts = statistics(theta[self.members], theta[self.location])
        return jnp.exp(-self.power * theta[self.scale]) * (self.weights @ parts)


def statistics(r: Shared, m: Shared) -> Shared:
    """What the energy of normal effects is linear in; members along the first axis."""
    xp = r.__array_namespace__()
    total = xp.sum(r, axis=0)
    square = 0.5 * xp.sum(r**2, axis=0)
    return xp.stack([square, total, m * total, 0.5 * m**2, m, xp.ones_like(m)])


class SeparableEnergy(eqx.Module):
    """The energy of the parameters.

    quantity: what the data see.
    shared: $F$.
    linear: $c$.
    slope, bend: linear and quadratic weights of single parameters.
    curves: further functions of single parameters, with their coordinates.
    effects: with scales.
    """

    quantity: Callable[[Vector], Vector] = eqx.field(static=True)
    shared: Table
    linear: Shared
    slope: Shared
    bend: Shared
    curves: tuple[tuple[Shared, Table], ...]
    effects: tuple[NormalEffects, ...]

    def __call__(self, theta: Vector) -> Scalar:
        """Energy at a point, up to a constant."""
        eta = self.quantity(theta)
        energy = jnp.sum(self.shared(eta)) + self.linear @ eta
        energy += theta @ (self.slope + 0.5 * self.bend * theta)
        for place, curve in self.curves:
            energy += curve(theta[place])
        for effects in self.effects:
            energy += effects(theta)
        return energy

    def rows(self, thetas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Energies and gradients on the host, one point a row."""
        missing = -len(thetas) % BATCH
        padded = np.concatenate([thetas, np.repeat(thetas[:1], missing, axis=0)])
        parts = [
            _rows(self, padded[i : i + BATCH]) for i in range(0, len(padded), BATCH)
        ]
        energy, grad = (np.concatenate(rows) for rows in zip(*parts, strict=True))
        return energy[: len(thetas)], grad[: len(thetas)]


@eqx.filter_jit
def _rows(energy: SeparableEnergy, thetas: Shared) -> tuple[Shared, Shared]:
    return jax.vmap(jax.value_and_grad(energy))(thetas)


class SeparableResidual(AbstractResidual):
    """The energy in latent coordinates, less the standard normal.

    energy: of the parameters.
    origin: constant that is taken from it.
    layer: the transport map.
    """

    energy: SeparableEnergy
    origin: Shared
    layer: Affine

    @property
    def holds_everywhere(self) -> bool:
        return True

    def __call__(self, x: Vector) -> Scalar:
        theta = self.layer.mean + self.layer.factor @ x
        return self.energy(theta) - self.origin - 0.5 * jnp.sum(x**2)

    def energies(self, x: np.ndarray) -> np.ndarray:
        if not len(x):
            return np.zeros(0)
        energy = self.energy.rows(self.layer.forward(x))[0]
        return energy - self.origin - 0.5 * np.sum(x**2, axis=1)

    def grads(self, x: np.ndarray) -> np.ndarray:
        if not len(x):
            return np.zeros_like(x)
        grad = self.energy.rows(self.layer.forward(x))[1]
        return self.layer.pull_back(x, grad) - x

    def on_device(self) -> "SeparableResidual":
        return jax.device_put(self)

r"""The layer from the centred form of a model to the form that it is written in.

The model's parameters are $(c, z)$ and $h(c, z) = m(c) + A(c) z$ is a quantity that it
computes. Outside of the layer are $c$ and $z$, inside $c$ and $h$, which takes the
places of $z$. So $z = A(c)^{-1} (h - m(c))$, and the log determinant is
$-\log |\det A(c)|$.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple
from weakref import WeakKeyDictionary

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from vhmc._types import Shared, Vector
from vhmc.transport.layer import AbstractLayer, PulledBack

CHUNK = 128
"""Points of the one compiled program."""
NUM_RECENT = 4
"""Sets of points whose transforms are kept: a matrix is solved with at each point."""
STEP = 1e-3
"""Of differences of log determinants, whose error is of the fourth order."""


class Centring(AbstractLayer):
    """A layer that replaces parameters by a quantity that is affine in them.

    places: of the parameters and of the quantity.
    given: other parameters that the quantity depends on.
    quantity: a function of all parameters, for JAX.
    start: parameters at which the layer's linear part is taken.
    """

    places: tuple[int, ...] = eqx.field(static=True)
    given: tuple[int, ...] = eqx.field(static=True)
    quantity: Callable[[Vector], Vector] = eqx.field(static=True)
    start: Shared

    def forward(self, x: np.ndarray) -> np.ndarray:
        return _in_chunks(self._outward, x)

    def inverse(self, theta: Shared) -> Shared:
        if not isinstance(theta, np.ndarray):
            return jax.vmap(self._inward)(theta)

        return self._recalled(theta).x.copy()

    def inverse_and_log_det(self, theta: Shared) -> tuple[Shared, Shared]:
        if not isinstance(theta, np.ndarray):
            return super().inverse_and_log_det(theta)
        known = self._recalled(theta)
        return known.x.copy(), known.log_det

    def pulled_back(self, theta: np.ndarray, grad: np.ndarray) -> PulledBack:
        known = self._recalled(theta)
        if known.grad is None or not np.array_equal(known.grad, grad):
            inner = _in_chunks(self._pulled, theta, grad) - self.log_det_grad(known.x)
            known.grad, known.inner = grad.copy(), inner
        assert known.inner is not None
        return PulledBack(known.x.copy(), known.inner.copy(), known.log_det)

    def pull_back(self, x: np.ndarray, grad: np.ndarray) -> np.ndarray:
        return _in_chunks(self._pulled, self.forward(x), grad)

    def push_forward(self, x: np.ndarray, grad: np.ndarray) -> np.ndarray:
        def pushed(x: np.ndarray, grad: np.ndarray) -> np.ndarray:
            slopes = self._jet(self._outward(x)).slopes
            kept = self._replaced(grad, np.zeros((len(x), len(self.places))))
            return kept + np.einsum("nhd,nh->nd", slopes, grad[:, self.places])

        return _in_chunks(pushed, x, grad)

    def log_det(self, x: Shared) -> Shared:
        if not isinstance(x, np.ndarray):
            slopes = jax.vmap(jax.jacfwd(self.quantity))(x)
            return -jnp.linalg.slogdet(slopes[:, :, jnp.array(self.places)])[1]
        return _in_chunks(self._log_det, x)

    def log_det_grad(self, x: np.ndarray) -> np.ndarray:
        grad = np.zeros_like(x)
        for place in self.given:
            steps = np.zeros(x.shape[1])
            steps[place] = STEP
            one, two = (
                self.log_det(x + size * steps) - self.log_det(x - size * steps)
                for size in (1, 2)
            )
            grad[:, place] = (8 * one - two) / (12 * STEP)
        return grad

    @property
    def linear_part(self) -> np.ndarray:
        """Of the map at the start."""
        matrix = np.eye(len(self.start))
        slopes = self._jet(np.asarray(self.start)[None]).slopes[0]
        matrix[list(self.places)] = slopes
        return np.linalg.inv(matrix)

    @property
    def is_reparameterisation(self) -> bool:
        return True

    def _recalled(self, theta: np.ndarray) -> "Recalled":
        """What is known of these points: fits ask for the same ones many times."""
        recent = _RECENT.setdefault(self.quantity, [])
        for known in recent:
            if np.array_equal(known.theta, theta):
                return known

        def inward(theta: np.ndarray) -> np.ndarray:
            value, slopes = self._jet(theta)
            log_det = -np.linalg.slogdet(slopes[:, :, self.places])[1]
            return np.column_stack([self._replaced(theta, value), log_det])

        rows = _in_chunks(inward, theta)
        known = Recalled(theta.copy(), rows[:, :-1], rows[:, -1])
        recent[:] = [known, *recent[: NUM_RECENT - 1]]
        return known

    def _pulled(self, theta: np.ndarray, grad: np.ndarray) -> np.ndarray:
        """Gradients inside from those at outer points."""
        slopes = self._jet(theta).slopes
        transposed = slopes[:, :, self.places].swapaxes(1, 2)
        by_quantity = _solved(transposed, grad[:, self.places])
        through = np.einsum("nhd,nh->nd", slopes, by_quantity)
        return self._replaced(grad - through, by_quantity)

    def _inward(self, theta: Vector) -> Vector:
        return theta.at[jnp.array(self.places)].set(self.quantity(theta))

    def _outward(self, x: np.ndarray) -> np.ndarray:
        jet = self._jet(self._replaced(x, np.zeros((len(x), len(self.places)))))
        rest = x[:, self.places] - jet.value
        return self._replaced(x, _solved(jet.slopes[:, :, self.places], rest))

    def _log_det(self, x: np.ndarray) -> np.ndarray:
        # The matrix does not depend on what is at the places.
        return -np.linalg.slogdet(self._jet(x).slopes[:, :, self.places])[1]

    def _replaced(self, rows: np.ndarray, new: np.ndarray) -> np.ndarray:
        rows = rows.copy()
        rows[:, self.places] = new
        return rows

    def _jet(self, theta: np.ndarray) -> "Jet":
        number = len(theta)
        padded = np.resize(theta, (CHUNK, theta.shape[1]))
        return Jet(*(np.array(part)[:number] for part in _jets(self.quantity, padded)))


@dataclass
class Recalled:
    """Points with their transforms; gradients if they were asked for.

    theta, x: outer and inner points.
    log_det: of the layer there.
    grad, inner: gradients outside, and inside of the density that the points have.
    """

    theta: np.ndarray
    x: np.ndarray
    log_det: np.ndarray
    grad: np.ndarray | None = None
    inner: np.ndarray | None = None


_RECENT: WeakKeyDictionary[Callable[[Vector], Vector], list[Recalled]] = (
    WeakKeyDictionary()
)


class Jet(NamedTuple):
    """A quantity and its derivatives along all parameters, one point a row."""

    value: np.ndarray
    slopes: np.ndarray


@eqx.filter_jit
def _jets(quantity: Callable[[Vector], Vector], theta: Shared) -> Jet:
    values: Shared = jax.vmap(quantity)(theta)
    return Jet(values, jax.vmap(jax.jacfwd(quantity))(theta))


def _in_chunks(function: Callable[..., np.ndarray], *arrays: np.ndarray) -> np.ndarray:
    """A function of the rows of arrays, a few at a time."""
    begins = range(0, max(len(arrays[0]), 1), CHUNK)
    parts = [function(*(rows[i : i + CHUNK] for rows in arrays)) for i in begins]
    return np.concatenate(parts)


def _solved(matrices: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Solutions, NaN where a matrix is not finite or singular."""
    is_finite = np.isfinite(matrices).all(axis=(1, 2))
    safe = np.where(is_finite[:, None, None], matrices, np.eye(matrices.shape[1]))
    try:
        found = np.linalg.solve(safe, rows[..., None])[..., 0]
    except np.linalg.LinAlgError:
        is_finite &= np.abs(np.linalg.det(safe)) > 0
        safe[~is_finite] = np.eye(matrices.shape[1])
        found = np.linalg.solve(safe, rows[..., None])[..., 0]
    return np.where(is_finite[:, None], found, np.nan)

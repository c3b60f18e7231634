r"""Fit a skewed and an affine layer by the score errors in latent coordinates.

With $a = \operatorname{asinh}((\theta - c) / s)$ and $b = a / K - \epsilon$ the latent
point of the skewed layer is $z = \sinh b$, and the gradient of the energy there

$$h = (K A + \tanh b) / \cosh b, \qquad A = s \cosh(a) \, g - \tanh(a),$$

where $A$ does not depend on what is fitted. Skewness and tails lower the mean of
$|L^\top h - L^{-1} (z - m)|^2$ by L-BFGS while the affine layer $m, L$ is fixed, which
is then fitted in closed form, and again.
"""

import numpy as np
import scipy.linalg
import scipy.optimize

from vhmc.transport.affine import Affine
from vhmc.transport.affine_fit import fit_affine
from vhmc.transport.influence import influence
from vhmc.transport.skewed import Skewed
from vhmc.transport.transport_map import TransportMap

TURNS = 4
"""Times that the two layers are fitted in turn."""
STEPS = 25
"""Of L-BFGS in every turn."""
PULL = 1e-3
"""Weight of the squared parameters, over that of the score error by dimension."""
MAX_SKEWNESS = 2.0
MAX_LOG_TAIL = 0.7


def skewed_map(layer: Affine) -> TransportMap:
    """The affine map as one with a skewed layer that does nothing yet."""
    spread = np.sqrt(np.sum(layer.factor**2, axis=1))
    zeros = np.zeros_like(spread)
    inner = Affine(zeros, layer.factor / spread[:, None])
    return TransportMap((Skewed(layer.mean, spread, zeros, zeros), inner))


def refitted(
    transport: TransportMap, thetas: np.ndarray, grads: np.ndarray
) -> TransportMap:
    """Both layers of a skewed map, fitted to points and gradients."""
    for _ in range(TURNS):
        outer, inner = transport.layers
        assert isinstance(outer, Skewed) and isinstance(inner, Affine)
        weights = influence(*transport.pull_back(thetas, grads))
        outer = _Objective(outer, inner, thetas, grads, weights).minimiser()
        transport = TransportMap((outer, inner))
        x, grad = transport.pull_back(thetas, grads)
        transport = transport.then(fit_affine(x, grad, influence(x, grad)))
    return transport


class _Objective:
    """Mean squared score error by dimension, as a function of skewness and tails."""

    def __init__(
        self,
        outer: Skewed,
        inner: Affine,
        thetas: np.ndarray,
        grads: np.ndarray,
        weights: np.ndarray,
    ):
        self._outer, self._inner = outer, inner
        self._argument = np.arcsinh((thetas - outer.center) / outer.scale)
        self._fixed = outer.scale * np.cosh(self._argument) * grads
        self._fixed -= np.tanh(self._argument)
        self._weights = (weights / weights.sum() / thetas.shape[1])[:, None]
        self._solver = scipy.linalg.solve_triangular(
            inner.factor, np.eye(len(inner.factor)), lower=True
        )

    def __call__(self, parameters: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient; the parameters are skewness, then log tails."""
        skewness, log_tail = np.split(parameters, 2)
        tail = np.exp(log_tail)
        inside = self._argument / tail - skewness
        cosh, tanh = np.cosh(inside), np.tanh(inside)
        score = (tail * self._fixed + tanh) / cosh
        away = np.sinh(inside) - self._inner.mean
        error = score @ self._inner.factor - away @ self._solver.T
        weighted = 2 * self._weights * error
        by_score = weighted @ self._inner.factor.T
        by_place = -weighted @ self._solver
        by_inside = by_place * cosh + by_score * (cosh**-3 - score * tanh)
        slope_skewness = -by_inside.sum(axis=0)
        slope_tail = np.sum(
            by_score * tail * self._fixed / cosh - by_inside * self._argument / tail,
            axis=0,
        )
        value = np.sum(self._weights * error**2) + PULL * parameters @ parameters
        slope = np.concatenate([slope_skewness, slope_tail]) + 2 * PULL * parameters
        return float(value), slope

    def minimiser(self) -> Skewed:
        """The skewed layer of least error, next to the one there is."""
        outer = self._outer
        start = np.concatenate([outer.skewness, outer.log_tail])
        limits = np.repeat([MAX_SKEWNESS, MAX_LOG_TAIL], len(outer.skewness))
        with np.errstate(over="ignore", invalid="ignore"):
            found = scipy.optimize.minimize(
                self,
                start,
                jac=True,
                method="L-BFGS-B",
                bounds=np.stack([-limits, limits], axis=1),
                options={"maxiter": STEPS},
            ).x
        if not np.isfinite(found).all():
            return outer
        skewness, log_tail = np.split(found, 2)
        return Skewed(outer.center, outer.scale, skewness, log_tail)

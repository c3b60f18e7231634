r"""Fit a skewed and an affine layer by the errors of the scores.

With $a = \operatorname{asinh}((\theta - c) / s)$ and $b = a / K - \epsilon$ the latent
point of the skewed layer is $z = \sinh b$. In the coordinates of $z$ as it is before
the fit, $z_0$, the error of the gradient is

$$\frac{K_0}{\cosh b_0} \Bigl(A + \frac{\tanh b - \cosh b \, P (z - m)}{K}\Bigr), \qquad
  A = s \cosh(a) \, g - \tanh(a),$$

with $P$ and $m$ the precision and the mean of the affine layer inside. Skewness and
tails lower its mean square by L-BFGS while the affine layer is fixed, which is then
fitted by regression, and again. Coordinates that moved with the fit would make errors
small by making the map narrow.
"""

import numpy as np
import scipy.linalg
import scipy.optimize

from vhmc.transport.affine import Affine
from vhmc.transport.affine_fit import fit_affine
from vhmc.transport.affine_regression import fit_by_regression
from vhmc.transport.influence import influence
from vhmc.transport.skewed import Skewed
from vhmc.transport.transport_map import TransportMap

TURNS = 2
"""Times that the two layers are fitted in turn."""
STEPS = 25
"""Of L-BFGS in every turn."""
PULL = 1e-3
"""Weight of the squared parameters, over that of the score error by dimension."""
MAX_SKEWNESS = 2.0
MAX_LOG_TAIL = 0.35
"""A longer tail would give a marginal most of its variance where no point is."""


def skewed_map(layer: Affine) -> TransportMap:
    """The affine map as one with a skewed layer that does nothing yet."""
    spread = np.sqrt(np.sum(layer.factor**2, axis=1))
    zeros = np.zeros_like(spread)
    inner = Affine(zeros, layer.factor / spread[:, None])
    return TransportMap((Skewed(layer.mean, spread, zeros, zeros), inner))


def refitted(
    transport: TransportMap,
    thetas: np.ndarray,
    grads: np.ndarray,
    weights: np.ndarray | None = None,
) -> TransportMap:
    """Both layers of a skewed map, fitted to points and gradients.

    The affine one alone where there are too few points for both.

    weights: of the points; equal ones if not given.
    """
    weights = np.ones(len(thetas)) if weights is None else weights
    if weights.sum() ** 2 / np.sum(weights**2) < transport.dim:
        x, grad = transport.pull_back(thetas, grads)
        return transport.then(fit_affine(x, grad, weights * influence(x, grad)))
    for _ in range(TURNS):
        outer, inner = transport.layers
        assert isinstance(outer, Skewed) and isinstance(inner, Affine)
        capped = weights * influence(*transport.pull_back(thetas, grads))
        outer = _Objective(outer, inner, thetas, grads, capped).minimiser()
        transport = TransportMap((outer, inner))
        x, grad = transport.pull_back(thetas, grads)
        capped = weights * influence(x, grad)
        transport = transport.then(fit_by_regression(x, grad, capped))
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
        tail = np.exp(outer.log_tail)
        self._metric = tail / np.cosh(self._argument / tail - outer.skewness)
        self._weights = (weights / weights.sum() / thetas.shape[1])[:, None]
        identity = np.eye(len(inner.factor))
        self._precision = scipy.linalg.cho_solve((inner.factor, True), identity)

    def __call__(self, parameters: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient; the parameters are skewness, then log tails."""
        skewness, log_tail = np.split(parameters, 2)
        tail = np.exp(log_tail)
        inside = self._argument / tail - skewness
        sinh, cosh, tanh = np.sinh(inside), np.cosh(inside), np.tanh(inside)
        pull = (sinh - self._inner.mean) @ self._precision
        change = (tanh - cosh * pull) / tail
        error = (self._metric * (self._fixed + change)) @ self._inner.factor
        by_change = (2 * self._weights * error) @ self._inner.factor.T * self._metric
        by_inside = by_change * (cosh**-2 - sinh * pull) / tail
        by_inside -= ((by_change * cosh / tail) @ self._precision) * cosh
        slope_skewness = -by_inside.sum(axis=0)
        slope_tail = -np.sum(
            by_inside * self._argument / tail + by_change * change, axis=0
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

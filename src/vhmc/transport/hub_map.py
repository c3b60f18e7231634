r"""The layer of the hubs: a monotone function of each, and their correlations.

$c_j = s_j(y_j)$ with $y = B x$ on the hubs, $B$ triangular and $s_j$ a monotone
cubic spline that goes on along its tangents. All other coordinates stay.
"""

import numpy as np
from scipy.interpolate import PchipInterpolator

from vhmc._types import Shared
from vhmc.transport.layer import AbstractLayer, PulledBack

REACH = 5.0
"""Standard deviations that the splines cover."""
NUM_KNOTS = 41
NEWTON_STEPS = 8
SMALL_STEP = 1e-12
"""After such a step of Newton's nothing but rounding is left."""


class HubMap(AbstractLayer):
    r"""A layer that acts on hubs alone.

    hubs: their coordinates.
    dim: number of all coordinates, as an array of that length.
    factor: $B$.
    coefficients: of the splines, of shape (hub, piece, 4), the constant first.
    """

    hubs: Shared
    others: Shared
    factor: Shared
    coefficients: Shared

    def forward(self, x: np.ndarray) -> np.ndarray:
        theta = x.copy()
        y = x[:, self.hubs] @ self.factor.T
        theta[:, self.hubs] = _spline(self.coefficients, y)[0]
        return theta

    def inverse(self, theta: Shared) -> Shared:
        xp = theta.__array_namespace__()
        c = theta[:, self.hubs]
        # The pieces' constants are values at the knots.
        values = self.coefficients[..., 0]
        knots = xp.linspace(-REACH, REACH, values.shape[1] + 1)[:-1]
        y = xp.stack(
            [xp.interp(c[:, j], values[j], knots) for j in range(len(values))], axis=1
        )
        coefficients = self.coefficients
        value, slope, _ = _spline(coefficients, y)
        y = y + xp.where(xp.abs(y) >= 0.99 * REACH, (c - value) / slope, 0.0)
        for _ in range(NEWTON_STEPS):
            value, slope, _ = _spline(coefficients, y)
            step = (c - value) / slope
            y = y + step
            if xp is np and not np.any(np.abs(step) > SMALL_STEP):
                break
        x = xp.linalg.solve(self.factor, y.T).T
        order = xp.argsort(xp.concatenate([self.hubs, self.others]))
        return xp.concatenate([x, theta[:, self.others]], axis=1)[:, order]

    def pulled_back(self, theta: np.ndarray, grad: np.ndarray) -> PulledBack:
        x = self.inverse(theta)
        factor = self.factor
        _, slope, curvature = self._splines(x)
        pulled = grad.copy()
        pulled[:, self.hubs] = (grad[:, self.hubs] * slope) @ factor
        pulled[:, self.hubs] -= (curvature / slope) @ factor
        constant = np.sum(np.log(np.diagonal(factor)))
        return PulledBack(x, pulled, np.sum(np.log(slope), axis=1) + constant)

    def pull_back(self, x: np.ndarray, grad: np.ndarray) -> np.ndarray:
        slope = self._splines(x)[1]
        pulled = grad.copy()
        pulled[:, self.hubs] = (grad[:, self.hubs] * slope) @ self.factor
        return pulled

    def push_forward(self, x: np.ndarray, grad: np.ndarray) -> np.ndarray:
        slope = self._splines(x)[1]
        pushed = grad.copy()
        by_y = np.linalg.solve(self.factor.T, grad[:, self.hubs].T).T
        pushed[:, self.hubs] = by_y / slope
        return pushed

    def log_det(self, x: Shared) -> Shared:
        xp = x.__array_namespace__()
        slope = self._splines(x)[1]
        constant = xp.sum(xp.log(xp.diagonal(self.factor)))
        return xp.sum(xp.log(slope), axis=1) + constant

    def log_det_grad(self, x: np.ndarray) -> np.ndarray:
        _, slope, curvature = self._splines(x)
        grad = np.zeros_like(x)
        grad[:, self.hubs] = (curvature / slope) @ self.factor
        return grad

    @property
    def linear_part(self) -> np.ndarray:
        """Widths of the hubs, and their correlations."""
        dim = len(self.hubs) + len(self.others)
        slope = _spline(self.coefficients, np.zeros((1, len(self.hubs))))[1]
        matrix = np.eye(dim)
        matrix[np.ix_(self.hubs, self.hubs)] = slope.T * self.factor
        return matrix

    @property
    def cliques(self) -> tuple[np.ndarray, ...]:
        """Of the hubs alone; all other coordinates are as they were."""
        return (self.hubs,)

    def _splines(self, x: Shared) -> tuple[Shared, Shared, Shared]:
        """Values, slopes and curvatures at latent points, one a row."""
        return _spline(self.coefficients, x[:, self.hubs] @ self.factor.T)


def _spline(coefficients: Shared, y: Shared) -> tuple[Shared, Shared, Shared]:
    """Values, slopes and curvatures; tangents beyond the first and last knot."""
    xp = y.__array_namespace__()
    num_pieces = coefficients.shape[1]
    width = 2 * REACH / num_pieces
    inside = y.clip(-REACH, REACH)
    piece = xp.floor((inside + REACH) / width).astype(int).clip(0, num_pieces - 1)
    local = inside + REACH - piece * width
    rows = xp.arange(len(coefficients))
    a, b, c, d = (coefficients[rows, piece, k] for k in range(4))
    value = a + local * (b + local * (c + local * d))
    slope = b + local * (2 * c + 3 * local * d)
    curvature = xp.where(y == inside, 2 * c + 6 * local * d, 0.0)
    return value + slope * (y - inside), slope, curvature


def hub_map(
    hubs: np.ndarray, dim: int, quantiles: np.ndarray, correlation: np.ndarray
) -> HubMap:
    """The layer with given values at the knots.

    quantiles: of the hubs at normal scores from `-REACH` to `REACH`, one hub a row.
    correlation: of the normal scores.
    """
    knots = np.linspace(-REACH, REACH, quantiles.shape[1])
    pieces = [PchipInterpolator(knots, row).c.T for row in quantiles]
    coefficients = np.array([piece[:, ::-1] for piece in pieces])
    others = np.setdiff1d(np.arange(dim), hubs)
    return HubMap(hubs, others, np.linalg.cholesky(correlation), coefficients)

"""The training set: evaluated points in latent coordinates, with capped influence."""

from typing import NamedTuple

import numpy as np

from vhmc.evaluation.evaluator import LEFT_BEHIND, EvaluationLog
from vhmc.transport.influence import capped_weights, influence
from vhmc.transport.layer import PulledBack
from vhmc.transport.transport_map import TransportMap

REACH = 2.5
"""Latent distance beyond that of most draws at which points count less."""
AWAY = "search", "screening", "look", "walls", "soundness", LEFT_BEHIND
"""Phases whose points may be far from the posterior's mass."""


class TrainingSet(NamedTuple):
    r"""What a residual is fitted to, one row a point.

    x: latent points.
    grad: true gradients less those of $\frac12 |x|^2$.
    energy: true energies less $\frac12 |x|^2$, up to a constant.
    weight: influence of each gradient.
    energy_weight: influence of each energy.
    is_typical: whether the point counts when an error is measured.
    cliques: latent coordinates that interact, as the transport map knows them.
    outputs: of the forward model, NaN where there are none; None if it is not known.
    transport: the map to the unconstrained space.
    """

    x: np.ndarray
    grad: np.ndarray
    energy: np.ndarray
    weight: np.ndarray
    energy_weight: np.ndarray
    is_typical: np.ndarray
    cliques: tuple[np.ndarray, ...] | None = None
    outputs: np.ndarray | None = None
    transport: TransportMap | None = None

    def where(self, chosen: np.ndarray | slice) -> "TrainingSet":
        """Some of the points."""
        x, grad, energy, weight, energy_weight, is_typical, *_ = self
        return TrainingSet(
            x[chosen],
            grad[chosen],
            energy[chosen],
            weight[chosen],
            energy_weight[chosen],
            is_typical[chosen],
            self.cliques,
            None if self.outputs is None else self.outputs[chosen],
            self.transport,
        )


class LatentLog:
    """Evaluated points in the coordinates of a map; only new ones are transformed.

    transport: the map.
    """

    def __init__(self, transport: TransportMap):
        self.transport = transport
        self._theta = np.zeros((0, transport.dim))
        self._rows = PulledBack(self._theta, self._theta, np.zeros(0))

    def __call__(self, log: EvaluationLog) -> PulledBack:
        """All points with a finite energy."""
        theta, grad = log.theta[log.is_finite], log.grad[log.is_finite]
        number = len(self._theta)
        if not np.array_equal(theta[:number], self._theta):  # another log
            number, nothing = 0, theta[:0]
            self._rows = PulledBack(nothing, nothing, np.zeros(0))
        # Points so far away that the map overflows get no weight.
        with np.errstate(over="ignore", invalid="ignore"):
            added = self.transport.pulled_back(theta[number:], grad[number:])
        pairs = zip(self._rows, added, strict=True)
        self._rows = PulledBack(*(np.concatenate(pair) for pair in pairs))
        self._theta = theta
        return self._rows


def training_set(
    log: EvaluationLog,
    transport: TransportMap,
    origin: float = 0.0,
    latent: LatentLog | None = None,
) -> TrainingSet:
    """All points with a finite energy and gradient.

    origin: constant between the energies of the model and those of the map.
    latent: points that were transformed by the same map before.
    """
    known = log.is_finite
    is_away = np.isin(log.phase[known], AWAY)
    dim = log.theta.shape[1]
    x, grad, log_det = (latent or LatentLog(transport))(log)
    with np.errstate(over="ignore", invalid="ignore"):
        energy = log.energy[known] - log_det
        is_lost = ~np.isfinite(np.sum(x + grad, axis=1) + energy)
    x, grad = (np.where(is_lost[:, None], 0.0, rows) for rows in (x, grad))
    energy[is_lost] = np.inf
    level = energy - 0.5 * np.sum(x**2, axis=1) - origin
    cap, energy_cap = influence(x, grad), capped_weights(level**2, dim)
    # Only the search goes where the posterior is not. Elsewhere a high energy shows a
    # region where the surrogate was too low: it must not be weighted down.
    lowest = energy[~is_away] if not is_away.all() else energy
    excess = energy - lowest.min()
    away = np.exp(-np.maximum(excess - 2 * dim, 0) / dim)
    far = (1 + np.maximum(excess - 5 * dim - 20, 0) / dim) ** -2
    weight = cap * far * np.where(is_away, away, 1.0)
    weight = np.where(log.phase[known] == LEFT_BEHIND, 0.0, weight)
    is_typical = ~is_away & (excess < 5 * dim + 20)
    if transport.cliques is not None:
        # A map along a graph does not reach where draws of worse maps have been, and
        # what is there says nothing of the residual that it needs.
        beyond = np.linalg.norm(x, axis=1) - np.sqrt(dim) - REACH
        weight = weight * np.exp(-(np.maximum(beyond, 0.0) ** 2))
        is_typical &= beyond < 0
    level[is_lost] = 0.0
    return TrainingSet(
        x,
        grad - x,
        level,
        weight,
        weight * energy_cap,
        is_typical,
        transport.cliques,
        None if log.outputs is None else log.outputs[known],
        transport,
    )

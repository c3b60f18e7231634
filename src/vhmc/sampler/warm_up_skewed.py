"""Warm-up of a map with skewed marginals, for forward models in many dimensions."""

import numpy as np

from vhmc.evaluation.evaluator import Evaluator
from vhmc.sampler.warm_up import log_weights, spread_of_log_weights
from vhmc.surrogate.trainer import Trainer, default_num_features
from vhmc.transport.affine import Affine
from vhmc.transport.skewed_fit import refitted, skewed_map
from vhmc.transport.transport_map import TransportMap

FEWEST_DIMENSIONS = 16
"""Below it emulated outputs, or a network, bend a Gaussian where that is needed."""
WIDE = 2.0
"""Spread of a Gaussian's log weights, in nats, beyond which it is bent first."""
EMULATED = 0.1
"""Held-out score error by dimension at which emulated outputs do instead."""
LEAST_A_DIMENSION = 6
"""Evaluations below which there are too few to fit such a map."""
POINTS_A_DIMENSION = 6
"""The last points of the warm-up to which a map is fitted, at most."""
EFFECTIVE = 0.75
"""Effective share of the points when they are weighted by their energies."""
MAX_POWER = 0.5
"""Power of the importance weights, at most."""
WORSE, WORSE_A_DIMENSION = 2.0, 0.1
"""Nats by which a map may be worse than the best one before that is taken again."""
HALVINGS = 30
MOST_A_DIMENSION = 16
"""Points in all; more of them change such a map no further."""


def warm_up_skewed(
    rng: np.random.Generator,
    evaluator: Evaluator,
    layer: Affine,
    allowance: int,
    batch_size: int,
) -> TransportMap:
    """Refit a map with skewed marginals at its own draws, if nothing else does.

    A thousand points do not determine the outputs of a forward model in many
    dimensions: on a Poisson inversion with 64 parameters an emulator fitted to 900
    exact draws was off by 2.5 nats at other exact draws, and by hundreds at its own. A
    map has few parameters, and its draws need no chains.

    A map fitted to its own draws is too narrow where the energy is no quadratic. So
    draws count by a power of their importance weights, the largest that leaves enough
    of them: the points are then those of a density between the map's and the true one.

    layer: the Gaussian so far, which is returned as it is if it is close enough, or if
        outputs can be emulated.
    allowance: evaluations.
    """
    dim = len(layer.mean)
    transport = TransportMap((layer,))
    if dim < FEWEST_DIMENSIONS or allowance < LEAST_A_DIMENSION * dim:
        return transport
    best, kept, points = -np.inf, transport, _Points(dim)
    number = min(allowance, MOST_A_DIMENSION * dim) // batch_size
    for count in range(number):
        theta = transport.forward(rng.standard_normal((batch_size, dim)))
        answer = evaluator.evaluate(theta, "warm-up")
        log_weight = log_weights(transport, theta, answer.energy)
        if not count:
            is_close = spread_of_log_weights(transport, theta, answer.energy) < WIDE
            if is_close or _is_emulated(rng, evaluator, transport):
                return transport
            transport = kept = skewed_map(layer)
        bound = float(np.median(log_weight))
        if bound < best - WORSE - WORSE_A_DIMENSION * dim:
            transport = kept
        elif bound > best:
            best, kept = bound, transport
        points.add(theta, answer.grad, log_weight)
        # The last map has been tried: its own draws are the last batch.
        if count + 1 < number and len(points.theta) >= dim // 2:
            weight = tempered(points.log_weight)
            transport = refitted(transport, points.theta, points.grad, weight)
    return transport


class _Points:
    """Later half of a map's draws, at most a number by dimension, with gradients."""

    def __init__(self, dim: int):
        self._dim, self._number = dim, 0
        self.theta, self.grad = np.empty((2, 0, dim))
        self.log_weight = np.empty(0)

    def add(self, theta: np.ndarray, grad: np.ndarray, log_weight: np.ndarray) -> None:
        """Those that have an energy; the first ones are forgotten."""
        known = np.isfinite(log_weight)
        self._number += int(known.sum())
        half = max(self._number // 2, self._dim)
        last = -min(half, POINTS_A_DIMENSION * self._dim)
        self.theta = np.concatenate([self.theta, theta[known]])[last:]
        self.grad = np.concatenate([self.grad, grad[known]])[last:]
        self.log_weight = np.concatenate([self.log_weight, log_weight[known]])[last:]


def tempered(log_weight: np.ndarray) -> np.ndarray:
    """Power of importance weights that leaves an effective share of the points."""

    def powered(power: float) -> np.ndarray:
        return np.exp(power * (log_weight - log_weight.max()))

    def is_enough(weight: np.ndarray) -> bool:
        total = weight.sum() ** 2 / np.sum(weight**2)
        return bool(total >= EFFECTIVE * len(weight))

    low, high = 0.0, MAX_POWER
    if is_enough(powered(high)):
        return powered(high)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if is_enough(powered(middle)) else (low, middle)
    return powered(low)


def _is_emulated(
    rng: np.random.Generator, evaluator: Evaluator, transport: TransportMap
) -> bool:
    """Whether emulated outputs are good at points held out, from the start."""
    size, observable = default_num_features(transport.dim), evaluator.target.observable
    trainer = Trainer(transport, size, rng, observable=observable)
    trainer.start(evaluator.log)
    return trainer.score_error < EMULATED

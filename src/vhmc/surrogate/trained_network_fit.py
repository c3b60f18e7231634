r"""Fit a trained network: hidden layers by score matching, output weights in one solve.

The hidden layers are trained by Adam with a group lasso on the inputs, at a few sizes
of the training set. In between new points change the output weights only.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from vhmc._types import Scalar, Shared
from vhmc.numerics.bases import softplus
from vhmc.numerics.proximal_adam import Steps, minimise, padded
from vhmc.surrogate.network_fit import place, solve_with
from vhmc.surrogate.residual_fit import AbstractResidualFit, Fitted, mean_error
from vhmc.surrogate.trained_network import Layers, TrainedNetwork
from vhmc.surrogate.training_set import TrainingSet

WIDTHS = 128, 64
"""Nodes of the first and of the second hidden layer."""
FIRST, LATER, LAST = 4000, 2000, 500
"""Steps of the first training, of one that starts warm, and of that on all points."""
RATE, LAST_RATE = 1e-2, 1e-3
"""Step sizes; small where only the points held out are new."""
FIRST_RIDGE = 1e-2
"""Of the output weights before the hidden layers are trained."""
PENALTY = 0.003
"""Of the group lasso, relative to the score error without a residual."""
GROWTH = 1.15
"""The hidden layers are trained again when there are this many times the points."""
NO_INFLUENCE = 1e-3
"""Weight below which a point is not trained on."""
CHUNK = 128
"""Points whose Jacobians are in memory together."""


class Params(NamedTuple):
    """All that is trained."""

    directions: Shared
    offsets: Shared
    mixing: Shared
    shifts: Shared
    weights: Shared

    def network(self) -> TrainedNetwork:
        """The residual, in double precision on the host."""
        *layers, weights = (np.asarray(leaf, dtype=float) for leaf in self)
        return TrainedNetwork(Layers(*layers), weights)


class Points(NamedTuple):
    """What the loss needs of the training set."""

    x: Shared
    grad: Shared
    energy: Shared
    weight: Shared
    energy_weight: Shared


class TrainedNetworkFit(AbstractResidualFit):
    """Fits of trained networks to a training set that grows.

    The points held out are never trained on by the network that is judged: `is_out`
    may only grow from fit to fit (`ResidualChoice` sees to it).
    """

    def __init__(self) -> None:
        self._judged: TrainedNetwork | None = None
        self._network: TrainedNetwork | None = None
        self._num_trained = 0

    def reset(self) -> None:
        self._judged = self._network = None

    def fit(
        self,
        rng: np.random.Generator,
        training: TrainingSet,
        is_out: np.ndarray,
        *,
        redraw: bool,
        choose_anew: bool,
        least_ridge: float,
    ) -> Fitted:
        """Train if there is reason to, else solve for the output weights again."""
        number, kept = len(training.x), training.where(~is_out)
        is_grown = number >= GROWTH * self._num_trained
        if redraw or choose_anew or self._network is None or is_grown:
            # On another map the old network is a worse start than a new one.
            start = None if redraw else self._judged
            steps = FIRST if start is None else LATER
            self._judged = train(rng, kept, start, steps, RATE)
            self._network = train(rng, training, self._judged, LAST, LAST_RATE)
            self._num_trained = number
        assert self._judged is not None
        judged = solve_outputs(self._judged, kept, least_ridge)
        network = solve_outputs(self._network, training, least_ridge)
        return Fitted(network, held_out_error(judged, training, is_out))


def held_out_error(
    network: TrainedNetwork, training: TrainingSet, is_out: np.ndarray
) -> float:
    """Score error by dimension at the points held out; infinite if they are few."""
    if is_out.sum() < 4:
        return np.inf
    out = training.where(is_out)
    return mean_error(network.grads(out.x) - out.grad, out.weight)


def train(
    rng: np.random.Generator,
    training: TrainingSet,
    start: TrainedNetwork | None,
    num_steps: int,
    rate: float,
) -> TrainedNetwork:
    """All layers after a number of steps; the start if those did not lower the loss."""
    # Those without influence may be so far away that their squares overflow.
    training = training.where(training.weight > NO_INFLUENCE)
    begin = initial(rng, training) if start is None else start
    params = Params(*begin.layers, begin.weights)
    unit = max(training_loss(None, training), 1e-12)
    steps = Steps(num_steps, rate, PENALTY * unit)
    single = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), params)
    trained = minimise(
        jax.random.key(int(rng.integers(2**31))),
        loss,
        single,
        padded(_points(training)),
        len(training.x),
        steps,
    )
    end = trained.network()
    is_better = training_loss(end, training) < training_loss(begin, training)
    return end if is_better else begin


def initial(rng: np.random.Generator, training: TrainingSet) -> TrainedNetwork:
    """First layer where the residual is, second at random, output weights solved for.

    With output weights of zero the hidden layers would have no gradient at first, and
    the group lasso would remove all inputs.
    """
    inner, outer = WIDTHS
    mixing = rng.standard_normal((outer, inner)) / np.sqrt(inner)
    nodes = place(rng, inner, training)
    layers = Layers(*nodes, mixing, rng.standard_normal(outer))
    return solve_outputs(TrainedNetwork(layers, np.zeros(outer)), training, FIRST_RIDGE)


def loss(params: Params, batch: Points) -> Scalar:
    """Weighted squared errors of gradients and energies, by dimension.

    The constant of the energies is the batch's own.
    """
    directions, offsets, mixing, shifts, weights = params
    first = batch.x @ directions.T + offsets
    second = softplus(first) @ mixing.T + shifts
    back = (jax.nn.sigmoid(second) * weights) @ mixing
    grads = (jax.nn.sigmoid(first) * back) @ directions
    levels = softplus(second) @ weights - batch.energy
    levels = levels - jnp.average(levels, weights=batch.energy_weight + 1e-12)
    errors = batch.weight @ (grads - batch.grad) ** 2
    total = jnp.sum(errors) + batch.energy_weight @ levels**2
    return total / batch.x.size


def training_loss(network: TrainedNetwork | None, training: TrainingSet) -> float:
    """The same over all points, on the host; without a network if there is none."""
    grads, levels = training.grad, training.energy
    if network is not None:
        grads = grads - network.grads(training.x)
        levels = levels - network.energies(training.x)
    weight, energy_weight = training.weight, training.energy_weight
    levels = levels - np.average(levels, weights=energy_weight + 1e-12)
    total = np.sum(weight @ grads**2) + energy_weight @ levels**2
    return float(total / (weight.sum() * training.x.shape[1]))


def solve_outputs(
    network: TrainedNetwork, training: TrainingSet, ridge: float
) -> TrainedNetwork:
    """The output weights of least loss, by a ridge towards those that were trained.

    ridge: in units of the mean diagonal of the normal equations.
    """
    layers, errors = network.layers, training.grad - network.grads(training.x)
    size = len(network.weights)
    matrix, right = np.zeros((size, size)), np.zeros(size)
    for begin in range(0, len(errors), CHUNK):
        rows = slice(begin, begin + CHUNK)
        jacobians = layers.jacobians(training.x[rows]).swapaxes(1, 2)
        root = np.sqrt(training.weight[rows])[:, None]
        flat = (jacobians * root[:, :, None]).reshape(-1, size)
        matrix += flat.T @ flat
        right += (errors[rows] * root).ravel() @ flat
    outputs = np.logaddexp(layers.hidden(training.x)[1], 0.0)
    levels = training.energy - network.energies(training.x)
    weight = training.energy_weight
    outputs = outputs - np.average(outputs, axis=0, weights=weight + 1e-12)
    matrix += outputs.T @ (weight[:, None] * outputs)
    right += outputs.T @ (weight * (levels - np.average(levels, weights=weight)))
    scale = max(float(np.diagonal(matrix).mean()), 1e-300)
    change = solve_with((matrix, right), ridge * scale)
    return TrainedNetwork(layers, network.weights + change)


def _points(training: TrainingSet) -> Points:
    """What the loss needs, with weights relative to their mean."""
    mean = max(float(training.weight.mean()), 1e-12)
    return Points(*training[:3], training.weight / mean, training.energy_weight / mean)

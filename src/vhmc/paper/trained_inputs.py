r"""Train the input weights of Algorithm 2's network, once, in the middle of training.

The paper's second extension: the full network is trained, with sparsity of the input
weights. Directions and offsets are trained by score matching on the gradients collected
so far, in the coordinates where the guide is standard normal, under a group lasso.
Output weights are then solved for as printed, and training goes on with the new nodes.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from vhmc._types import PRNGKey, Scalar, Shared
from vhmc.numerics.bases import AbstractBasis, Additive, softplus
from vhmc.numerics.gaussian import Gaussian
from vhmc.numerics.proximal_adam import Steps, minimise, padded
from vhmc.paper.potentials import Surrogate
from vhmc.paper.score_matching import ScoreFit, solve
from vhmc.surrogate.network import Nodes

NUM_STEPS = 3000
RATE = 5e-3
PENALTY = 1e-3
"""Of the group lasso, relative to the mean squared gradient in the guide's units."""
FEWEST = 32
"""Gradients below which the nodes are left as they were drawn."""


class Params(NamedTuple):
    """All that is trained, in the guide's coordinates."""

    directions: Shared
    offsets: Shared
    weights: Shared


class Gradients(NamedTuple):
    """Points and true gradients, in the guide's coordinates."""

    x: Shared
    grad: Shared


def train_inputs(
    key: PRNGKey,
    surrogate: Surrogate,
    guide: Gaussian,
    thetas: np.ndarray,
    grads: np.ndarray,
) -> Additive:
    """The nodes, trained on finite gradients at points, one a row."""
    basis = check_trainable(surrogate.basis)
    if len(thetas) < FEWEST:
        return basis
    whiten, mean = np.asarray(guide.whiten), np.asarray(guide.mean)
    # With x = R (theta - mu) a node's w . theta + b is (R^-T w) . x + (b + w . mu).
    inverse = np.linalg.inv(whiten)
    directions, offsets = np.asarray(basis.directions), np.asarray(basis.offsets)
    start = Params(directions @ inverse, offsets + directions @ mean, surrogate.weights)
    rows = Gradients((thetas - mean) @ whiten.T, grads @ inverse)
    steps = Steps(NUM_STEPS, RATE, PENALTY * float(np.mean(rows.grad**2)))
    start = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), start)
    trained = minimise(key, loss, start, padded(rows), len(thetas), steps)
    inner = np.asarray(trained.directions, dtype=float)
    directions = inner @ whiten
    offsets = np.asarray(trained.offsets, dtype=float) - directions @ mean
    return Additive(jnp.asarray(directions), jnp.asarray(offsets))


def refit(
    basis: Additive, thetas: np.ndarray, grads: np.ndarray, ridge: float
) -> ScoreFit:
    """The printed fit of the output weights to all gradients, in one solve."""
    nodes = Nodes(np.asarray(basis.directions), np.asarray(basis.offsets))
    gram, moment = nodes.normal_terms(thetas, grads)
    return solve(jnp.asarray(gram), jnp.asarray(moment), ridge)


def loss(params: Params, batch: Gradients) -> Scalar:
    """Mean squared error of the gradients."""
    directions, offsets, weights = params
    slopes = jax.nn.sigmoid(batch.x @ directions.T + offsets)
    return jnp.mean(((slopes * weights) @ directions - batch.grad) ** 2)


def check_trainable(basis: AbstractBasis) -> Additive:
    """The basis, if its nodes are of the kind that can be trained."""
    if not isinstance(basis, Additive) or basis.activation is not softplus:
        raise ValueError("input weights can be trained of additive softplus nodes only")
    return basis

r"""Minimise a loss over batches by Adam, with a group lasso on input weights.

The penalty is $\lambda \sum_k |W_{\cdot k}|$ over the columns of the input weights: all
weights of input $k$ vanish together, so that inputs which do not matter are removed.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import optax.tree_utils
from jaxtyping import Array, Float

from vhmc._types import PRNGKey, Scalar

BATCH = 128
"""Points of one step."""
DECAY = 0.05
"""Decay of all weights, relative to the step size (AdamW)."""
ADAM = optax.chain(optax.scale_by_adam(), optax.add_decayed_weights(DECAY))
EPSILON = 1e-8
SECOND_MOMENT = 0.999
"""Adam's own decay of the second moment, which the proximal step must know."""

Params = Any
"""A named tuple with a field `directions`, one row a node and one column an input."""
Batch = Any
"""Arrays with one row a point."""


class Steps(NamedTuple):
    r"""How long and how fast; data of the compiled program, so nothing is recompiled.

    number: of steps.
    rate: step size at first; it falls to zero as a cosine.
    penalty: $\lambda$, in the units of the loss.
    """

    number: int
    rate: float
    penalty: float


@partial(jax.jit, static_argnames="loss")
def minimise(
    key: PRNGKey,
    loss: Callable[[Params, Batch], Scalar],
    params: Params,
    points: Batch,
    num_points: Array,
    steps: Steps,
) -> Params:
    """Parameters after a number of steps on random batches.

    points: padded to one shape; only the first `num_points` rows are drawn.
    """

    def step(count, carry):
        params, state = carry
        key_batch = jax.random.fold_in(key, count)
        rows = jax.random.randint(key_batch, (BATCH,), 0, num_points)
        batch = jax.tree.map(lambda leaf: leaf[rows], points)
        rate = 0.5 * steps.rate * (1 + jnp.cos(jnp.pi * count / steps.number))
        updates, state = ADAM.update(jax.grad(loss)(params, batch), state, params)
        updates = jax.tree.map(lambda leaf: -rate.astype(leaf.dtype) * leaf, updates)
        params = optax.apply_updates(params, updates)
        square = optax.tree_utils.tree_get(state, "nu").directions
        square = square / (1 - SECOND_MOMENT ** (count + 1.0))
        shrunk = shrink(params.directions, square, rate * steps.penalty)
        return params._replace(directions=shrunk.astype(square.dtype)), state

    start = params, ADAM.init(params)
    return jax.lax.fori_loop(0, steps.number, step, start)[0]


def shrink(
    directions: Float[Array, "s d"], square: Float[Array, "s d"], threshold: Scalar
) -> Float[Array, "s d"]:
    r"""Proximal step of the group lasso in Adam's metric, column by column.

    Adam divides a gradient by its root mean square, and the threshold is divided alike:
    $W_{\cdot k} \leftarrow (1 - t / (D_k |W_{\cdot k}|))_+ W_{\cdot k}$ with $D_k$ the
    root of the mean of `square` over the column. So an input vanishes where its
    gradient is below the penalty, whatever scale Adam gives it.
    """
    metric = jnp.sqrt(jnp.mean(square, axis=0)) + EPSILON
    length = jnp.sqrt(jnp.sum(directions**2, axis=0))
    factor = 1 - threshold / (metric * jnp.maximum(length, 1e-30))
    return directions * jnp.maximum(factor, 0.0)


def padded(points: Batch) -> Batch:
    """Rows in single precision, as many as the next power of two: few shapes compile.

    Single precision halves the time and leaves the errors as they are.
    """

    def pad(rows: np.ndarray) -> jax.Array:
        missing = max(256, 1 << (len(rows) - 1).bit_length()) - len(rows)
        widths = [(0, missing)] + [(0, 0)] * (rows.ndim - 1)
        return jnp.asarray(np.pad(rows, widths), jnp.float32)

    return jax.tree.map(pad, points)

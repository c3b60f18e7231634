r"""A leapfrog step on the network against the matrix products it is made of.

    python benchmarks/leapfrog.py

Both are loops of 200 steps in one compiled program, measured in turn in one process;
the median of the ratios is printed. The limit is a step that does nothing but
$X W^\top$, the logistic function of it, and the product with $W$: what the slopes of
$K$ points cannot do without.
"""

import time

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import vhmc
from vhmc.core.bases import Additive, softplus
from vhmc.core.hmc import HMCState, leapfrog
from vhmc.core.residual import Residual

SHAPES = (16, 2000, 51), (8, 300, 10)
STEPS, REPEATS = 200, 25
ACTIVATIONS = {"softplus": softplus, "tanh": jnp.tanh, "sine": jnp.sin}


@jax.jit
def limit(x, directions, weights):
    """Two products and the logistic functions, each step on what the last one left."""

    def step(_, x):
        slopes = jax.nn.sigmoid(x @ directions.T) * weights
        return x - 1e-9 * (slopes @ directions)

    return jax.lax.fori_loop(0, STEPS, step, x)


@eqx.filter_jit
def ours(x, residual):
    """Trajectories of the frozen phase."""
    grad = jax.vmap(jax.grad(residual))(x)
    start = HMCState(x, jnp.zeros(len(x)), grad)
    mass = vhmc.unit_mass(x.shape[1])
    return leapfrog(residual, mass, start, jnp.ones_like(x), 1e-3, STEPS).theta


def seconds(function, *arguments):
    """One run, compiled before."""
    began = time.perf_counter()
    jax.block_until_ready(function(*arguments))
    return time.perf_counter() - began


class InSingle(eqx.Module):
    """The network in 32 bits; positions, momenta and all else in 64."""

    residual: Residual

    def __call__(self, x):
        """Energy at `x`."""
        residual = self.residual
        single = jax.tree.map(lambda leaf: leaf.astype("float32"), residual)
        network = single.weights @ single.basis.features(x.astype("float32"))
        bare = eqx.tree_at(lambda r: r.weights, residual, jnp.zeros(0))
        empty = eqx.tree_at(
            lambda r: (r.basis.directions, r.basis.offsets),
            bare,
            (jnp.zeros((0, len(x))), jnp.zeros(0)),
        )
        return empty(x) + network


def residual_of(rng, s, d, activation, dtype):
    """A network of random nodes."""
    basis = Additive(
        jnp.asarray(rng.standard_normal((s, d))),
        jnp.asarray(rng.standard_normal(s)),
        activation,
    )
    weights = jnp.asarray(rng.standard_normal(s) / s)
    residual = Residual(basis, weights, jnp.asarray(10.0), jnp.asarray(3.0))
    return residual if dtype == jnp.float64 else InSingle(residual)


def main():
    """Print microseconds a step, and the ratio."""
    rng = np.random.default_rng(0)
    for k, s, d in SHAPES:
        x = jnp.asarray(rng.standard_normal((k, d)))
        directions = jnp.asarray(rng.standard_normal((s, d)))
        weights = jnp.asarray(rng.standard_normal(s) / s)
        for name, activation in ACTIVATIONS.items():
            for dtype in (jnp.float64, jnp.float32):
                residual = residual_of(rng, s, d, activation, dtype)
                pairs = []
                for i in range(REPEATS):
                    pair = (
                        seconds(ours, x, residual),
                        seconds(limit, x, directions, weights),
                    )
                    if i:  # the first compiles
                        pairs.append(pair)
                pairs = np.array(pairs) / STEPS * 1e6
                ratio = np.median(pairs[:, 0] / pairs[:, 1])
                step, least = np.median(pairs, axis=0)
                print(
                    f"K {k:2} s {s:4} d {d:2} {name:8} {jnp.dtype(dtype).name}: "
                    f"{step:7.1f} us a step, limit {least:7.1f}, ratio {ratio:.2f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()

r"""A leapfrog step on the network against the matrix products it is made of.

    python benchmarks/leapfrog.py

Both are loops of 200 steps in one compiled program, measured in turn in one process;
the median of the ratios is printed. The limit is a step that does nothing but
$X W^\top$, the logistic function of it, and the product with $W$: what the slopes of
$K$ points cannot do without. `mixed` has nodes in 32 bits and sums in 64.

Then 250 draws of the frozen phase with all chains in one program, and with half of them
in each of two programs that run in parallel, as the sampler does.
"""

import time

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import vhmc
from vhmc.numerics.bases import Additive, softplus
from vhmc.numerics.chain_groups import side_by_side
from vhmc.numerics.hmc import HMCState, leapfrog
from vhmc.surrogate import moves
from vhmc.surrogate.residual import Guard, LatentPotential

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
def ours(x, potential):
    """Trajectories of the frozen phase."""
    grad = jax.vmap(jax.grad(potential))(x)
    start = HMCState(x, jnp.zeros(len(x)), grad)
    mass = vhmc.paper.unit_mass(x.shape[1])
    return leapfrog(potential, mass, start, jnp.ones_like(x), 1e-3, STEPS).theta


def seconds(function, *arguments):
    """One run, compiled before."""
    began = time.perf_counter()
    jax.block_until_ready(function(*arguments))
    return time.perf_counter() - began


class Variant(eqx.Module):
    """The network with any activation, in 64 bits or with its nodes in 32.

    numbers: `float64`, `float32`, or `mixed` for nodes in 32 bits and sums in 64.
    """

    basis: Additive
    weights: jax.Array
    numbers: str = eqx.field(static=True)

    def __call__(self, x):
        """Energy at `x`."""
        basis, weights = self.basis, self.weights
        if self.numbers == "float64":
            return weights @ basis.features(x)
        dtype = "float64" if self.numbers == "mixed" else "float32"
        directions, offsets = (
            part.astype("float32") for part in (basis.directions, basis.offsets)
        )

        @jax.custom_jvp
        def network(x):
            inputs = directions @ x.astype("float32") + offsets
            outputs = basis.activation(inputs).astype(dtype)
            return (weights.astype(dtype) @ outputs).astype("float64")

        @network.defjvp
        def slope(points, tangents):
            (x,), (tangent,) = points, tangents
            inputs = directions @ x.astype("float32") + offsets
            slopes = jax.vmap(jax.grad(basis.activation))(inputs).astype(dtype)
            force = (slopes * weights.astype(dtype)) @ basis.directions.astype(dtype)
            return network(x), force.astype("float64") @ tangent

        return network(x)


def potential_of(rng, s, d, activation, numbers):
    """A surrogate's energy with a network of random nodes."""
    basis = Additive(
        jnp.asarray(rng.standard_normal((s, d))),
        jnp.asarray(rng.standard_normal(s)),
        activation,
    )
    weights = jnp.asarray(rng.standard_normal(s) / s)
    guard = Guard(jnp.asarray(10.0), jnp.asarray(3.0))
    return LatentPotential(Variant(basis, weights, numbers), guard)


def on_cores(rng, k, s, d):
    """Milliseconds of a block of draws, in one program and in two."""
    potential = potential_of(rng, s, d, softplus, "float64")
    x = rng.standard_normal((k, d))
    keys = [jax.random.key(i) for i in range(2)]

    def program(key, x):
        return moves._draw_segment(key, x, potential, 0.3, 8, 1, 250)

    def median(some):
        times = [seconds(side_by_side, program, some, x) for _ in range(8)][1:]
        return 1e3 * float(np.median(times))

    one, two = median(keys[:1]), median(keys)
    print(
        f"K {k:2} s {s:4} d {d:2} 250 draws: {one:.0f} ms in one program, {two:.0f} in "
        f"two, ratio {two / one:.2f}",
        flush=True,
    )


def main():
    """Print microseconds a step, and the ratio."""
    rng = np.random.default_rng(0)
    for k, s, d in SHAPES:
        on_cores(rng, k, s, d)
        x = jnp.asarray(rng.standard_normal((k, d)))
        directions = jnp.asarray(rng.standard_normal((s, d)))
        weights = jnp.asarray(rng.standard_normal(s) / s)
        for name, activation in ACTIVATIONS.items():
            for numbers in ("float64", "mixed", "float32"):
                potential = potential_of(rng, s, d, activation, numbers)
                pairs = []
                for i in range(REPEATS):
                    pair = (
                        seconds(ours, x, potential),
                        seconds(limit, x, directions, weights),
                    )
                    if i:  # the first compiles
                        pairs.append(pair)
                pairs = np.array(pairs) / STEPS * 1e6
                ratio = np.median(pairs[:, 0] / pairs[:, 1])
                step, least = np.median(pairs, axis=0)
                print(
                    f"K {k:2} s {s:4} d {d:2} {name:8} {numbers}: "
                    f"{step:7.1f} us a step, limit {least:7.1f}, ratio {ratio:.2f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()

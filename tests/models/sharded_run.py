"""Rows on two devices of one host, which XLA simulates in this process."""

import json

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import vhmc

NUM_ROWS, DIM = 4000, 3


def main():
    """Print how energies and gradients differ between one device and two."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((NUM_ROWS, DIM))
    y = (rng.uniform(size=NUM_ROWS) < 0.5).astype(float)

    def target(x, y):
        def log_density(theta):
            logits = x @ theta
            return jnp.sum(y * logits - jnp.logaddexp(0, logits)) - theta @ theta

        return vhmc.from_jax(log_density, np.zeros(DIM))

    mesh = jax.make_mesh((2,), ("rows",), axis_types=(AxisType.Auto,))
    by_rows = NamedSharding(mesh, PartitionSpec("rows"))
    shared = [jax.device_put(part, by_rows) for part in (x, y)]
    thetas = 0.1 * rng.standard_normal((4, DIM))
    one = target(jnp.asarray(x), jnp.asarray(y)).evaluate(thetas)
    two = target(*shared).evaluate(thetas)
    posterior = vhmc.sample(target(*shared), 200, draws=20, chains=2, num_features=10)
    found = {
        "devices": len(jax.devices()),
        "rows on each": [part.data.shape[0] for part in shared[0].addressable_shards],
        "energy": float(np.abs(one.energy - two.energy).max()),
        "grad": float(np.abs(one.grad - two.grad).max()),
        "evaluations": posterior.num_evaluations,
    }
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()

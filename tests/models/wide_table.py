"""A table larger than the memory allowed for it, read by a process of its own."""

import json
import resource
import sys

import jax.numpy as jnp
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import vhmc

NUM_ROWS, NUM_COLUMNS = 2_000_000, 16
NAMES = [f"x{i}" for i in range(NUM_COLUMNS)]


def write(path):
    """Write two row groups, each larger than the memory allowed."""
    rng = np.random.default_rng(0)
    half = NUM_ROWS // 2
    schema = pa.schema([(name, pa.float64()) for name in NAMES])
    with pq.ParquetWriter(path, schema, compression="none") as writer:
        for _ in range(2):
            table = pa.table({name: rng.standard_normal(half) for name in NAMES})
            writer.write_table(table, row_group_size=half)


def log_likelihood(beta, rows):
    total = sum(rows[name] * beta[i] for i, name in enumerate(NAMES))
    return -0.5 * jnp.sum(total**2)


def peak():
    """Largest resident size so far, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def make(path):
    return vhmc.from_rows(
        log_likelihood, lambda b: -jnp.sum(b**2), path, np.zeros(NUM_COLUMNS)
    )


def pass_over(path):
    """Print how much the peak grows beyond that of the same program on a few rows."""
    few = path + ".few"
    table = pq.ParquetFile(path).iter_batches(40_000)
    pq.write_table(pa.Table.from_batches([next(table)]), few)
    del table
    thetas = np.ones((8, NUM_COLUMNS))
    make(few).evaluate(thetas)
    before = peak()
    target = make(path)
    for _ in range(2):
        assert not target.evaluate(thetas).reason.any()
    print(json.dumps({"grown by": peak() - before, "before": before}))


if __name__ == "__main__":
    {"write": write, "pass": pass_over}[sys.argv[1]](sys.argv[2])

"""A table larger than the memory it is allowed: a whole run, and the peak it had.

    python benchmarks/out_of_core.py FOLDER [GIGABYTES]

Writes a logistic regression of 25 columns as Parquet files of a gigabyte each, in row
groups of 128 MB; samples it in a process of its own; prints the seconds of a pass, the
share of them that reading alone takes, and the largest resident size of that process,
with everything that Python and JAX need. The files are removed in the end.
"""

import json
import math
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import vhmc
from vhmc.models.rows import parquet

DIM = 24
ROW_GROUP = 128 * 2**20 // (8 * (DIM + 1))
GROUPS_OF_A_FILE = 8
BUDGET = 150


def write(folder, gigabytes):
    """Rows with known coefficients."""
    rng = np.random.default_rng(0)
    beta = np.linspace(-0.5, 0.5, DIM)
    kind = pa.list_(pa.float64(), DIM)
    schema = pa.schema([("x", kind), ("y", pa.float64())])
    of_a_file = 8 * (DIM + 1) * ROW_GROUP * GROUPS_OF_A_FILE
    for number in range(math.ceil(gigabytes * 1e9 / of_a_file)):
        path = folder / f"{number:03}.parquet"
        with pq.ParquetWriter(path, schema, compression="none") as writer:
            for _ in range(GROUPS_OF_A_FILE):
                x = rng.standard_normal((ROW_GROUP, DIM))
                y = rng.uniform(size=ROW_GROUP) < 1 / (1 + np.exp(-x @ beta))
                lists = pa.FixedSizeListArray.from_arrays(pa.array(x.ravel()), DIM)
                columns = {"x": lists, "y": y.astype(float)}
                writer.write_table(
                    pa.table(columns, schema=schema), row_group_size=ROW_GROUP
                )


def log_likelihood(beta, rows):
    """Logistic regression."""
    logits = rows["x"] @ beta
    return jnp.sum(rows["y"] * logits - jnp.logaddexp(0.0, logits))


def log_prior(beta):
    """Normal."""
    return -0.005 * jnp.sum(beta**2)


def measure(folder):
    """One run, with what it took."""
    target = vhmc.from_rows(log_likelihood, log_prior, folder, np.zeros(DIM))
    began = time.perf_counter()
    posterior = vhmc.sample(target, BUDGET, progress=False)
    took = time.perf_counter() - began
    thetas = np.zeros((16, DIM))
    passes = {}
    for points in (1, 16):
        began = time.perf_counter()
        target.evaluate(thetas[:points])
        passes[points] = time.perf_counter() - began
    began = time.perf_counter()
    files = parquet.parquet_files(Path(folder))
    num_rows = sum(len(c["y"]) for c in parquet.read(files, ["x", "y"], 20_000))
    reading = time.perf_counter() - began
    error = posterior.draws["theta"].mean((0, 1)) - np.linspace(-0.5, 0.5, DIM)
    print(
        json.dumps(
            {
                "rows": num_rows,
                "verdict": posterior.verdict.status,
                "evaluations": posterior.num_evaluations,
                "seconds": took,
                "a pass with 1 point": passes[1],
                "a pass with 16 points": passes[16],
                "reading alone": reading,
                # Of 24 standard normals the largest is above 4.0 once in 650 runs.
                "largest error of a mean in posterior sd": float(
                    np.abs(error / posterior.draws["theta"].std((0, 1))).max()
                ),
                "peak in GB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
            },
            indent=1,
        )
    )


def main(place, gigabytes):
    """Write, measure in another process, clean up."""
    folder = Path(place) / "vhmc-out-of-core"
    folder.mkdir(parents=True)
    try:
        write(folder, gigabytes)
        size = sum(file.stat().st_size for file in folder.iterdir())
        print(f"{size / 1e9:.1f} GB in {len(list(folder.iterdir()))} files", flush=True)
        subprocess.run([sys.executable, __file__, "measure", str(folder)], check=True)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    if sys.argv[1:2] == ["measure"]:
        measure(sys.argv[2])
    elif len(sys.argv) > 1:
        main(sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 10.0)
    else:
        sys.exit(__doc__)

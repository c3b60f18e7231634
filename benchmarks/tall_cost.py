"""What a pass over tall data costs, as a model with four constants, and its forecast.

    python benchmarks/tall_cost.py

Seconds of one round of K points on N rows of d columns, logistic regression in 64 bits:

    N (K (d a + b) + d c) / cores + overhead

with a the two products of a row, a column and a point, b the activation of a row and a
point, c what a row and a column cost for any K (they are fetched from memory), and an
overhead per round. The constants are fitted to passes in memory by one half of the
shapes and checked on the other; then passes of Dask workers over covtype are measured
against them. Covtype is read from the folder that VHMC_DATA names, or downloaded.
"""

import logging
import time

import jax.numpy as jnp
import numpy as np

import vhmc
from vhmc.lab.bench.tall.problems import covtype

SHAPES = [
    (rows, dim, points)
    for rows in (30_000, 100_000, 300_000)
    for dim in (5, 20, 50)
    for points in (1, 4, 16)
]
CORES = 2


def log_likelihood(theta, rows):
    """Logistic regression."""
    logits = rows["x"] @ theta
    return jnp.sum(rows["y"] * logits - jnp.logaddexp(0.0, logits))


def log_prior(theta):
    """Normal."""
    return -0.005 * jnp.sum(theta**2)


def noise(num_rows, dim):
    """Rows of noise: the cost does not depend on them."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((num_rows, dim))
    return x, (rng.uniform(size=num_rows) < 0.5).astype(float)


def make(x, y, client=None):
    """The regression."""
    start = np.zeros(x.shape[1])
    data = {"x": x, "y": y}
    return vhmc.from_rows(log_likelihood, log_prior, data, start, client=client)


def seconds(target, points, repeats=7):
    """Median of a round."""
    thetas = 0.1 * np.random.default_rng(1).standard_normal((points, target.dim))
    target.evaluate(thetas)
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        target.evaluate(thetas)
        times.append(time.perf_counter() - began)
    return float(np.median(times))


def terms(rows, dim, points, cores):
    """What multiplies the four constants."""
    share = rows / cores
    return np.array([share * points * dim, share * points, share * dim, 1.0])


def main():
    """Fit, check, forecast."""
    measured = []
    for rows, dim in sorted({shape[:2] for shape in SHAPES}):
        target = make(*noise(rows, dim))
        for points in (1, 4, 16):
            measured.append(((rows, dim, points), seconds(target, points)))
    design = np.array([terms(*shape, CORES) for shape, _ in measured])
    times = np.array([t for _, t in measured])
    is_taught = np.arange(len(times)) % 2 == 0
    # Relative errors: short rounds count as much as long ones.
    scaled = design[is_taught] / times[is_taught, None]
    from scipy.optimize import nnls

    constants, _ = nnls(scaled, np.ones(len(scaled)))
    print(
        "constants: "
        + ", ".join(
            f"{name} {value * 1e9:.3g} ns"
            for name, value in zip("abc", constants, strict=False)
        )
        + f", overhead {constants[3] * 1e3:.2g} ms"
    )
    guess = design @ constants
    for (shape, took), told, taught in zip(measured, guess, is_taught, strict=True):
        print(
            f"N {shape[0]:7} d {shape[1]:2} K {shape[2]:2}: {took * 1e3:7.1f} ms, "
            f"model {told * 1e3:7.1f} ms{' (fitted)' if taught else ''}"
        )
    error = np.abs(guess / times - 1)[~is_taught]
    print(
        f"relative error on shapes not fitted: median {np.median(error):.2f}, "
        f"largest {error.max():.2f}"
    )
    on_workers(constants)
    forecast(constants)


def on_workers(constants):
    """One and two Dask workers, each a process with one thread."""
    from distributed import Client, LocalCluster

    problem, points = covtype(), 16
    rows, dim = problem.x.shape
    took = {}
    for workers in (1, 2):
        with (
            LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",
                silence_logs=logging.ERROR,
            ) as cluster,
            Client(cluster) as client,
        ):
            took[workers] = seconds(make(problem.x, problem.y, client), points)
            tiny = seconds(make(*noise(1_000, dim), client), points)
        told = terms(rows, dim, points, workers) @ constants
        print(
            f"Dask, {workers} workers, N {rows} d {dim} K {points}: "
            f"{took[workers] * 1e3:.0f} ms, model {told * 1e3:.0f} ms; overhead of the "
            f"engine (1,000 rows) {tiny * 1e3:.0f} ms"
        )
    print(f"two workers are {took[1] / took[2]:.2f} times one")


def forecast(constants):
    """A billion rows on a hundred workers of four cores."""
    rows, dim, points, cores, bandwidth = 10**9, 50, 16, 400, 1e9
    compute = terms(rows, dim, points, cores) @ constants
    traffic = 100 * points * (2 * dim + 1) * 8 / bandwidth
    held = rows * (dim + 1) * 8 / 100 / 1e9
    print(
        f"10^9 rows, 50 columns, 100 workers of 4 cores: {compute:.1f} s a round of 16 "
        f"points and {traffic * 1e3:.1f} ms of traffic; a run of 1,000 evaluations "
        f"takes {compute * 1000 / points / 60:.0f} min; {held:.1f} GB on each worker"
    )


if __name__ == "__main__":
    main()

"""What writing a ledger adds to an evaluation, at 50 dimensions.

    python benchmarks/ledger_cost.py

The same run with and without a ledger, in turn, in one process; and rounds of 16 points
written one after the other.
"""

import tempfile
import time
from pathlib import Path

import jax.numpy as jnp
import numpy as np

import vhmc
from vhmc.evaluation.ledger import LedgerFile, Round

DIM = 50
REPEATS = 3


def make():
    """A Gaussian with scales from 0.1 to 10."""
    scale = np.geomspace(0.1, 10, DIM)
    return vhmc.from_jax(lambda x: -0.5 * jnp.sum((x / scale) ** 2), np.ones(DIM))


def seconds(folder, number):
    """Seconds and evaluations of a run, with a ledger if a folder is given."""
    ledger = folder / f"{number}.vhmc" if folder else None
    began = time.perf_counter()
    posterior = vhmc.sample(make(), 1000, ledger=ledger)
    return time.perf_counter() - began, posterior.num_evaluations


def main():
    """Print milliseconds by evaluation."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        vhmc.sample(make(), 1000)  # compiles
        with_one, without = [], []
        for number in range(REPEATS):
            without.append(seconds(None, number)[0])
            taken, calls = seconds(folder, number)
            with_one.append(taken)
        added = 1e3 * (np.median(with_one) - np.median(without)) / calls
        print(
            f"runs of {calls} evaluations: {np.median(without):.2f} s without, "
            f"{np.median(with_one):.2f} s with a ledger: {added:.3f} ms an evaluation"
        )
        file = LedgerFile(folder / "rounds.vhmc")
        rows = np.random.default_rng(0).normal(size=(16, DIM))
        reasons = np.array([""] * 16, dtype=object)
        answers = rows[:, 0], rows, reasons
        entry = Round("points", "training", rows, *answers, 16, 0.0, 0.0)
        began = time.perf_counter()
        for _ in range(200):
            file.append(entry)
        taken = time.perf_counter() - began
        file.close()
        print(f"rounds of 16 points alone: {1e3 * taken / 3200:.3f} ms an evaluation")


if __name__ == "__main__":
    main()

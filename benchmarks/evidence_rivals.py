"""The evidence of a run against nested sampling and bridge sampling, with all errors.

Both see the exact energy without a budget: nested slice sampling by BlackJAX with 4,000
live points, and a bridge to a normal from four long chains of NUTS. A row agrees if the
difference is at most 0.05 nats, or two standard errors of it.

Run: python benchmarks/evidence_rivals.py [--seed 0] [name ...]
"""

import argparse
import sys
import time
import warnings

import numpy as np
from evidence import BUDGET, MODELS

import vhmc
from vhmc.lab.baselines.evidence import bridged_evidence, nested_evidence
from vhmc.lab.baselines.nuts import nuts_chains

NAMES = (
    *("logit, 2 d", "banana, 2 d", "eight schools, centred, 10 d"),
    *("regression with noise, 11 d", "regression, 30 d"),
)
RIVALS = {"nested sampling": nested_evidence, "NUTS and a bridge": bridged_evidence}
CHAINS, WARMUP, DRAWS = 4, 1000, 10_000
CLOSE, ERRORS = 0.05, 2.0


def exact_draws(target, seed):
    """Draws of NUTS from around the start, shape (chain, draw, dim)."""
    rng = np.random.default_rng(seed)
    starts = target.start + 0.5 * rng.standard_normal((CHAINS, target.dim))
    return nuts_chains(target.energy, starts, seed, DRAWS, WARMUP)[0]


def main() -> None:
    """Print two rows of the table for each model; the exit code says if all agree."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", default=list(NAMES))
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    print(
        "| model | truth | vhmc | error | rival | its value | its error | agree | s |"
    )
    print("|---|--:|--:|--:|---|--:|--:|---|--:|", flush=True)
    is_fine = True
    for name in chosen.names:
        target, truth = MODELS[name]()
        run = vhmc.sample(target, BUDGET, seed=chosen.seed, progress=False)
        ours, error = run.log_evidence
        draws = exact_draws(target, chosen.seed)
        for rival, method in RIVALS.items():
            began = time.perf_counter()
            value, theirs = method(target.energy, draws, chosen.seed)
            limit = max(CLOSE, ERRORS * np.hypot(error, theirs))
            agrees = bool(abs(ours - value) <= limit)
            is_fine &= agrees
            print(
                f"| {name} | {truth:.3f} | {ours:.3f} | {error:.4f} | {rival} "
                f"| {value:.3f} | {theirs:.4f} | {'yes' if agrees else 'no'} "
                f"| {time.perf_counter() - began:.0f} |",
                flush=True,
            )
    sys.exit(0 if is_fine else 1)


if __name__ == "__main__":
    main()

"""`vhmc.check` on draws of NUTS, Laplace and Pathfinder, beside their true errors.

Run: python benchmarks/check_draws.py [--budget 200] [--seed 0] [name ...]
"""

import argparse
import warnings

import numpy as np

import vhmc
from vhmc.lab.bench import rivals
from vhmc.lab.bench.problem import errors
from vhmc.lab.bench.run import PROBLEMS

NAMES = "kidiq", "eight_schools", "arK", "garch", "low_dim_gauss_mix", "banana-10"
METHODS = {
    "NUTS": rivals.nuts,
    "Laplace": rivals.laplace_only,
    "Pathfinder": rivals.pathfinder_psis,
}
RIVAL_BUDGET = 1000


def cell(problem, method, budget, seed):
    """True errors of mean and sd, and the word of the check."""
    target = problem.make()
    draws = METHODS[method](target, RIVAL_BUDGET, seed).draws
    mean_error, sd_error = errors(problem, target.parameters.constrain(draws))
    verdict = vhmc.check(target, draws, budget=budget, seed=seed)
    return f"{mean_error:.2f} / {sd_error:.2f} {verdict.status}"


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=[])
    parser.add_argument("--budget", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print("| posterior |", " | ".join(METHODS), "|")
    print("| --- |", " | ".join("---" for _ in METHODS), "|")
    np.seterr(all="ignore")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in options.names or NAMES:
            problem = PROBLEMS[name]()
            cells = [cell(problem, m, options.budget, options.seed) for m in METHODS]
            print(f"| {name} |", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()

"""Fit bounds of errors and limits of the verdict to rows of `vhmc bench verdict`.

Only the posteriors that are not held out are used. Both rules are monotone:

- The square of a bound is a sum of squared sources of error with weights that are not
  negative. They minimise the pinball loss of nine tenths of log true errors; every run
  counts the same.
- Draws are good if every statistic keeps its limit. From the limits as they are, those
  are moved that admit the run whose admission lowers the cost the most, until none does
  or the move is too long. The cost is the number of false alarms, plus that of silent
  failures times the ratio of the rates that are wanted; limits never move beyond those
  of a bad verdict.

It prints the constants for `sampler/parameter_errors.py` and `sampler/verdict.py`, and
what both rules are worth on either half. The limits act on the runs as well (a run ends
when it is good): after a change the benchmark is to be run again.

Run: python benchmarks/fit_verdict.py rows.csv [more.csv ...]
"""

import dataclasses
import json
import sys
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

from vhmc.lab.bench.rows import read_rows
from vhmc.lab.bench.summary import FAILURE, TOLERANCE
from vhmc.lab.bench.verdict.reliability import WEIGHTS, measured
from vhmc.lab.bench.verdict.rows import VerdictRow
from vhmc.lab.bench.verdict.write import Rate
from vhmc.sampler.parameter_errors import Sources, bounds
from vhmc.sampler.verdict import HIGH, RANKS, Statistics

COVERAGE = 0.9
WANTED_SILENT, WANTED_ALARMS = 0.005, 0.07
MARGIN = 1.1
"""Factor by which a limit is beyond the run that it admits, from its best value."""
PRICE = 0.5
"""False alarms that a move must save for each factor of e by which limits move."""
LEAST = 1e-4
"""Errors below this are chance."""
STARTS, STEPS = 4, 8000
BEST = {"rhat": 1.0, "importance_efficiency": 1.0, "tempered_efficiency": 1.0}
BEST |= {"independent_acceptance": 1.0, "delayed_acceptance_rate": 1.0}
"""Of statistics whose best value is not zero; the distance from it has the margin."""


def table(rows, kind):
    """Squared sources, true errors and weights of all numbers of some runs."""
    parts = []
    for row in rows:
        found = measured(row, kind)
        if found is None or not found.is_known.any():
            continue
        known = found.is_known
        share = np.full(known.sum(), 1 / known.sum())
        sources = np.array(found.sources)[:, known]
        parts.append((sources**2, np.maximum(found.true[known], LEAST), share))
    squares, true, share = (
        np.concatenate(x, axis=-1) for x in zip(*parts, strict=True)
    )
    return squares.T, true, share / share.sum()


def fitted_weights(rows, kind):
    """Weights of the sources, by several descents from random starts."""
    squares, true, share = table(rows, kind)

    def loss(logs):
        above = np.log(true) - 0.5 * np.log(squares @ np.exp(logs) + LEAST**2)
        return share @ np.maximum(COVERAGE * above, (COVERAGE - 1) * above)

    options = {"maxiter": STEPS, "maxfev": STEPS, "xatol": 1e-3, "fatol": 1e-7}
    ends = []
    for seed in range(STARTS):
        start = np.random.default_rng(seed).normal(0, 1, squares.shape[1])
        ends.append(minimize(loss, start, method="Nelder-Mead", options=options))
    best = np.exp(min(ends, key=lambda end: end.fun).x)
    # What adds next to nothing anywhere is left out.
    best[np.max(best * squares / (squares @ best)[:, None], axis=0) < 0.01] = 0.0
    return tuple(float(f"{weight:.2g}") for weight in best)


def numbers_of(row, weights):
    """Statistics of a run with the bounds that these weights give."""
    numbers = json.loads(row.numbers)
    largest = [0.0]
    for kind, of_kind in weights.items():
        found = measured(row, kind)
        if found is not None:
            largest.append(np.nanmax([0.0, *bounds(found.sources, of_kind)]))
    return numbers | {"error_bound": max(largest)}


def status(row, numbers, limits):
    """The verdict that the limits give."""
    if not json.loads(row.numbers):
        return "bad"
    ranks = [limit.rank(numbers[name]) for name, limit in limits.items()]
    return RANKS[max(*ranks, RANKS.index(row.concern))]


def rates(rows, numbers, limits):
    """Silent failures of those called good, false alarms of the accurate ones."""
    pairs = [
        (row, status(row, n, limits)) for row, n in zip(rows, numbers, strict=True)
    ]
    good = [row for row, word in pairs if word == "good"]
    accurate = [word for row, word in pairs if row.error <= TOLERANCE]
    silent = Rate(sum(not row.error <= FAILURE for row in good), len(good))
    return silent, Rate(sum(word != "good" for word in accurate), len(accurate))


def cost(rows, numbers, limits):
    """False alarms, and silent failures at their price."""
    silent, alarms = rates(rows, numbers, limits)
    return alarms.number + WANTED_ALARMS / WANTED_SILENT * silent.number


def moved(name, limit, value):
    """The limit that admits a value with a margin, unless that would be a bad one."""
    best = BEST.get(name, 0.0)
    if limit.sign != HIGH and best == 0.0:
        new = value / MARGIN
    else:
        new = best + MARGIN * (value - best)
    beyond = limit.sign * new > limit.sign * limit.bad
    return None if not np.isfinite(new) or beyond else limit._replace(caution=new)


def length(name, old, new):
    """How far a limit was moved, as the logarithm of a factor."""
    best = BEST.get(name, 0.0)
    return abs(np.log(abs(new.caution - best) / abs(old.caution - best)))


def admitting(known, limits):
    """Limits that admit a run, and the length of the move; none if that cannot be."""
    new, size = dict(limits), 0.0
    for name, limit in limits.items():
        if not limit.rank(known[name]):
            continue
        if (other := moved(name, limit, known[name])) is None:
            return None
        new[name] = other
        size += length(name, limit, other)
    return new, size


def fitted_limits(rows, numbers, limits):
    """Limits after the moves that pay, and those moves."""
    moves, now = [], cost(rows, numbers, limits)
    while True:
        trials = []
        for row, known in zip(rows, numbers, strict=True):
            alarms = row.error <= TOLERANCE and status(row, known, limits) != "good"
            found = admitting(known, limits) if alarms and row.numbers != "{}" else None
            if found is not None:
                gain = now - cost(rows, numbers, found[0])
                trials.append((gain - PRICE * found[1], gain, row.problem, found[0]))
        best = max(trials, key=lambda trial: trial[:3], default=(0.0,))
        if best[0] <= 0:
            return limits, moves
        _, gain, problem, new = best
        changed = (n for n in limits if limits[n] != new[n])
        parts = (f"{n} {limits[n].caution:g} to {new[n].caution:.3g}" for n in changed)
        moves.append(f"{', '.join(parts)}: admits {problem}, saves {gain:g}")
        limits, now = new, now - gain


def main():
    """Fit, print, and say what it is worth."""
    rows = [row for path in sys.argv[1:] for row in read_rows(Path(path), VerdictRow)]
    fit = [row for row in rows if not row.is_held_out]
    held = [row for row in rows if row.is_held_out]
    weights = {kind: fitted_weights(fit, kind) for kind in WEIGHTS}
    print(f"{len(fit)} runs to fit on, {len(held)} held out\n\n{Sources._fields}")
    for kind, name in (("mean", "OF_MEANS"), ("sd", "OF_SDS")):
        print(f"{name} = {', '.join(f'{weight:g}' for weight in weights[kind])}")
        for half, some in (("fitted", fit), ("held out", held)):
            squares, true, share = table(some, kind)
            within = true <= np.maximum(np.sqrt(squares @ weights[kind]), LEAST)
            by_run = f"{share @ within:.1%} with every run counted the same"
            print(f"  {half}: {Rate(int(within.sum()), len(true))}; {by_run}")
    limits = {
        entry.name: entry.metadata["limit"]
        for entry in dataclasses.fields(Statistics)
        if "limit" in entry.metadata
    }
    halves = {
        half: (some, [numbers_of(row, weights) for row in some])
        for half, some in (("fitted", fit), ("held out", held))
    }
    new, moves = fitted_limits(*halves["fitted"], limits)
    print("\nmoves of limits:", *moves, sep="\n  ")
    for word, chosen in (("limits as they are", limits), ("fitted limits", new)):
        for half, pair in halves.items():
            silent, alarms = rates(*pair, chosen)
            print(f"{word}, {half}: silent {silent}; alarms {alarms}")


if __name__ == "__main__":
    main()

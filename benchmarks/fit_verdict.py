"""Fit bounds of errors and limits of the verdict to rows of `vhmc bench verdict`.

Only the posteriors that are not held out are used. Both rules are monotone:

- The square of a bound is a sum of squared sources of error with weights that are not
  negative. They minimise the pinball loss of nine tenths of log true errors; every run
  counts the same.
- Draws are good if every statistic keeps its limit. From the limits as they are, those
  are moved that judge one more run rightly (all that keep an accurate one out, or one
  that lets a wrong one in), by what lowers the cost the most, until nothing pays. The
  cost is the number of false alarms, plus that of silent failures times the ratio of
  the rates that are wanted; limits never move beyond those of a bad verdict.

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
HEAVIEST = 9.0
"""Weight of a source at most: three times its size, as of a standard error."""
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
        logs = np.minimum(logs, np.log(HEAVIEST))
        above = np.log(true) - 0.5 * np.log(squares @ np.exp(logs) + LEAST**2)
        return share @ np.maximum(COVERAGE * above, (COVERAGE - 1) * above)

    options = {"maxiter": STEPS, "maxfev": STEPS, "xatol": 1e-3, "fatol": 1e-7}
    ends = []
    for seed in range(STARTS):
        start = np.random.default_rng(seed).normal(0, 1, squares.shape[1])
        ends.append(minimize(loss, start, method="Nelder-Mead", options=options))
    best = np.minimum(np.exp(min(ends, key=lambda end: end.fun).x), HEAVIEST)
    ratio = true**2 / (squares @ best + LEAST**2)
    order = np.argsort(ratio)
    # Where runs are few the least loss may cover less than is wanted.
    place = np.searchsorted(np.cumsum(share[order]), COVERAGE)
    best *= ratio[order[min(place, len(order) - 1)]]
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


def moved(name, limit, value, factor):
    """A limit this factor beyond a value, unless that is beyond that of a bad one."""
    best = BEST.get(name, 0.0)
    if limit.sign != HIGH and best == 0.0:
        new = value / factor
    else:
        new = best + factor * (value - best)
    beyond = limit.sign * new > limit.sign * limit.bad
    is_best = new == best
    return None if not np.isfinite(new) or beyond or is_best else new


def length(name, old, new):
    """How far a limit was moved, as the logarithm of a factor."""
    best = BEST.get(name, 0.0)
    return abs(np.log(abs(new.caution - best) / abs(old.caution - best)))


def admitting(known, limits):
    """Limits that admit a run; none if there are no such limits."""
    new = dict(limits)
    for name, limit in limits.items():
        if limit.rank(known[name]):
            other = moved(name, limit, known[name], MARGIN)
            if other is None:
                return []
            new[name] = limit._replace(caution=other)
    return [new]


def excluding(known, limits):
    """Limits that exclude a run, one statistic at a time."""
    return [
        limits | {name: limit._replace(caution=other)}
        for name, limit in limits.items()
        if (other := moved(name, limit, known[name], 1 / MARGIN)) is not None
    ]


def trials(row, known, limits):
    """Limits that would judge a run rightly, if they do not yet."""
    if not json.loads(row.numbers):
        return []
    word = status(row, known, limits)
    if word != "good" and row.error <= TOLERANCE:
        return admitting(known, limits)
    return excluding(known, limits) if word == "good" and row.error > FAILURE else []


def fitted_limits(rows, numbers, limits):
    """Limits after the moves that pay, and those moves."""
    moves, now = [], cost(rows, numbers, limits)
    while True:
        best = 0.0, 0.0, "", limits
        for row, known in zip(rows, numbers, strict=True):
            for new in trials(row, known, limits):
                gain = now - cost(rows, numbers, new)
                size = sum(length(name, limits[name], new[name]) for name in limits)
                best = max(
                    best, (gain - PRICE * size, gain, row.problem, new), key=_paid
                )
        paid, gain, problem, new = best
        if paid <= 0:
            return limits, moves
        changed = (n for n in limits if limits[n] != new[n])
        parts = (f"{n} {limits[n].caution:g} to {new[n].caution:.3g}" for n in changed)
        moves.append(f"{', '.join(parts)}: for {problem}, saves {gain:g}")
        limits, now = new, now - gain


def _paid(trial):
    return trial[0]


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

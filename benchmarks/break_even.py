"""The cost of a gradient above which vhmc is faster than NUTS.

    python benchmarks/break_even.py [docs/figures/break_even.svg]

Ours: evaluations, and seconds outside of the model in the first run of a process and in
the second, when nothing is compiled. NUTS: BlackJAX, dense metric, four chains of 250
draws after 500 of warm-up; its evaluations and smallest effective size; its own seconds
are taken as zero. Both would wait for each gradient, one at a time.

Three of the posteriors are read from the folder that VHMC_POSTERIORS names.
"""

import sys
import time

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import vhmc
from vhmc.lab.baselines.nuts import nuts
from vhmc.lab.bench.measure import TimedTarget
from vhmc.lab.bench.run import PROBLEMS
from vhmc.numerics.effective_size import bulk_ess

NAMES = "kidiq", "eight_schools", "arK", "gaussian-50"
COLORS = "#3f8fd9", "#e07b1a", "#3a9d5d", "#9a6fd0"
INK = "#808890"


def ours(name):
    """Seconds outside of the model in the first and second run, and evaluations."""
    seconds = []
    for seed in range(2):
        target = TimedTarget(PROBLEMS[name]().make())
        began = time.perf_counter()
        posterior = vhmc.sample(target, 1000, seed=seed, progress=False)
        seconds.append(time.perf_counter() - began - target.seconds)
    return *seconds, posterior.num_evaluations, posterior.verdict.status


def theirs(name):
    """Evaluations of NUTS, and its smallest effective size."""
    found = nuts(PROBLEMS[name]().make(), 0, 1000, 500)
    return found.num_evaluations, float(np.min(bulk_ess(found.draws)))


def main():
    """Print a table, and draw the curves."""
    rows = []
    for name in NAMES:
        first, later, cost, status = ours(name)
        nuts_cost, ess = theirs(name)
        saved = nuts_cost - cost
        rows.append((name, later, cost, nuts_cost))
        print(
            f"{name}: {cost} evaluations ({status}), {first:.1f} s outside the model "
            f"in the first run, {later:.1f} s later; NUTS {nuts_cost} evaluations, "
            f"ESS {ess:.0f}; break-even at {1e3 * first / saved:.2f} ms, "
            f"{1e3 * later / saved:.2f} ms",
            flush=True,
        )
    if len(sys.argv) > 1:
        draw(rows).savefig(sys.argv[1], metadata={"Date": None})


def draw(rows):
    """Time to a posterior against the cost of a gradient."""
    figure = Figure(figsize=(7.0, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    axis = figure.subplots()
    each = np.geomspace(1e-5, 10, 100)
    for (name, later, cost, nuts_cost), color in zip(rows, COLORS, strict=True):
        axis.loglog(each, later + cost * each, color=color, label=name)
        axis.loglog(each, nuts_cost * each, color=color, linestyle="--", linewidth=1)
    for seconds, word in ((60, "minute"), (3600, "hour"), (86400, "day")):
        axis.axhline(seconds, color=INK, linewidth=0.6, linestyle=":")
        axis.text(1.1e-5, seconds * 1.15, word, color=INK, fontsize=8)
    axis.set_xticks(
        [1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1, 10],
        ["10 µs", "0.1 ms", "1 ms", "10 ms", "0.1 s", "1 s", "10 s"],
    )
    axis.set(xlabel="one gradient of the model", ylabel="seconds to a posterior")
    axis.set_title("vhmc (solid) and NUTS (dashed)", fontsize=11)
    axis.legend(frameon=False, loc="lower right")
    axis.spines[["top", "right"]].set_visible(False)
    return figure


if __name__ == "__main__":
    main()

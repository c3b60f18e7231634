"""Write the results of experiment 4, and tell them as a story."""

from pathlib import Path
from typing import Any

import numpy as np

from vhmc.lab.diagnostics.amari import amari_distance
from vhmc.lab.experiments import output
from vhmc.lab.experiments.contenders import Results
from vhmc.lab.experiments.ica.run import FLOOR_DRAWS, TRUTH_CHAINS, Settings, floors
from vhmc.lab.experiments.output import Claim, Panel, Story, judge, shown
from vhmc.lab.experiments.parts import costs, total_seconds
from vhmc.lab.experiments.truth import relative_error
from vhmc.lab.plots import Axes, Curve, curve_panels

MEASURES = {
    "amari": (
        "Mean: Amari distance of the running average",
        "Amari distance to the long exact run",
    ),
    "rec": ("Covariance", "relative error of the covariance (REC)"),
}
"""Titles and labels of the panels."""
DISTANCES = (10.0, 5.0, 2.0, 1.0, 0.5, 0.2, 0.1, 0.05)
EARLY = (5.0, 2.0, 1.0)
"""Amari distances that a method may be asked to reach, and those of the early phase."""


def write(folder: Path, settings: Settings, results: Results, quick: bool) -> Story:
    """Write figure, numbers and settings; return the story for the page."""
    dim = settings.channels
    rows = [
        {
            "method": name,
            "seconds": float(moment),
            "amari": float(numbers["amari"][number]),
            "rec": float(numbers["rec"][number]),
            "draws_averaged": int(numbers["counts"][number]),
        }
        for name, numbers in results.parts.items()
        for number, moment in enumerate(settings.moments)
    ]
    output.save_table(folder, "numbers", rows)
    truth = results.truth
    mode = np.asarray(results.guide.mean).reshape(dim, dim)
    laplace = {
        "amari": amari_distance(mode, truth.mean.reshape(dim, dim)),
        "rec": relative_error(results.laplace_covariance, truth.covariance),
    }
    floor = floors(truth, settings)
    axes = [
        Axes(
            title,
            "seconds",
            label,
            _curves(results, settings, measure),
            {
                "Laplace": laplace[measure],
                f"{FLOOR_DRAWS:,} independent draws": floor[measure],
            },
        )
        for measure, (title, label) in MEASURES.items()
    ]
    figure = curve_panels([axes], 5.4, results.mark(quick))
    panel = Panel(
        "Convergence to the long exact run",
        output.save_figure(folder, "amari", figure),
        "Two panels with logarithmic axes: left the Amari distance of each method's "
        "running average by seconds, right the relative error of its covariance.",
        _claims(rows),
        _remarks(results, laplace),
    )
    story = Story(
        "Experiment 4: independent components of a magnetoencephalogram",
        f"{settings.channels} channels, {settings.channels**2} dimensions; data: "
        f"{results.data.kind} ({results.data.note}). HMC, SGLD and NUTS start at the "
        "identity; search, Hessian and training are on the clock of the methods that "
        "need them; code is compiled before. A running average is over the later half "
        "of the draws there are.",
        (panel,),
        tuple(
            {
                "method": name,
                "Amari distance at the end": shown(numbers["amari"][-1], ".3g"),
                "REC at the end": shown(numbers["rec"][-1], ".3g"),
                "variance, widest direction": shown(numbers["widest_variance"], ".2f"),
                "draws averaged": f"{int(numbers['counts'][-1])}",
                "of another twin": shown(numbers["mixed_fraction"], ".1%"),
            }
            for name, numbers in results.parts.items()
        ),
        results.data.record,
        quick,
    )
    return output.save_run(
        *(folder, "ica", settings, total_seconds(results.parts.values()), story),
        data=results.data.record,
        truth=truth.record(TRUTH_CHAINS),
        laplace=laplace,
        floor_of_independent_draws={"draws": FLOOR_DRAWS, **floor},
        draws_of_another_twin=_by_method(results, "mixed_fraction"),
        variance_along_the_widest_direction=_by_method(results, "widest_variance"),
        **costs(results.parts),
    )


def _by_method(results: Results, name: str) -> dict[str, float]:
    return {method: float(numbers[name]) for method, numbers in results.parts.items()}


def _curves(results: Results, settings: Settings, measure: str) -> list[Curve]:
    curves = []
    for name, numbers in results.parts.items():
        known = np.isfinite(numbers[measure]) & (numbers[measure] > 0)
        x, y = settings.moments[known], numbers[measure][known]
        if len(y) and np.ptp(y) == 0:  # all draws came at once: one point says it
            x, y = x[:1], y[:1]
        if len(y):
            curves.append(Curve(name, x, y))
    return curves


def _claims(rows: list[dict[str, Any]]) -> tuple[Claim, ...]:
    def first_time(method: str, distance: float) -> float:
        """Seconds until the average was first within a distance."""
        times = (
            row["seconds"]
            for row in rows
            if row["method"] == method and row["amari"] <= distance
        )
        return min(times, default=float("inf"))

    def when(seconds: float) -> str:
        return f"{seconds:.2g} s" if np.isfinite(seconds) else "never"

    def compared(distances, one: str, other: str) -> tuple[list[bool], str]:
        holds, words = [], []
        for distance in distances:
            first, second = first_time(one, distance), first_time(other, distance)
            # Neither ever, or both before the first look: nothing to compare.
            if first == second:
                continue
            holds.append(first < second)
            words.append(f"{distance:g}: {when(first)} and {when(second)}")
        return holds, "; ".join(words)

    ours, our_words = compared(DISTANCES, "VHMC", "SGLD")
    early, early_words = compared(EARLY, "SGLD", "HMC")
    return (
        Claim(
            "VHMC arrives at a lower Amari distance than SGLD, and much sooner.",
            judge(ours or [False]),
            f"First within a distance, VHMC and SGLD: {our_words}.",
        ),
        Claim(
            "SGLD is before HMC in the early phase.",
            judge(early or [False]),
            f"First within a distance, SGLD and HMC: {early_words}.",
        ),
    )


def _remarks(results: Results, laplace: dict[str, float]) -> tuple[str, ...]:
    mixed = np.nanmax([numbers["mixed_fraction"] for numbers in results.parts.values()])
    variances = _by_method(results, "widest_variance").items()
    relative = ", ".join(f"{name} {value:.2f}" for name, value in variances)
    return (
        "What the distance shows: Laplace's mode alone is within "
        f"{laplace['amari']:.2g} of the long run, so the distance says how soon the "
        "mode is found and how well an average over draws is known, and nothing of the "
        "spread. For that see the covariance.",
        "Variance along the posterior's widest direction, relative to the exact one at "
        f"the end: {relative}. Training on the surrogate's own states, as the paper's "
        "algorithm does, is mode seeking and loses some of it.",
        "Rows may be permuted and turned around without a change of the density. No "
        "average mixes such twins: every draw of the later half was compared with all "
        f"of them, and at most {mixed:.1%} of a method's draws were nearer to another "
        "than to their own average. The covariance is compared after rows were put "
        "into the order and signs of the long run.",
    )

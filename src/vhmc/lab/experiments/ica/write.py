"""The folder, the figure and the story of experiment 4."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from vhmc.lab.diagnostics.amari import amari_distance
from vhmc.lab.experiments import output
from vhmc.lab.experiments.figures import Axes, Curve, curve_panels
from vhmc.lab.experiments.ica.run import FLOOR_DRAWS, Results, Settings
from vhmc.lab.experiments.page import Claim, Panel, Story, judge, shown
from vhmc.lab.experiments.parts import costs
from vhmc.lab.experiments.truth import relative_error

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
    laplace = {
        "amari": amari_distance(
            results.mode.reshape(dim, dim), results.truth.mean.reshape(dim, dim)
        ),
        "rec": relative_error(results.laplace_covariance, results.truth.covariance),
    }
    marks = ["quick version"] if quick else []
    if results.data.kind.isupper():
        marks.append(results.data.kind)
    floor = f"{FLOOR_DRAWS:,} independent draws"
    panels = [
        Axes(
            "Mean: Amari distance of the running average",
            "seconds",
            "Amari distance to the long exact run",
            _curves(results, settings, "amari"),
            {"Laplace": laplace["amari"], floor: results.floor["amari"]},
        ),
        Axes(
            "Covariance",
            "seconds",
            "relative error of the covariance (REC)",
            _curves(results, settings, "rec"),
            {"Laplace": laplace["rec"], floor: results.floor["rec"]},
        ),
    ]
    figure = curve_panels(panels, ", ".join(marks))
    image = output.save_figure(folder, "amari", figure)[0]
    claims = _claims(rows)
    seconds = sum(float(part["part_seconds"]) for part in results.parts.values())
    record = {
        "experiment": "ica",
        "is_quick": quick,
        "settings": asdict(settings),
        "data": results.data.record,
        "truth": {
            "method": "HMC on the exact posterior, Laplace mass, 32 chains",
            "draws": results.truth.num_draws,
            "acceptance": results.truth.acceptance,
        },
        "laplace": laplace,
        "floor_of_independent_draws": {"draws": FLOOR_DRAWS, **results.floor},
        "draws_of_another_twin": {
            name: float(numbers["mixed_share"])
            for name, numbers in results.parts.items()
        },
        "variance_along_the_widest_direction": {
            name: float(numbers["wide_share"])
            for name, numbers in results.parts.items()
        },
        "seconds": round(seconds, 1),
        **costs(results.parts),
        "claims": [claim._asdict() for claim in claims],
    }
    output.save_record(folder, "run", record)
    panel = Panel(
        "Convergence to the long exact run",
        image,
        "Two panels with logarithmic axes: left the Amari distance of each method's "
        "running average by seconds, right the relative error of its covariance.",
        claims,
        _remarks(results, laplace),
    )
    return Story(
        "Experiment 4: independent components of a magnetoencephalogram",
        f"{settings.channels} channels, {settings.channels**2} dimensions; data: "
        f"{results.data.kind} ({results.data.note}). HMC, SGLD and NUTS start at the "
        "identity; search, Hessian and training are on the clock of the methods that "
        "need them; code is compiled before. A running average is over the later half "
        "of the draws there are.",
        (panel,),
        tuple(_printed(name, results) for name in results.parts),
        {
            **{name: str(value) for name, value in asdict(settings).items()},
            **results.data.record,
            "seconds": f"{seconds:.0f}",
            **output.versions(),
        },
        quick,
    )


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


def first_time(rows: list[dict[str, Any]], method: str, distance: float) -> float:
    """Seconds until the average was first within a distance."""
    times = [
        row["seconds"]
        for row in rows
        if row["method"] == method and row["amari"] <= distance
    ]
    return min(times, default=float("inf"))


def _claims(rows: list[dict[str, Any]]) -> tuple[Claim, ...]:
    def told(distances, one: str, other: str) -> tuple[list[bool], str]:
        holds, words = [], []
        for distance in distances:
            first, second = (first_time(rows, name, distance) for name in (one, other))
            # Neither ever, or both before the first look: nothing to compare.
            if first == second:
                continue
            holds.append(first < second)
            words.append(f"{distance:g}: {_when(first)} and {_when(second)}")
        return holds, "; ".join(words)

    ours, our_words = told(DISTANCES, "VHMC", "SGLD")
    early, early_words = told(EARLY, "SGLD", "HMC")
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


def _when(seconds: float) -> str:
    return f"{seconds:.2g} s" if np.isfinite(seconds) else "never"


def _remarks(results: Results, laplace: dict[str, float]) -> tuple[str, ...]:
    mixed = np.nanmax([numbers["mixed_share"] for numbers in results.parts.values()])
    shares = ", ".join(
        f"{name} {float(numbers['wide_share']):.2f}"
        for name, numbers in results.parts.items()
    )
    return (
        "What the distance shows: Laplace's mode alone is within "
        f"{laplace['amari']:.2g} of the long run, so the distance says how soon the "
        "mode is found and how well an average over draws is known, and nothing of the "
        "spread. For that see the covariance.",
        "Variance along the posterior's widest direction, as a share of the exact one, "
        f"at the end: {shares}. Training on the surrogate's own states, as the paper's "
        "algorithm does, is mode seeking and loses some of it.",
        "Rows may be permuted and turned around without a change of the density. No "
        "average mixes such twins: every draw of the later half was compared with all "
        f"of them, and at most {mixed:.1%} of a method's draws were nearer to another "
        "than to their own average. The covariance is compared after rows were put "
        "into the order and signs of the long run.",
    )


def _printed(name: str, results: Results) -> dict[str, str]:
    numbers = results.parts[name]
    return {
        "method": name,
        "Amari distance at the end": shown(float(numbers["amari"][-1]), ".3g"),
        "REC at the end": shown(float(numbers["rec"][-1]), ".3g"),
        "variance, widest direction": shown(float(numbers["wide_share"]), ".2f"),
        "draws averaged": f"{int(numbers['counts'][-1])}",
        "of another twin": shown(float(numbers["mixed_share"]), ".1%"),
    }

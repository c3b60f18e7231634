"""The folder that experiment 1 leaves behind, and the table it prints."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from vhmc.experiments import output
from vhmc.experiments.beta_binomial.measure import summarise
from vhmc.experiments.beta_binomial.run import Results, Settings
from vhmc.plotting import contour_panels, divergence_curves

LABELS = "logit of the mean rate m", "log of the precision K"
LIMITS = (-8.2, -5.2), (2.5, 15.5)
MEASURES = (
    ("kl", "KL(surrogate ‖ posterior)  [nats]", "Kullback-Leibler divergence"),
    ("d_sm", "D_SM  [squared gradient, nats²]", "Score matching, squared distance"),
)


def write(folder: Path, settings: Settings, results: Results, seconds: float) -> Table:
    """Write figures, numbers and settings; return the table for the terminal."""
    table = summarise(results.rows)
    panels = [
        (f"s = {panel.num_features}   (KL {panel.kl:.2g})", np.asarray(panel.log_q))
        for panel in results.panels
    ]
    exact = np.asarray(results.exact.log_p)
    contours = contour_panels(results.exact.box, panels, exact, LABELS, LIMITS)
    output.save_figure(folder, "contours", contours)
    curves = divergence_curves(results.rows, table, MEASURES)
    output.save_figure(folder, "divergence", curves)
    output.save_table(folder, "numbers", results.rows)
    output.save_table(folder, "summary", table)
    record = {
        "experiment": "beta-binomial",
        "settings": asdict(settings),
        "evaluations": results.costs,
        "seconds": round(seconds, 1),
        "kl_falls_by": fall(table),
    }
    output.save_record(folder, "run", record)
    return _terminal_table(table)


def fall(table: list[dict[str, Any]]) -> float:
    """Median divergence at the fewest nodes over that at the most."""
    return table[0]["kl_median"] / table[-1]["kl_median"]


def _terminal_table(table: list[dict[str, Any]]) -> Table:
    printed = Table(title="Beta-binomial: surrogate against the exact posterior")
    headers = ("s", "KL", "quartiles", "D_SM", "mean err", "accept", "leak", "warned")
    for header in headers:
        printed.add_column(header, justify="right")
    for line in table:
        printed.add_row(
            f"{line['nodes']}",
            f"{line['kl_median']:.2g}",
            f"{line['kl_lower']:.2g}-{line['kl_upper']:.2g}",
            f"{line['d_sm_median']:.2g}",
            f"{line['mean_error_median']:.2f}",
            f"{line['acceptance_training']:.2f}",
            f"{line['num_leaking']}/{line['repetitions']}",
            f"{line['num_warned']}/{line['repetitions']}",
        )
    printed.caption = (
        f"KL falls by a factor of {fall(table):.0f} from s = {table[0]['nodes']} to "
        f"{table[-1]['nodes']}. Medians over {table[0]['repetitions']} repetitions."
    )
    return printed

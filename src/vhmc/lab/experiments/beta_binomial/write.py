"""Write the results of experiment 1, and tell them as a story."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np

from vhmc.lab.experiments import output
from vhmc.lab.experiments.beta_binomial.measure import summarise
from vhmc.lab.experiments.beta_binomial.run import Results, Settings
from vhmc.lab.experiments.output import Claim, Panel, Story, judge
from vhmc.lab.plots import contour_panels, divergence_curves

LABELS = "logit of the mean rate m", "log of the precision K"
LIMITS = (-8.2, -5.2), (2.5, 15.5)
MEASURES = (
    ("kl", "KL(surrogate ‖ posterior)  [nats]", "Kullback-Leibler divergence"),
    ("d_sm", "D_SM  [squared gradient, nats²]", "Score matching, squared distance"),
)


def write(folder: Path, settings: Settings, results: Results, quick: bool) -> Story:
    """Write figures, numbers and settings; return the story for the page."""
    table, trained = summarise(results.rows), summarise(results.trained_rows)
    surrogates = [
        (f"s = {number}   (KL {kl:.2g})", log_q) for number, kl, log_q in results.panels
    ]
    exact = np.asarray(results.exact.log_p)
    contours = contour_panels(results.exact.box, surrogates, exact, LABELS, LIMITS)
    curves = divergence_curves(results.rows, table, MEASURES)
    if quick:
        for figure in (contours, curves):
            figure.suptitle("quick version", color="#b42318")
    output.save_table(folder, "numbers", results.rows)
    output.save_table(folder, "summary", table)
    if trained:
        output.save_table(folder, "numbers-trained", results.trained_rows)
        output.save_table(folder, "summary-trained", trained)
    panels = (
        Panel(
            "Approximate posteriors",
            output.save_figure(folder, "contours", contours),
            "Contours of the surrogate of median divergence for each number of "
            "nodes, with the exact posterior dashed over each and alone in the "
            "last panel.",
        ),
        Panel(
            "Divergence by number of nodes",
            output.save_figure(folder, "divergence", curves),
            "Kullback-Leibler divergence and score-matching distance of every "
            "surrogate against the number of nodes, with medians and quartiles.",
            (_claim(table),),
            (
                "Ridge, node scale and length of training were chosen on this very "
                "posterior, so the fall is that of chosen settings.",
                "Leak counts surrogates with more than 1 % of their mass outside "
                "the box on which divergences are computed.",
            ),
        ),
    )
    story = Story(
        "Experiment 1: a beta-binomial model for overdispersion",
        "Deaths by stomach cancer in twenty cities of Missouri: a skewed posterior in "
        "two dimensions, so that everything can be compared with quadrature. "
        f"{settings.repetitions} surrogates for each number of nodes, trained by the "
        f"paper's algorithm for {settings.num_train} iterations each.",
        panels,
        tuple(
            {
                "s": f"{line['nodes']}",
                "KL": f"{line['kl_median']:.2g}",
                "quartiles": f"{line['kl_lower']:.2g}-{line['kl_upper']:.2g}",
                "D_SM": f"{line['d_sm_median']:.2g}",
                "mean err": f"{line['mean_error_median']:.2f}",
                "accept": f"{line['acceptance_training']:.2f}",
                "leak": f"{line['num_leaking']}/{line['repetitions']}",
                "warned": f"{line['num_warned']}/{line['repetitions']}",
                **_trained_columns(trained[index : index + 1]),
            }
            for index, line in enumerate(table)
        ),
        {"evaluations": str(results.costs)},
        quick,
    )
    return output.save_run(
        *(folder, "beta-binomial", settings, results.seconds, story),
        data={"kind": "real", "source": "cancermortality.csv, in the package"},
        evaluations=results.costs,
        kl_falls_by=fall(table),
    )


def _trained_columns(lines: list[dict[str, float]]) -> dict[str, str]:
    """The same numbers of the form whose input weights are trained, if it ran."""
    return {
        f"{name}, trained": f"{line[key]:.2g}"
        for line in lines
        for name, key in (
            ("KL", "kl_median"),
            ("D_SM", "d_sm_median"),
            ("mean err", "mean_error_median"),
        )
    }


def _claim(table: list[dict[str, Any]]) -> Claim:
    medians = [line["kl_median"] for line in table]
    falls = [later < former for former, later in itertools.pairwise(medians)]
    return Claim(
        "The surrogate becomes more accurate as the number of nodes grows.",
        judge(falls),
        f"Median divergence at s = {', '.join(str(line['nodes']) for line in table)}: "
        + ", ".join(f"{value:.2g}" for value in medians)
        + f" nats, in all by a factor of {fall(table):.0f}.",
    )


def fall(table: list[dict[str, Any]]) -> float:
    """Median divergence at the fewest nodes over that at the most."""
    return table[0]["kl_median"] / table[-1]["kl_median"]

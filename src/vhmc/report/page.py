"""The page of a run: one file, no network."""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
import numpy as np

from vhmc.numerics.tails import WORDS
from vhmc.report import figures, graph_figure
from vhmc.report.canvas import Picture
from vhmc.report.facts import Facts, structure_of

MOST_CARDS = 24
"""Parameters with pictures of their own; all are in the table."""
MOST_PAIRS = 5
LEADS = {
    "good": "Nothing that was checked speaks against these draws.",
    "caution": "Usable, but something speaks against these draws.",
    "bad": "Do not use these draws as they are.",
    "": "Draws of the paper's algorithm, which nothing checks; vhmc.sample checks its.",
}
EXACT = (
    "The draws are corrected: their law is the posterior whatever the surrogate. What "
    "speaks against it makes their chains slow, which ESS and R-hat show."
)


class Row(NamedTuple):
    """One number of the user's space.

    picture: none for those beyond the first.
    """

    name: str
    cells: list[str]
    picture: Picture | None
    alt: str


HEADS = (
    *("mean", "sd", "5 %", "50 %", "95 %", "ESS", "R-hat"),
    *("corrected mean", "± error", "mean within (sd)", "sd within (%)"),
)


def write_page(facts: Facts, path: str | Path) -> Path:
    """Write the page; its folder is made if there is none."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(render(facts), encoding="utf-8")
    return path


def render(facts: Facts) -> str:
    """The page as text; whatever comes from the user stays text in it."""
    words = facts.words
    chains, draws, _ = facts.values.shape
    status = words["status"]
    order = _worst_first(np.fmax(facts.mean_bounds, facts.sd_bounds))
    rows = [_row(facts, i, place < MOST_CARDS) for place, i in enumerate(order)]
    worst = order[:MOST_PAIRS]
    structure = graph_figure.drawable(structure_of(facts))
    return template("vhmc.report").render(
        status=status or "unchecked",
        lead=EXACT if words["is_exact"] else LEADS[status],
        words=words,
        num_evaluations=sum(words["costs"].values()),
        num_seconds=sum(words["seconds"].values()),
        shape=f"{chains} chains of {draws} draws",
        heads=HEADS,
        rows=rows,
        has_moments=bool((facts.moments == 2).all()),
        most_cards=MOST_CARDS,
        spending=figures.spending(words["costs"]) if words["costs"] else None,
        learning=_course(facts.history, 1, "score error, unseen points"),
        acceptance=_course(facts.history, 2, "true acceptance"),
        progress=_progress(facts.history),
        parts=graph_figure.parts(structure) if structure else None,
        matrix=graph_figure.matrix(structure) if structure else None,
        gradients=figures.gradients(facts.predicted, facts.true)
        if len(facts.true)
        else None,
        fit=_fit(facts.predicted, facts.true),
        weights=figures.weights(facts.log_weights) if len(facts.log_weights) else None,
        pairs=figures.pairs(
            [facts.names[i] for i in worst],
            facts.values.reshape(-1, len(facts.names))[:, worst],
        )
        if len(worst) > 1
        else None,
        pair_names=", ".join(facts.names[i] for i in worst),
        code=words.get("command") or _code(words["settings"]),
    )


def template(package: str) -> jinja2.Template:
    """`page.html` of a package, which may extend the `base.html` of all pages."""
    loaders = [jinja2.PackageLoader(name, ".") for name in (package, "vhmc.report")]
    environment = jinja2.Environment(
        loader=jinja2.ChoiceLoader(loaders),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
    )
    return environment.get_template("page.html")


def _worst_first(bounds: np.ndarray) -> list[int]:
    """Unknown ones last, else as they come."""
    return np.argsort(-np.nan_to_num(bounds, nan=-1.0), kind="stable").tolist()


def _row(facts: Facts, index: int, has_picture: bool) -> Row:
    values = facts.values[:, :, index]
    low, middle, high = np.quantile(values, (0.05, 0.5, 0.95))
    centre, spread = _mean_and_sd(values, int(facts.moments[index]))
    cells = [
        *(centre, spread, *_numbers((low, middle, high))),
        f"{facts.ess[index]:.0f}",
        f"{facts.rhat[index]:.3f}",
        *_numbers((facts.means[index], facts.errors[index])),
        _known(facts.mean_bounds[index], ".2f"),
        _known(100 * facts.sd_bounds[index], ".0f"),
    ]
    word = WORDS[facts.moments[index]]
    alt = (
        f"{facts.names[index]}: {word or f'mean {centre}, sd {spread}'}, median "
        f"{middle:.4g}, 90 % between {low:.4g} and {high:.4g}; traces and ranks of "
        f"{len(values)} chains, R-hat {facts.rhat[index]:.3f}"
    )
    picture = figures.parameter(values) if has_picture else None
    return Row(facts.names[index], cells, picture, alt)


def _mean_and_sd(values: np.ndarray, moments: int) -> tuple[str, str]:
    """Numbers, or a word where there is none; one word is enough."""
    mean, sd = _numbers((float(values.mean()), float(values.std())))
    return (mean if moments else WORDS[0]), (sd, WORDS[1], "–")[2 - moments]


def _numbers(values: Iterable[float]) -> list[str]:
    return [_known(value, ".4g") for value in values]


def _known(value: float, form: str) -> str:
    return format(value, form) if math.isfinite(value) else "–"


def _fit(predicted: np.ndarray, true: np.ndarray) -> float:
    """Share of the variance of true gradients that the surrogate explains."""
    if not len(true):
        return float("nan")
    return float(
        1 - np.sum((predicted - true) ** 2) / np.sum((true - true.mean(0)) ** 2)
    )


def _course(history: np.ndarray, column: int, label: str) -> Picture | None:
    if not len(history):
        return None
    values = history[:, column]
    return figures.course(history[:, 0], values, label, is_rate=column == 2)


def _progress(history: np.ndarray) -> str:
    if not len(history):
        return ""
    (_, first, _), (spent, last, accepted) = history[0], history[-1]
    return (
        f"the score error at unseen points went from {first:.2g} to {last:.2g} in "
        f"{spent:.0f} evaluations, true acceptance in the last round was {accepted:.2f}"
    )


def _code(settings: dict[str, Any]) -> str:
    """The call that makes the run again; one for each budget it was given."""
    if not settings:
        return ""
    budgets = settings.get("budgets", [settings["budget"]])
    rest = {k: v for k, v in settings.items() if k not in ("budget", "budgets")}
    given = ", ".join(f"{name}={value!r}" for name, value in rest.items())
    return "\n".join(f"vhmc.sample(target, {budget}, {given})" for budget in budgets)

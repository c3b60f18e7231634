"""Posterior and verdict as a notebook shows them."""

import html
from typing import Any

COLORS = {"good": "#1a7f37", "caution": "#9a6700", "bad": "#b42318"}


def verdict_card(status: str, reasons: tuple[str, ...]) -> str:
    """The word in its colour, and the reasons."""
    color = COLORS.get(status, "#57606a")
    items = "".join(f"<li>{html.escape(reason)}</li>" for reason in reasons)
    return (
        f'<div style="border-left: .5em solid {color}; padding: .2em .8em">'
        f'<strong style="color: {color}; font-size: 1.3em">{html.escape(status)}'
        f"</strong>{f'<ul>{items}</ul>' if items else ''}</div>"
    )


def posterior_card(posterior: Any) -> str:
    """Verdict, costs, structure and ArviZ's table."""
    chains, draws, _ = posterior.unconstrained.shape
    costs = ", ".join(f"{name} {n}" for name, n in posterior.costs.items())
    verdict = posterior.verdict
    card = "" if verdict is None else verdict._repr_html_()
    structure = str(posterior.structure or "")
    note = f"<p>{html.escape(structure)}</p>" if structure else ""
    table = posterior.summary().to_html(float_format="{:.4g}".format, max_rows=20)
    return (
        f"{card}<p>{chains} chains of {draws} draws, {posterior.num_evaluations} "
        f"evaluations ({html.escape(costs)})</p>{note}{table}"
    )

"""ArviZ's table of a run, with bounds of errors, and without moments that are none."""

import math
from typing import Any

import numpy as np

from vhmc._imports import load_arviz
from vhmc.numerics.tails import WORDS


def summary(posterior: Any, options: dict[str, Any]) -> Any:
    """The table of `Posterior.summary`.

    options: those of `arviz.summary`.
    """
    # ArviZ's own rounding shows a parameter of size 0.001 as 0.001 with sd 0.000.
    options = {"round_to": "none", **options}
    table = load_arviz().summary(posterior.to_arviz(), **options)
    for name in {"ess_bulk", "ess_tail"} & set(table.columns):
        table[name] = table[name].clip(upper=posterior.max_ess)
    has_errors = posterior.verdict is not None and posterior.verdict.parameters
    has_moments = bool((posterior.moments == 2).all())
    if "mean" not in table.columns or (has_moments and not has_errors):
        return table
    places = _places(posterior, table, options)
    if not has_moments:
        _without_moments(posterior, table, places)
    if has_errors:
        bounds = posterior.error_bounds[:, places]
        table["mean_within"], table["sd_within"] = bounds
    return table


def _places(posterior: Any, table: Any, options: dict[str, Any]) -> np.ndarray:
    """Which numbers the rows of the table are: some may not be asked for."""
    if list(table.index) == posterior.names:
        return np.arange(len(table))
    named = {k: v for k, v in options.items() if k == "labeller"}
    whole = load_arviz().summary(posterior.to_arviz(), kind="stats", **named)
    return whole.index.get_indexer(table.index)


def _without_moments(posterior: Any, table: Any, places: np.ndarray) -> None:
    """Replace what does not exist in ArviZ's table by what does."""
    moments = posterior.moments[places]
    lost = {"mean": 1, "mcse_mean": 2, "sd": 2, "mcse_sd": 2}
    for name in set(lost) & set(table.columns):
        table[name] = table[name].astype(float).mask(moments < lost[name])
    leading = posterior.unconstrained.shape[:2]
    flat = [v.reshape(math.prod(leading), -1) for v in posterior.draws.values()]
    values = np.concatenate(flat, axis=1)[:, places]
    for name, probability in (("5%", 0.05), ("median", 0.5), ("95%", 0.95)):
        table[name] = np.quantile(values, probability, axis=0)
    table["moments"] = [WORDS[number] for number in moments]

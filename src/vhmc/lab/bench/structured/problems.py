"""The structured posteriors by name, with their stored moments."""

import json
from collections.abc import Callable
from functools import partial
from importlib import resources
from typing import Any

from vhmc.lab.bench import hierarchical, posteriordb
from vhmc.lab.bench.calibration import processes, regressions
from vhmc.lab.bench.calibration.run import CALIBRATION
from vhmc.lab.bench.problem import Model, Problem, with_moments
from vhmc.lab.bench.structured import counts, inversion, normal, simulated

REFERENCE = "reference.json"
"""Moments by posterior and quantity, made by benchmarks/structured_reference.py."""

MODELS: dict[str, Callable[[], Model]] = {
    "eight-schools-noncentred": posteriordb.eight_schools_model,
    "eight-schools-centred": normal.eight_schools_centred,
    "gp-pois-regr": posteriordb.gp_pois_regr_model,
    "surgical": counts.surgical,
    "hierarchical-noncentred": hierarchical.noncentred_model,
    "hierarchical-centred": hierarchical.centred_model,
    "horseshoe": regressions.horseshoe,
    "seeds": counts.seeds,
    "item-response": regressions.item_response,
    "stochastic-volatility-noncentred": processes.stochastic_volatility,
    "stochastic-volatility-centred": simulated.stochastic_volatility_centred,
    "glmm-poisson": counts.glmm_poisson,
    "rats": normal.rats,
    "radon-noncentred": normal.radon_noncentred,
    "radon-centred": normal.radon_centred,
    "irt-2pl": counts.irt_2pl,
    "radon-slopes": normal.radon_slopes,
    "mixed-500": simulated.mixed_500,
    "local-level-1000": simulated.local_level_1000,
}
"""In the order of their dimensions."""
ELSEWHERE: dict[str, Callable[[], Problem]] = {
    "hierarchical": hierarchical.noncentred,
    "gp-pois-regr": posteriordb.gp_pois_regr,
    "horseshoe": CALIBRATION["horseshoe"],
    "item-response": CALIBRATION["item-response"],
    "stochastic-volatility": CALIBRATION["stochastic-volatility"],
}
"""Posteriors whose moments another benchmark has on file."""


def posterior(name: str) -> str:
    """The name without the form: two forms of a model share their moments."""
    return name.removesuffix("-noncentred").removesuffix("-centred")


def problem(name: str) -> Problem:
    """One of `MODELS` with its reference moments."""
    return with_moments(name, MODELS[name](), _moments(posterior(name)))


STRUCTURED: dict[str, Callable[[], Problem]] = {
    name: partial(problem, name) for name in MODELS
} | {"poisson64": inversion.problem}


def _moments(key: str) -> dict[str, dict[str, Any]]:
    if key in ELSEWHERE:
        known = ELSEWHERE[key]()
        rows = zip(known.names, known.mean, known.sd, strict=True)
        return {name: {"mean": mean, "sd": sd} for name, mean, sd in rows}
    text = resources.files(__package__).joinpath(REFERENCE).read_text()
    return json.loads(text)[key]["quantities"]

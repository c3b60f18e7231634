"""A run in ArviZ's containers."""

import json
from typing import Any

import numpy as np

from vhmc._imports import load_arviz


def to_arviz(posterior: Any, log_likelihood: bool = False) -> Any:
    """What `Posterior.to_arviz` returns.

    log_likelihood: whether to add those of single observations.
    """
    attributes = {
        "inference_library": "vhmc",
        "num_evaluations": posterior.num_evaluations,
        "costs": json.dumps(posterior.costs),
        "seconds": json.dumps(posterior.seconds),
        "warnings": json.dumps(posterior.warnings),
    }
    if posterior.verdict is not None:
        attributes["verdict"] = posterior.verdict.status
        attributes["reasons"] = json.dumps(posterior.verdict.reasons)
        attributes["correction"] = posterior.correction
    if posterior.evidence is not None and not posterior.constants:
        attributes["log_evidence"], attributes["log_evidence_error"] = (
            posterior.evidence
        )
    groups = {"posterior": posterior.draws, "sample_stats": posterior.stats}
    if log_likelihood:
        groups["log_likelihood"] = posterior.parameters.log_likelihood(
            posterior.unconstrained
        )
        if not groups["log_likelihood"]:
            raise ValueError("the model does not say the likelihood of single data")
    space = posterior.parameters
    return _container(groups, attributes, space.dims, space.coords)


def _container(
    groups: dict[str, dict[str, np.ndarray]],
    attributes: dict[str, Any],
    dims: dict[str, list[str]],
    coords: dict[str, Any],
) -> Any:
    """ArviZ's container: InferenceData before version 1, DataTree since.

    groups: arrays of shape (chain, draw, ...) by name.
    """
    az = load_arviz()
    groups = {name: values for name, values in groups.items() if values}
    if int(az.__version__.split(".")[0]) < 1:
        data = az.from_dict(**groups, coords=coords, dims=dims)
    else:
        data = az.from_dict(groups, coords=coords, dims=dims)
    data.attrs.update(attributes)
    for name in groups:
        data[name].attrs.update(attributes)
    return data

"""ArviZ's two generations: InferenceData before version 1, DataTree since."""

from typing import Any

import numpy as np

from vhmc import _arviz


def to_arviz(
    groups: dict[str, dict[str, np.ndarray]],
    attributes: dict[str, Any],
    dims: dict[str, list[str]],
    coords: dict[str, Any],
) -> Any:
    """Arrays of shape (chain, draw, ...) by group as ArviZ's container."""
    az = _arviz.load()
    groups = {name: values for name, values in groups.items() if values}
    if int(az.__version__.split(".")[0]) < 1:
        data = az.from_dict(**groups, coords=coords, dims=dims)
    else:
        data = az.from_dict(groups, coords=coords, dims=dims)
    data.attrs.update(attributes)
    for name in groups:
        data[name].attrs.update(attributes)
    return data

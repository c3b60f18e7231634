"""ArviZ's two generations: InferenceData before version 1, DataTree since."""

from typing import Any

import numpy as np

from vhmc import _arviz


def to_arviz(
    posterior: dict[str, np.ndarray],
    sample_stats: dict[str, np.ndarray],
    attributes: dict[str, Any],
) -> Any:
    """Draws and statistics of shape (chain, draw, ...) as ArviZ's container."""
    az = _arviz.load()
    groups = {"posterior": posterior, "sample_stats": sample_stats}
    if int(az.__version__.split(".")[0]) < 1:
        data = az.from_dict(posterior=posterior, sample_stats=sample_stats)
    else:
        data = az.from_dict(groups)
    data.attrs.update(attributes)
    for name in groups:
        data[name].attrs.update(attributes)
    return data

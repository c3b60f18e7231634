"""Bounds of errors by parameter against true errors."""

import json
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from vhmc.lab.bench.verdict.rows import VerdictRow
from vhmc.sampler.parameter_errors import OF_MEANS, OF_SDS, Sources, bounds

WEIGHTS = {"mean": OF_MEANS, "sd": OF_SDS}


class Measured(NamedTuple):
    """Numbers of a run, of the means or the sds.

    true: absolute errors.
    sources: of these.
    """

    true: np.ndarray
    sources: Sources

    @property
    def is_known(self) -> np.ndarray:
        """Whether true errors and sources can be compared."""
        return np.isfinite(self.true) & np.isfinite(np.array(self.sources)).all(axis=0)


def measured(row: VerdictRow, kind: str) -> Measured | None:
    """What a row has of its means or its sds; none if no draw was checked.

    kind: `mean` or `sd`.
    """
    stored = {name: np.array(v) for name, v in json.loads(row.parameters).items()}
    if f"weighted_{kind}" not in stored:
        return None
    fields = (stored[f"{name}_{kind}"] for name in Sources._fields)
    return Measured(np.abs(stored[f"true_{kind}"]), Sources(*fields))


def compared(rows: Iterable[VerdictRow], kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Bounds and true errors of all numbers of some runs."""
    pairs = []
    for row in rows:
        if (found := measured(row, kind)) is not None:
            known = found.is_known
            bound = bounds(found.sources, WEIGHTS[kind])[known]
            pairs.append(np.stack([bound, found.true[known]]))
    if not pairs:
        return np.empty(0), np.empty(0)
    both = np.concatenate(pairs, axis=1)
    return both[0], both[1]


def coverage(rows: Iterable[VerdictRow]) -> dict[str, tuple[int, int]]:
    """How many true errors are within their bounds, of how many, by kind."""
    rows, found = list(rows), {}
    for kind in WEIGHTS:
        bound, true = compared(rows, kind)
        found[kind] = int(np.sum(true <= bound)), len(true)
    return found

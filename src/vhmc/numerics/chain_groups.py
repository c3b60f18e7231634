"""Run chains in groups in parallel, one core each.

XLA keeps products as small as those of a few chains on one core. Two programs of half
the chains take 0.45 to 0.8 of the time on two cores, and no more than one on one core;
four groups were slower, as their products become those of vectors.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import numpy as np

from vhmc._types import PRNGKey

GROUPS = 2
"""Number of groups, the same on every machine: a seed gives the same chains."""


def side_by_side(
    program: Callable[..., Any], keys: list[PRNGKey], *chains: np.ndarray
) -> Any:
    """Results of a program of a key and of arrays with a chain a row, joined.

    keys: one a group, as many as `num_groups` says.
    """
    groups = zip(keys, *(np.split(rows, len(keys)) for rows in chains), strict=True)
    if len(keys) == 1:
        return jax.tree.map(np.asarray, program(*next(groups)))
    with ThreadPoolExecutor(min(len(keys), num_cores())) as pool:
        parts = list(pool.map(lambda group: _done(program, group), groups))
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)


def _done(program: Callable[..., Any], group: tuple[Any, ...]) -> Any:
    return jax.tree.map(np.asarray, program(*group))


def num_groups(num_chains: int) -> int:
    """Groups of equal size, of which there is one program."""
    return GROUPS if num_chains % GROUPS == 0 and num_chains >= 2 * GROUPS else 1


def num_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1

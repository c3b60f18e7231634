"""Chains that run until a clock stops them."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np


@runtime_checkable
class Chain(Protocol):
    """What can be advanced in blocks."""

    def advance(
        self, rng: np.random.Generator, state: Any, num_draws: int
    ) -> tuple[Any, Any]:
        """So many draws more."""


class Recording(NamedTuple):
    """Draws and the second by which each was there.

    draws: shape (draw, chain, dim).
    seconds: since the clock was started.
    passes: over the data, or gradients of whatever the chain runs on.
    """

    draws: np.ndarray
    seconds: np.ndarray
    passes: float = 0.0

    def until(self, limit: float) -> np.ndarray:
        """Draws that were there in time."""
        return self.draws[self.seconds <= limit]


def warm_up(chain: Chain, state: Any, num_draws: int) -> None:
    """Compile before the clock starts."""
    chain.advance(np.random.default_rng(0), state, num_draws)


def record(
    chain: Chain,
    state: Any,
    num_draws: int,
    limit: float,
    seed: int,
    began: float | None = None,
    share: Callable[[float], None] = lambda _: None,
) -> Recording:
    """Advance in blocks of `num_draws` until the limit.

    began: reading of `time.perf_counter` when the clock was started; now unless given.
    """
    rng = np.random.default_rng(seed)
    began = time.perf_counter() if began is None else began
    blocks, seconds, passes = [], [], 0.0
    while (elapsed := time.perf_counter() - began) < limit:
        share(elapsed / limit)
        state, block = chain.advance(rng, state, num_draws)
        draws = getattr(block, "theta", block)
        if draws.ndim == 2:
            draws = draws[:, None]
        passes += getattr(block, "num_gradients", 0)
        blocks.append(draws)
        seconds += [time.perf_counter() - began] * len(draws)
    if not blocks:
        return Recording(np.zeros((0, 1, 1)), np.zeros(0))
    return Recording(np.concatenate(blocks), np.array(seconds), passes)

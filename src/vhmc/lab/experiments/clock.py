"""Run a chain until a time limit, and date its draws."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np


@runtime_checkable
class Chain(Protocol):
    """A chain that can be advanced in blocks."""

    def advance(
        self, rng: np.random.Generator, state: Any, num_draws: int
    ) -> tuple[Any, Any]:
        """The next state and draws."""


class Recording(NamedTuple):
    """Draws and the time at which each was available.

    draws: shape (draw, chain, dim).
    seconds: from the start of the clock, by draw.
    passes: over the data, or gradients of the potential the chain runs on.
    """

    draws: np.ndarray
    seconds: np.ndarray
    passes: float = 0.0

    def until(self, limit: float) -> np.ndarray:
        """Draws available by the limit."""
        return self.draws[self.seconds <= limit]


def warm_up(chain: Chain, state: Any, num_draws: int) -> None:
    """Compile a chain before the clock starts."""
    chain.advance(np.random.default_rng(0), state, num_draws)


def record(
    chain: Chain,
    state: Any,
    num_draws: int,
    limit: float,
    seed: int,
    began: float | None = None,
    on_progress: Callable[[float], None] = lambda _: None,
) -> Recording:
    """Advance in blocks of `num_draws` until `limit` seconds have passed.

    began: reading of `time.perf_counter` when the clock started; by default now.
    on_progress: called with the fraction of the time that has passed.
    """
    rng = np.random.default_rng(seed)
    began = time.perf_counter() if began is None else began
    blocks, seconds, passes = [], [], 0.0
    while (elapsed := time.perf_counter() - began) < limit:
        on_progress(elapsed / limit)
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

"""Time one method on one problem until its errors are small."""

import time
import warnings
from typing import NamedTuple

import jax
import numpy as np
from jax.experimental.compilation_cache import compilation_cache

from vhmc.evaluation.user_code import Guarded
from vhmc.lab.bench.tall.methods import METHODS, Block
from vhmc.lab.bench.tall.problems import REC, REM, Reference, TallProblem
from vhmc.lab.experiments.truth import covariance_of, relative_error

COMPILE = "/jax/core/compile/backend_compile_duration"


class Finish(NamedTuple):
    """How a method did.

    seconds: until both errors were small, compilation included; infinite if never.
    elapsed: until it was stopped.
    compiling: seconds that XLA took.
    passes: over all rows, when it was stopped.
    rem, rec: errors then.
    forecast: seconds at which the errors would be small if they fell as those of
        independent draws, at the rate of the last block; infinite if that is not known.
    model, training, drawing: what the seconds were spent on, where the method knows.
    note: what it raised, if it did.
    """

    problem: str
    rows: int
    dim: int
    method: str
    seconds: float
    elapsed: float
    compiling: float
    passes: float
    num_draws: int
    rem: float
    rec: float
    forecast: float
    model: float
    training: float
    drawing: float
    note: str


class Compiling:
    """Seconds that XLA has compiled for in this process."""

    def __init__(self) -> None:
        self.seconds = 0.0
        # Every method compiles in full, without the cache of earlier processes. JAX
        # checks only once whether there is a cache, so it must be told to check again.
        jax.config.update("jax_enable_compilation_cache", False)
        compilation_cache.reset_cache()
        jax.monitoring.register_event_duration_secs_listener(self._add)

    def _add(self, event: str, duration_secs: float, **_: str | int) -> None:
        if event == COMPILE:
            self.seconds += duration_secs


def race(
    problem: TallProblem,
    truth: Reference,
    method: str,
    limit: float,
    compiling: Compiling,
) -> Finish:
    """Run until the errors are small, the draws end, or time is up."""
    jax.clear_caches()  # every method includes its compilation
    before, began = compiling.seconds, time.perf_counter()
    draws: list[np.ndarray] = []
    rem = rec = np.inf
    last = Block(np.zeros((0, 0)), 0.0)
    arrived, before_last, rate = np.inf, np.inf, np.inf

    def run() -> None:
        nonlocal last, arrived, rem, rec, before_last, rate
        for last in METHODS[method](problem, truth, 0):
            elapsed = time.perf_counter() - began
            if len(last.draws):
                draws.append(last.draws)
                rate = max(elapsed - before_last, 0.0) / len(last.draws)
                rem, rec = _errors(draws, truth)
            before_last = elapsed
            if rem <= REM and rec <= REC:
                arrived = elapsed
            if arrived < np.inf or elapsed > limit:
                return

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _, failure = Guarded(run)()
    elapsed = time.perf_counter() - began
    # Errors of independent draws fall as one over the root of their number.
    num_draws = sum(map(len, draws))
    missing = (max(rem / REM, rec / REC, 1.0) ** 2 - 1) * num_draws
    forecast = elapsed + missing * rate if rate > 0 and num_draws else np.inf
    return Finish(
        problem=problem.name,
        rows=problem.x.shape[0],
        dim=problem.x.shape[1],
        method=method,
        seconds=arrived,
        elapsed=elapsed,
        compiling=compiling.seconds - before,
        num_draws=num_draws,
        rem=rem,
        rec=rec,
        forecast=arrived if np.isfinite(arrived) else forecast,
        note=failure,
        **{key: value for key, value in last._asdict().items() if key != "draws"},
    )


def _errors(draws: list[np.ndarray], truth: Reference) -> tuple[float, float]:
    rows = np.concatenate(draws)
    if len(rows) < 2:
        return np.inf, np.inf
    return (
        relative_error(rows.mean(axis=0), truth.mean),
        relative_error(covariance_of(rows), truth.covariance),
    )

r"""Experiment 4: the Amari distance of the running average by time.

The paper: five channels of the MEG recording, 25 dimensions, prior variance 100,
$L = 40$, $s = 1000$, $\mu_t = 1 - \exp(-t / 2000)$, about 70 % acceptance, SGLD with
natural gradient, batches of 500 and a polynomial schedule.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.optimize

from vhmc.lab.baselines import Annealed, natural_gradient
from vhmc.lab.baselines.nuts import load_blackjax
from vhmc.lab.data.dataset import Dataset
from vhmc.lab.data.meg import load_meg
from vhmc.lab.diagnostics.amari import amari_distance, is_same_twin
from vhmc.lab.experiments import contenders
from vhmc.lab.experiments.contenders import Arena, Method, OnProgress, Outcome
from vhmc.lab.experiments.parts import Numbers, Part, Progress
from vhmc.lab.experiments.truth import (
    Truth,
    covariance_of,
    exact_moments,
    relative_error,
)
from vhmc.lab.models.rows import RowModel, ica
from vhmc.numerics.bases import additive
from vhmc.paper.laplace_guide import laplace
from vhmc.paper.schedule import Ramp
from vhmc.paper.vhmc import VHMC

QUICK: dict[str, Any] = {
    "channels": 2,
    "num_rows": 2000,
    "limit": 3.0,
    "num_features": 100,
    "num_train": 320,
    "timescale": 160.0,
    "truth_draws": 10_000,
}
FULL: dict[str, Any] = {"limit": 600.0, "truth_draws": 100_000}
"""What `--quick` and `--full` change."""

MOMENTS = 40
"""Times at which errors are measured, evenly spaced on a logarithmic axis."""
EARLIEST = 0.02
"""Seconds: the first of them."""
TRUTH_CHAINS = 32
FLOOR_DRAWS = 1000
"""Independent draws whose errors are shown as a line."""


@dataclass(frozen=True)
class Settings:
    r"""Everything that can be chosen.

    limit: seconds of every method.
    channels: of the recording.
    num_steps: leapfrog steps, at most: each trajectory draws its number from one up.
    num_features, ridge, scale, timescale, num_train: of VHMC; the nodes' scale is
        relative to Laplace's Gaussian.
    acceptance: wanted of HMC and VHMC.
    a, b, delta, batch_size: of SGLD; the paper's b is 1e-4, which does not give the
        range of steps that it states, as 1e4 does.
    num_rows: of the data; None means all.
    truth_draws: of the exact run that errors are measured against.
    seed: of all random numbers.
    """

    limit: float = 60.0
    channels: int = 5
    num_steps: int = 40
    num_features: int = 1000
    ridge: float = 1.0
    scale: float = 1.0
    timescale: float = 2000.0
    num_train: int = 4000
    acceptance: float = 0.7
    a: float = 5e-3
    b: float = 1e4
    delta: float = 0.5
    batch_size: int = 500
    num_rows: int | None = None
    truth_draws: int = 30_000
    seed: int = 0

    def __post_init__(self):
        if not self.limit > EARLIEST:
            raise ValueError(f"limit must be above {EARLIEST} s, got {self.limit}")

    @property
    def moments(self) -> np.ndarray:
        """Seconds at which errors are measured."""
        return np.geomspace(EARLIEST, self.limit, MOMENTS)


class Results(NamedTuple):
    """Numbers of every method, exact moments, and the data."""

    parts: dict[str, Numbers]
    truth: Truth
    data: Dataset
    mode: np.ndarray
    laplace_covariance: np.ndarray
    floor: dict[str, float]


def run(
    folder: Path, settings: Settings, progress: Progress, data: Path | None = None
) -> Results:
    """Run everything; an interrupted run is resumed."""
    load_blackjax()  # if it is missing, say so now
    loaded = load_meg(settings.channels, data)
    model = ica(loaded.x[: settings.num_rows])
    arena = Arena(
        model, model.start, settings.limit, settings.acceptance, settings.seed
    )
    exact = Part(
        "exact moments", settings.truth_draws / 250, partial(_truth, model, settings)
    )
    methods, measured = _methods(arena, settings), partial(_measured, settings)
    first, done = contenders.run_all(
        *(folder, settings, loaded, exact, methods, measured, settings.limit, progress)
    )
    truth = Truth.from_numbers(first)
    return Results(
        {name: measure(numbers, truth, settings) for name, numbers in done.items()},
        truth,
        loaded,
        first["mode"],
        first["laplace_covariance"],
        floors(truth, settings),
    )


def floors(truth: Truth, settings: Settings) -> dict[str, float]:
    """Errors of `FLOOR_DRAWS` independent draws, medians over repetitions."""
    rng = np.random.default_rng(settings.seed)
    lower, dim = np.linalg.cholesky(truth.covariance), settings.channels
    reference = truth.mean.reshape(dim, dim)
    found = []
    for _ in range(50):
        draws = truth.mean + rng.standard_normal((FLOOR_DRAWS, dim**2)) @ lower.T
        mean = draws.mean(axis=0).reshape(dim, dim)
        rec = relative_error(covariance_of(draws), truth.covariance)
        found.append((amari_distance(mean, reference), rec))
    amari, rec = np.median(found, axis=0)
    return {"amari": float(amari), "rec": float(rec)}


def _methods(arena: Arena, settings: Settings) -> dict[str, Method]:
    schedule = Annealed(settings.a, settings.b, settings.delta)
    method = VHMC(
        num_features=settings.num_features,
        ridge=settings.ridge,
        schedule=Ramp(settings.timescale),
        num_train=settings.num_train,
        num_steps=settings.num_steps,
        jitter=1.0,
        step_size=1.0,  # the arena's kernel has its own
        nodes=partial(additive, scale=settings.scale),
    )
    return {
        "HMC": partial(contenders.hmc, arena, settings.num_steps, 1),
        "SGLD": partial(
            contenders.sgld,
            arena,
            schedule,
            settings.batch_size,
            precondition=natural_gradient,
        ),
        "VHMC": partial(contenders.vhmc, arena, method, with_training=True),
        "HMC, Laplace mass": partial(contenders.laplace_mass, arena, 1),
        "NUTS": partial(contenders.nuts, arena),
        "Pathfinder": partial(contenders.best_path, arena),
        "vhmc.sample": partial(contenders.default, arena),
    }


def _truth(
    model: RowModel, settings: Settings, on_progress: OnProgress
) -> Mapping[str, Any]:
    target = model.target()
    fitted = laplace(target, target.start)
    found = exact_moments(
        model.potential,
        fitted.guide,
        settings.truth_draws,
        TRUTH_CHAINS,
        settings.seed,
        on_progress,
    )
    return {
        **found._asdict(),
        "mode": np.asarray(fitted.guide.mean),
        "laplace_covariance": np.linalg.inv(np.asarray(fitted.guide.precision)),
    }


def _measured(settings: Settings, outcome: Outcome) -> Mapping[str, Any]:
    """Moments of the later half of the draws at each time, for the running average."""
    recording, extra = outcome
    dim = settings.channels**2
    flat, dates = recording.draws, recording.seconds
    means, covariances, counts = [], [], []
    for moment in settings.moments:
        number = int(np.searchsorted(dates, moment, side="right"))
        some = flat[number // 2 : number].reshape(-1, flat.shape[-1])
        known = len(some) > 0 and bool(np.isfinite(some).all())
        means.append(some.mean(axis=0) if known else np.full(dim, np.nan))
        enough = known and len(some) > 1
        covariances.append(
            covariance_of(some) if enough else np.full((dim, dim), np.nan)
        )
        counts.append(len(some))
    thinned = flat.reshape(-1, flat.shape[-1])
    thinned = thinned[:: max(1, len(thinned) // 2000)]
    return {
        "means": np.array(means),
        "covariances": np.array(covariances),
        "counts": np.array(counts),
        "some_draws": thinned,
        **extra,
    }


def measure(numbers: Numbers, truth: Truth, settings: Settings) -> Numbers:
    """Distances by time, and how many draws belong to another twin of the truth.

    A chain from the identity may end at any of the equivalent modes. Its average is
    compared by the Amari distance, which is the same for all of them, and its
    covariance after rows are put in the truth's order and signs.
    """
    dim = settings.channels
    last = numbers["means"][-1]
    order, signs = _align(last.reshape(dim, dim), truth.mean.reshape(dim, dim))
    turn = np.zeros((dim, dim))
    turn[np.arange(dim), order] = signs
    whole = np.kron(turn, np.eye(dim))
    draws = numbers["some_draws"].reshape(-1, dim, dim)
    later = draws[len(draws) // 2 :]
    is_own = np.array([np.nan])
    if np.isfinite(last).all():
        is_own = is_same_twin(later, last.reshape(dim, dim))
    reference = truth.mean.reshape(dim, dim)
    return {
        **numbers,
        "amari": np.array(
            [
                amari_distance(mean.reshape(dim, dim), reference)
                if np.isfinite(mean).all()
                else np.nan
                for mean in numbers["means"]
            ]
        ),
        "rec": np.array(
            [
                relative_error(whole @ covariance @ whole.T, truth.covariance)
                for covariance in numbers["covariances"]
            ]
        ),
        "mixed_fraction": np.asarray(1 - np.mean(is_own)),
        "widest_variance": _widest_variance(
            whole @ numbers["covariances"][-1] @ whole.T, truth.covariance
        ),
    }


def _align(found: np.ndarray, truth: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The row of `found`, and its sign, that matches each row of the truth."""
    if not np.isfinite(found).all():
        return np.arange(len(truth)), np.ones(len(truth))
    inner = truth @ found.T
    _, order = scipy.optimize.linear_sum_assignment(-np.abs(inner))
    return order, np.sign(inner[np.arange(len(truth)), order])


def _widest_variance(found: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Variance along the truth's widest direction, relative to the exact one."""
    values, vectors = np.linalg.eigh(truth)
    wide = vectors[:, -1]
    return np.asarray(wide @ found @ wide / values[-1])

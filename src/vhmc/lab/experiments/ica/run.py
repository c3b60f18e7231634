r"""Experiment 4: the Amari distance of the running average by time.

The paper: five channels of the MEG recording, 25 dimensions, prior variance 100,
$L = 40$, $s = 1000$, $\mu_t = 1 - \exp(-t / 2000)$, about 70 % acceptance, SGLD with
natural gradient, batches of 500 and a polynomial schedule.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import equinox as eqx
import numpy as np
import scipy.optimize

from vhmc.lab.baselines import Annealed, natural_gradient
from vhmc.lab.baselines.nuts import load_blackjax
from vhmc.lab.data.meg import load_meg
from vhmc.lab.diagnostics.amari import amari_distance, is_same_twin
from vhmc.lab.experiments import contenders
from vhmc.lab.experiments.contenders import Arena, Method, Outcome, Results
from vhmc.lab.experiments.parts import Numbers, Progress
from vhmc.lab.experiments.truth import Truth, covariance_of, relative_error
from vhmc.lab.models.rows import ica
from vhmc.numerics.bases import additive
from vhmc.paper.algorithm2 import VHMC, Ramp
from vhmc.paper.laplace_guide import laplace

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
    trained_inputs: whether the form whose input weights are trained runs as well.
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
    trained_inputs: bool = False
    seed: int = 0

    def __post_init__(self):
        if not self.limit > EARLIEST:
            raise ValueError(f"limit must be above {EARLIEST} s, got {self.limit}")

    @property
    def moments(self) -> np.ndarray:
        """Seconds at which errors are measured."""
        return np.geomspace(EARLIEST, self.limit, MOMENTS)


def run(
    folder: Path, settings: Settings, progress: Progress, data: Path | None = None
) -> Results:
    """Run everything; an interrupted run is resumed."""
    load_blackjax()  # if it is missing, say so now
    loaded = load_meg(settings.channels, data)
    model = ica(loaded.x[: settings.num_rows])
    target = model.target()
    guide = laplace(target, target.start).guide
    start, limit = model.start, settings.limit
    arena = Arena(model, guide, start, limit, settings.acceptance, settings.seed)
    methods = _methods(arena, settings)
    found = contenders.run_all(
        *(folder, settings, loaded, arena, TRUTH_CHAINS, methods, _measured, progress)
    )
    parts = {
        name: measure(numbers, found.truth, settings)
        for name, numbers in found.parts.items()
    }
    return found._replace(parts=parts)


def floors(truth: Truth, settings: Settings) -> dict[str, float]:
    """Errors of `FLOOR_DRAWS` independent draws, medians over repetitions."""
    rng = np.random.default_rng(settings.seed)
    shape = settings.channels, settings.channels
    reference = truth.mean.reshape(shape)
    found = []
    for _ in range(50):
        draws = truth.independent(rng, FLOOR_DRAWS)
        amari = amari_distance(draws.mean(axis=0).reshape(shape), reference)
        rec = relative_error(covariance_of(draws), truth.covariance)
        found.append((amari, rec))
    return dict(zip(("amari", "rec"), np.median(found, axis=0).tolist(), strict=True))


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
    size, natural = settings.batch_size, natural_gradient
    trained = eqx.tree_at(lambda method: method.trains_inputs, method, True)
    extension = {
        "VHMC, trained inputs": partial(
            contenders.vhmc, arena, trained, with_training=True
        )
    }
    return {
        "HMC": partial(contenders.hmc, arena, settings.num_steps, 1),
        "SGLD": partial(contenders.sgld, arena, schedule, size, precondition=natural),
        "VHMC": partial(contenders.vhmc, arena, method, with_training=True),
        **(extension if settings.trained_inputs else {}),
        "HMC, Laplace mass": partial(contenders.laplace_mass, arena, 1),
        **contenders.without_settings(arena),
    }


def _measured(settings: Settings, outcome: Outcome) -> Mapping[str, Any]:
    """Moments of the later half of the draws at each time, for the running average."""
    recording, extra = outcome
    dim = settings.channels**2
    draws = recording.draws
    means, covariances, counts = [], [], []
    for moment in settings.moments:
        number = int(np.searchsorted(recording.seconds, moment, side="right"))
        some = draws[number // 2 : number].reshape(-1, draws.shape[-1])
        known = len(some) > 0 and bool(np.isfinite(some).all())
        enough, unknown = known and len(some) > 1, np.full((dim, dim), np.nan)
        means.append(some.mean(axis=0) if known else unknown[0])
        covariances.append(covariance_of(some) if enough else unknown)
        counts.append(len(some))
    flat = draws.reshape(-1, draws.shape[-1])
    return {
        "means": np.array(means),
        "covariances": np.array(covariances),
        "counts": np.array(counts),
        "some_draws": flat[:: max(1, len(flat) // 2000)],
        **extra,
    }


def measure(numbers: Numbers, truth: Truth, settings: Settings) -> Numbers:
    """Distances by time, and how many draws belong to another twin of the truth.

    A chain from the identity may end at any of the equivalent modes. Its average is
    compared by the Amari distance, which is the same for all of them, and its
    covariance after rows are put in the truth's order and signs.
    """
    dim = settings.channels
    means = numbers["means"].reshape(-1, dim, dim)
    last, reference = means[-1], truth.mean.reshape(dim, dim)
    turn, is_own = np.eye(dim), np.array([np.nan])
    if np.isfinite(last).all():
        inner = reference @ last.T
        _, order = scipy.optimize.linear_sum_assignment(-np.abs(inner))
        turn = np.sign(inner) * turn[order]
        draws = numbers["some_draws"].reshape(-1, dim, dim)
        is_own = is_same_twin(draws[len(draws) // 2 :], last)
    whole = np.kron(turn, np.eye(dim))
    covariances = [whole @ one @ whole.T for one in numbers["covariances"]]
    values, vectors = np.linalg.eigh(truth.covariance)
    wide = vectors[:, -1]
    distances = [
        amari_distance(mean, reference) if np.isfinite(mean).all() else np.nan
        for mean in means
    ]
    return {
        **numbers,
        "amari": np.array(distances),
        "rec": np.array([relative_error(one, truth.covariance) for one in covariances]),
        "mixed_fraction": np.asarray(1 - np.mean(is_own)),
        # Along the truth's widest direction, relative to the exact one.
        "widest_variance": np.asarray(wide @ covariances[-1] @ wide / values[-1]),
    }

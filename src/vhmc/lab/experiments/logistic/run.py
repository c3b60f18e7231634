r"""Experiment 3: error after a fixed time against the rate of mixing.

The paper: a9a projected to 50 dimensions, 51 parameters, $s = 2000$,
$\mu_t = 1 - \exp(-t / 500)$, about 70 % acceptance, HMC and VHMC with several numbers
of leapfrog steps, SGLD with batches of 500 and several steps, errors after 300 and
3,000 seconds.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from vhmc.lab.baselines import Constant
from vhmc.lab.baselines.nuts import load_blackjax
from vhmc.lab.data.labelled import load_a9a
from vhmc.lab.experiments import contenders
from vhmc.lab.experiments.contenders import Arena, Method, Outcome, Results
from vhmc.lab.experiments.parts import Progress
from vhmc.lab.experiments.truth import covariance_of
from vhmc.lab.models.rows import logistic, projected
from vhmc.numerics.bases import unit_additive
from vhmc.numerics.effective_size import geyer_ess
from vhmc.paper.algorithm2 import VHMC, Ramp
from vhmc.paper.laplace_guide import laplace

TRUTH_CHAINS = 64
FULL: dict[str, Any] = {"limits": (300.0, 3000.0), "truth_draws": 500_000}
QUICK: dict[str, Any] = {
    "num_rows": 2000,
    "projection": 6,
    "num_features": 100,
    "hmc_steps": (10, 1),
    "vhmc_steps": (10,),
    "sgld_steps": (1e-3, 1e-4),
    "limits": (0.5, 2.0),
    "num_train": 200,
    "timescale": 50.0,
    "truth_draws": 20_000,
}
"""What `--full` and `--quick` change."""


@dataclass(frozen=True)
class Settings:
    r"""Everything that can be chosen.

    limits: seconds after which errors are measured, the second ten times the first as
        in the paper.
    hmc_steps, vhmc_steps: leapfrog steps, at most: each trajectory draws its number
        from one up to these, as the authors' code does.
    sgld_steps, batch_size: of SGLD.
    num_features, ridge, timescale, num_train: of VHMC.
    acceptance: wanted of HMC and VHMC.
    num_rows: of the data; None means all.
    projection: dimensions of the random projection.
    truth_draws: of the exact run that errors are measured against.
    seed: of all random numbers.
    """

    limits: tuple[float, float] = (4.0, 40.0)
    hmc_steps: tuple[int, ...] = (50, 40, 30, 20, 10, 5, 1)
    vhmc_steps: tuple[int, ...] = (50, 40, 30, 20, 10, 5)
    sgld_steps: tuple[float, ...] = (2e-3, 1e-3, 5e-4, 1e-4, 5e-5, 1e-5)
    batch_size: int = 500
    num_features: int = 2000
    ridge: float = 1e-6
    timescale: float = 500.0
    num_train: int = 500
    acceptance: float = 0.7
    num_rows: int | None = None
    projection: int = 50
    truth_draws: int = 60_000
    seed: int = 0

    def __post_init__(self):
        if not 0 < self.limits[0] < self.limits[1]:
            raise ValueError(f"limits must be positive and grow, got {self.limits}")


def run(
    folder: Path, settings: Settings, progress: Progress, data: Path | None = None
) -> Results:
    """Run everything; an interrupted run is resumed."""
    load_blackjax()  # if it is missing, say so now
    loaded = load_a9a(data)
    x = projected(loaded.x, settings.projection, settings.seed)
    assert loaded.y is not None
    rows = slice(settings.num_rows)
    model = logistic(x[rows], loaded.y[rows])
    target = model.target()
    guide = laplace(target, target.start).guide
    start, limit = np.asarray(guide.mean), settings.limits[-1]
    arena = Arena(model, guide, start, limit, settings.acceptance, settings.seed)
    methods = _methods(arena, settings)
    return contenders.run_all(
        *(folder, settings, loaded, arena, TRUTH_CHAINS, methods, _measured, progress)
    )


def _methods(arena: Arena, settings: Settings) -> dict[str, Method]:
    """By name: the method, then `L` or `step` if it has settings."""

    def method(num_steps: int) -> VHMC:
        return VHMC(
            num_features=settings.num_features,
            ridge=settings.ridge,
            schedule=Ramp(settings.timescale),
            num_train=settings.num_train,
            num_steps=num_steps,
            jitter=1.0,
            step_size=1.0,  # the arena's kernel has its own
            nodes=unit_additive,
        )

    middle = settings.vhmc_steps[len(settings.vhmc_steps) // 2]
    hmc, vhmc, size = contenders.hmc, contenders.vhmc, settings.batch_size
    sgld, printed = contenders.sgld, contenders.vhmc_printed
    return {
        **{
            f"HMC L={number}": partial(hmc, arena, number, max(2, 100 // number))
            for number in settings.hmc_steps
        },
        **{
            f"VHMC L={number}": partial(vhmc, arena, method(number))
            for number in settings.vhmc_steps
        },
        **{
            f"SGLD step={step:g}": partial(sgld, arena, Constant(step), size)
            for step in settings.sgld_steps
        },
        f"VHMC, printed update L={middle}": partial(printed, arena, method(middle)),
        "HMC, Laplace mass": partial(contenders.laplace_mass, arena, 5),
        **contenders.without_settings(arena),
    }


def _measured(settings: Settings, outcome: Outcome) -> Mapping[str, Any]:
    """Moments and effective draws at each limit; errors wait for the exact run."""
    recording, extra = outcome
    numbers: dict[str, Any] = dict(extra)
    for number, limit in enumerate(settings.limits):
        draws = recording.until(limit)
        dim = draws.shape[-1]
        flat = draws.reshape(-1, dim)
        known = len(draws) >= 4 and bool(np.isfinite(flat).all())
        unknown = np.full(dim, np.nan)
        numbers |= {
            f"num_draws_{number}": len(flat),
            f"mean_{number}": flat.mean(axis=0) if known else unknown,
            f"covariance_{number}": covariance_of(flat) if known else [unknown] * dim,
            f"ess_{number}": _ess(draws) if known else unknown,
        }
    return numbers


def _ess(draws: np.ndarray) -> np.ndarray:
    """The paper's effective sample size, summed over chains."""
    return np.sum([geyer_ess(chain) for chain in np.swapaxes(draws, 0, 1)], axis=0)

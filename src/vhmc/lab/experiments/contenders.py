"""The methods of experiments 3 and 4, each run on a clock.

A first run, which is discarded, compiles everything before the clock starts. Each
method returns its recording and further numbers about it.
"""

import time
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from vhmc.evaluation.target import Target
from vhmc.lab.baselines import SGLD, Annealed, Constant, ExactHMC, pathfinder
from vhmc.lab.baselines.nuts import nuts_chains
from vhmc.lab.baselines.sgld import Preconditioner, plain
from vhmc.lab.data.dataset import Dataset
from vhmc.lab.experiments.clock import Recording, record, warm_up
from vhmc.lab.experiments.parts import Numbers, Part, Progress, inputs, run_parts
from vhmc.lab.experiments.truth import Truth, exact_moments
from vhmc.lab.models.rows import RowModel
from vhmc.numerics.chains import find_step_size
from vhmc.numerics.gaussian import Gaussian
from vhmc.numerics.hmc import HMC
from vhmc.numerics.mass import mass_from_covariance, unit_mass
from vhmc.paper.algorithm2 import VHMC
from vhmc.paper.blocks import train_in_blocks
from vhmc.paper.laplace_guide import laplace
from vhmc.paper.training import train
from vhmc.sampler.sample import sample

BUDGET = 1000
"""Evaluations for the methods that have a budget."""
NUTS_WARMUP = 300

Outcome = tuple[Recording, Mapping[str, Any]]
OnProgress = Callable[[float], None]
Method = Callable[[OnProgress], Outcome]


class Arena(NamedTuple):
    """What all methods have in common.

    guide: Laplace's Gaussian, which step sizes are tuned on before the clock starts.
    start: of HMC, SGLD and NUTS.
    limit: seconds on the clock.
    acceptance: wanted of HMC and VHMC.
    """

    model: RowModel
    guide: Gaussian
    start: np.ndarray
    limit: float
    acceptance: float
    seed: int

    def recorded(
        self, chain: Any, start: np.ndarray, size: int, on_progress: OnProgress
    ) -> Recording:
        """The recording of a chain that needs no preparation on the clock."""
        state = chain.init(start)
        warm_up(chain, state, size)
        return record(chain, state, size, self.limit, self.seed, None, on_progress)

    def prepared(
        self,
        prepare: Callable[[], tuple[ExactHMC, Any, Any]],
        target: Target,
        size: int,
        on_progress: OnProgress,
    ) -> tuple[Recording, dict[str, Any], Any]:
        """The recording of a chain whose preparation is on the clock, too.

        prepare: returns the chain, where it starts, and what else is to be returned.
        """
        chain, start, _ = prepare()
        warm_up(chain, chain.init(start), size)
        on_progress(0.5)
        before, began = target.num_evaluations, time.perf_counter()
        chain, start, made = prepare()
        numbers = {
            "training_seconds": time.perf_counter() - began,
            "evaluations": target.num_evaluations - before,
            "step_size": float(chain.kernel.step_size),
        }
        clock = self.limit, self.seed, began, on_progress
        return record(chain, chain.init(start), size, *clock), numbers, made

    def kernel(self, num_steps: int) -> HMC:
        """HMC of identity mass, 1 to `num_steps` steps, tuned on Laplace's Gaussian."""
        numbers = jnp.asarray(0.01), jnp.asarray(num_steps), jnp.asarray(1.0)
        kernel = HMC(unit_mass(len(self.start)), *numbers)
        starts, key = jnp.tile(self.guide.mean, (16, 1)), jax.random.key(self.seed)
        return find_step_size(key, kernel, starts, self.guide, self.acceptance).kernel


class Results(NamedTuple):
    """Numbers of every method, exact moments, Laplace's Gaussian, and the data."""

    parts: dict[str, Numbers]
    truth: Truth
    guide: Gaussian
    data: Dataset

    @property
    def laplace_covariance(self) -> np.ndarray:
        """Of Laplace's Gaussian."""
        return np.linalg.inv(np.asarray(self.guide.precision))

    def mark(self, quick: bool) -> str:
        """What a figure must say if the run was small or the data are not real."""
        kind = self.data.kind
        return ", ".join(["quick version"] * quick + [kind] * kind.isupper())


def run_all(
    folder: Path,
    settings: Any,
    data: Dataset,
    arena: Arena,
    num_chains: int,
    methods: Mapping[str, Method],
    measured: Callable[[Any, Outcome], Mapping[str, Any]],
    progress: Progress,
) -> Results:
    """Find the exact moments and run all methods; an interrupted run is resumed.

    num_chains: of the exact run.
    measured: what is kept of an outcome, given the settings.
    """

    def moments(on_progress: OnProgress) -> Mapping[str, Any]:
        potential, number = arena.model.potential, settings.truth_draws
        return exact_moments(
            potential, arena.guide, number, num_chains, arena.seed, on_progress
        )._asdict()

    def work(method: Method, on_progress: OnProgress) -> Mapping[str, Any]:
        return measured(settings, method(on_progress))

    parts = [
        Part("exact moments", 0.128 * settings.truth_draws / num_chains, moments),
        *(
            Part(name, 1.2 * arena.limit + 5, partial(work, method))
            for name, method in methods.items()
        ),
    ]
    known = inputs(settings, data=data.sha256 or data.kind)
    done = run_parts(folder, known, parts, progress)
    exact = done.pop("exact moments")
    truth = Truth(
        exact["mean"],
        exact["covariance"],
        int(exact["num_draws"]),
        float(exact["acceptance"]),
    )
    return Results(done, truth, arena.guide, data)


def hmc(arena: Arena, num_steps: int, size: int, on_progress: OnProgress) -> Outcome:
    """One exact chain with identity mass."""
    kernel = arena.kernel(num_steps)
    chain = ExactHMC(kernel, arena.model.potential)
    recording = arena.recorded(chain, arena.start, size, on_progress)
    step_size = float(kernel.step_size)
    return recording, {"step_size": step_size, "evaluations": recording.passes}


def sgld(
    arena: Arena,
    schedule: Constant | Annealed,
    batch_size: int,
    on_progress: OnProgress,
    precondition: Preconditioner = plain,
) -> Outcome:
    """One chain; every fifth state is kept."""
    model = arena.model
    chain = SGLD(
        model.log_prior,
        model.log_likelihood,
        model.potential.rows,
        min(batch_size, model.num_rows),
        schedule,
        precondition,
        thin=5,
    )
    recording = arena.recorded(chain, arena.start, 40, on_progress)
    passes = chain.passes_per_draw * len(recording.draws)
    return recording, {"evaluations": passes}


def vhmc(
    arena: Arena, method: VHMC, on_progress: OnProgress, *, with_training: bool = False
) -> Outcome:
    """Search, Hessian, training in blocks and the frozen chain, all on the clock.

    with_training: whether states of the training phase are kept, too.
    """
    target, kernel = arena.model.target(), arena.kernel(method.num_steps)
    key = jax.random.key(arena.seed)

    def prepare():
        began = time.perf_counter()
        guide = laplace(target, target.start).guide
        searched = time.perf_counter() - began
        done = train_in_blocks(key, method, target, guide.mean, guide, kernel)
        return ExactHMC(kernel, done.surrogate), done.states[-1], (done, searched)

    size = max(10, 1000 // method.num_steps)
    recording, numbers, made = arena.prepared(prepare, target, size, on_progress)
    done, searched = made
    if with_training and len(recording.draws):
        recording = Recording(
            np.concatenate([done.states[:, None], recording.draws]),
            np.concatenate([searched + done.times, recording.seconds]),
        )
    seconds = {f"{name}_seconds": value for name, value in done.seconds.items()}
    return recording, numbers | seconds


def vhmc_printed(arena: Arena, method: VHMC, on_progress: OnProgress) -> Outcome:
    """The same with the online update as printed."""
    target, kernel = arena.model.target(), arena.kernel(method.num_steps)
    key = jax.random.key(arena.seed)

    def prepare():
        guide = laplace(target, target.start).guide
        state = method.init(key, guide.mean, guide, kernel)
        replica = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], state)
        done = train(key[None], method, target, replica)[0].state
        return ExactHMC(kernel, done.surrogate), done.theta, None

    size = max(10, 1000 // method.num_steps)
    return arena.prepared(prepare, target, size, on_progress)[:2]


def laplace_mass(arena: Arena, size: int, on_progress: OnProgress) -> Outcome:
    """A strong baseline: Laplace's mass, 16 chains in one batch, search included."""
    target = arena.model.target()

    def prepare():
        guide = laplace(target, target.start).guide
        mass = mass_from_covariance(jnp.linalg.inv(guide.precision))
        kernel = HMC(mass, jnp.asarray(0.5), jnp.asarray(3))
        chain = ExactHMC(kernel, arena.model.potential)
        return chain, jnp.tile(guide.mean, (16, 1)), None

    recording, numbers, _ = arena.prepared(prepare, target, size, on_progress)
    return recording, {"evaluations": numbers["evaluations"] + recording.passes}


def nuts(arena: Arena, on_progress: OnProgress) -> Outcome:
    """One chain with a dense metric, for as many draws as the clock allows.

    BlackJAX runs warm-up and sampling in one piece, so the times of the draws are not
    measured but spaced evenly over the part of the run that follows the warm-up.
    """
    rng = np.random.default_rng(arena.seed)
    starts = arena.start + 0.01 * rng.standard_normal((1, len(arena.start)))

    def timed(num_draws: int):
        arguments = arena.model.potential, starts, arena.seed, num_draws, NUTS_WARMUP
        nuts_chains(*arguments)
        on_progress(0.2 if num_draws == 20 else 0.6)
        began = time.perf_counter()
        return *nuts_chains(*arguments), time.perf_counter() - began

    draws, number, seconds = timed(20)
    allowed = int(NUTS_WARMUP * (arena.limit / seconds - 1))
    if allowed > 20:
        draws, number, seconds = timed(min(allowed, 1000))
    num_draws = draws.shape[1]
    first = NUTS_WARMUP / (NUTS_WARMUP + num_draws)
    dates = seconds * np.linspace(first, 1, num_draws)
    return Recording(np.swapaxes(draws, 0, 1), dates), {
        "evaluations": number,
        "total_seconds": seconds,
    }


def best_path(arena: Arena, on_progress: OnProgress) -> Outcome:
    """Pathfinder: draws of the best of its paths.

    Paths may end at different modes, whose draws must not be averaged.
    """
    target = arena.model.target()
    pathfinder(target, np.random.default_rng(arena.seed + 1), BUDGET)
    on_progress(0.5)
    before, began = target.num_evaluations, time.perf_counter()
    drawn = pathfinder(target, np.random.default_rng(arena.seed), BUDGET)
    seconds = time.perf_counter() - began
    evaluations = target.num_evaluations - before
    if not drawn:
        return Recording(np.zeros((0, 1, target.dim)), np.zeros(0)), {}
    energies = [np.mean(target.evaluate(part.draws[:50]).energy) for part in drawn]
    draws = drawn[int(np.argmin(energies))].draws[:, None]
    return Recording(draws, np.full(len(draws), seconds)), {
        "evaluations": evaluations,
        "total_seconds": seconds,
    }


def default(arena: Arena, on_progress: OnProgress) -> Outcome:
    """`vhmc.sample` as a user calls it; all draws are dated to its end."""
    target = arena.model.target()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the verdict is reported beside it
        sample(target, BUDGET, seed=arena.seed + 1, progress=False)
        on_progress(0.6)
        began = time.perf_counter()
        posterior = sample(target, BUDGET, seed=arena.seed, progress=False)
        seconds = time.perf_counter() - began
    draws = np.swapaxes(posterior.unconstrained, 0, 1)
    return Recording(draws, np.full(len(draws), seconds)), {
        "evaluations": posterior.num_evaluations,
        "total_seconds": seconds,
        "verdict": posterior.verdict.status if posterior.verdict else "",
    }


def without_settings(arena: Arena) -> dict[str, Method]:
    """The methods that have nothing to choose, by name."""
    methods = {"NUTS": nuts, "Pathfinder": best_path, "vhmc.sample": default}
    return {name: partial(method, arena) for name, method in methods.items()}

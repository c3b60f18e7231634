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

from vhmc._types import Potential
from vhmc.evaluation.target import Target
from vhmc.lab.baselines import SGLD, Annealed, Constant, ExactHMC, pathfinder
from vhmc.lab.baselines.nuts import nuts_chains
from vhmc.lab.baselines.sgld import Preconditioner, plain
from vhmc.lab.data.dataset import Dataset
from vhmc.lab.experiments.clock import Recording, record, warm_up
from vhmc.lab.experiments.parts import Numbers, Part, Progress, inputs, run_parts
from vhmc.lab.models.rows import RowModel
from vhmc.numerics.hmc import HMC
from vhmc.numerics.mass import mass_from_covariance, unit_mass
from vhmc.numerics.step_size import find_step_size
from vhmc.paper.blocks import train_in_blocks
from vhmc.paper.laplace_guide import laplace
from vhmc.paper.training import train
from vhmc.paper.vhmc import VHMC
from vhmc.sampler.sample import sample

BUDGET = 1000
"""Evaluations for the methods that have a budget."""
NUTS_WARMUP = 300

Outcome = tuple[Recording, Mapping[str, Any]]
OnProgress = Callable[[float], None]
Method = Callable[[OnProgress], Outcome]


class Arena(NamedTuple):
    """What all methods have in common.

    start: of HMC, SGLD and NUTS.
    limit: seconds on the clock.
    acceptance: wanted of HMC and VHMC.
    """

    model: RowModel
    start: np.ndarray
    limit: float
    acceptance: float
    seed: int

    def recorded(
        self, chain: Any, start: np.ndarray, size: int, on_progress: OnProgress
    ):
        """The recording of a chain that needs no preparation on the clock."""
        state = chain.init(start)
        warm_up(chain, state, size)
        return record(
            chain, state, size, self.limit, self.seed, on_progress=on_progress
        )

    def kernel(self, num_steps: int) -> HMC:
        """HMC of identity mass, 1 to `num_steps` steps, tuned on Laplace's Gaussian."""
        target = self.model.target()
        guide = laplace(target, target.start).guide
        kernel = HMC(
            unit_mass(target.dim),
            jnp.asarray(0.01),
            jnp.asarray(num_steps),
            jnp.asarray(1.0),
        )
        starts = jnp.tile(guide.mean, (16, 1))
        key = jax.random.key(self.seed)
        return find_step_size(key, kernel, starts, guide, self.acceptance).kernel


def run_all(
    folder: Path,
    settings: Any,
    data: Dataset,
    exact: Part,
    methods: Mapping[str, Method],
    measured: Callable[[Outcome], Mapping[str, Any]],
    limit: float,
    progress: Progress,
) -> tuple[Numbers, dict[str, Numbers]]:
    """Numbers of the exact run, and by name those of all methods.

    measured: what is kept of an outcome.
    limit: seconds of each method.
    """

    def work(method: Method, on_progress: OnProgress) -> Mapping[str, Any]:
        return measured(method(on_progress))

    parts = [
        Part(name, 1.2 * limit + 5, partial(work, method))
        for name, method in methods.items()
    ]
    known = inputs(settings, data=data.sha256 or data.kind)
    done = run_parts(folder, known, [exact, *parts], progress)
    return done.pop(exact.name), done


def hmc(arena: Arena, num_steps: int, size: int, on_progress: OnProgress) -> Outcome:
    """One exact chain with identity mass."""
    kernel = arena.kernel(num_steps)
    chain = ExactHMC(kernel, arena.model.potential)
    recording = arena.recorded(chain, arena.start, size, on_progress)
    return recording, {
        "step_size": float(kernel.step_size),
        "evaluations": recording.passes,
    }


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
        tuple(jnp.asarray(part) for part in model.rows),
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

    def trained():
        began = time.perf_counter()
        guide = laplace(target, target.start).guide
        searched = time.perf_counter() - began
        done = train_in_blocks(key, method, target, guide.mean, guide, kernel)
        return (done, searched), done.surrogate, done.states[-1]

    (done, searched), recording, extra = _frozen(
        arena, method, target, kernel, trained, on_progress
    )
    if with_training and len(recording.draws):
        recording = Recording(
            np.concatenate([done.states[:, None], recording.draws]),
            np.concatenate([searched + done.times, recording.seconds]),
        )
    seconds = {f"{name}_seconds": value for name, value in done.seconds.items()}
    return recording, extra | seconds


def vhmc_printed(arena: Arena, method: VHMC, on_progress: OnProgress) -> Outcome:
    """The same with the online update as printed."""
    target, kernel = arena.model.target(), arena.kernel(method.num_steps)
    key = jax.random.key(arena.seed)

    def trained():
        guide = laplace(target, target.start).guide
        state = method.init(key, guide.mean, guide, kernel)
        replica = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], state)
        done = train(key[None], method, target, replica)[0].state
        return done, done.surrogate, done.theta

    return _frozen(arena, method, target, kernel, trained, on_progress)[1:]


def _frozen(
    arena: Arena,
    method: VHMC,
    target: Target,
    kernel: HMC,
    trained: Callable[[], tuple[Any, Potential, Any]],
    on_progress: OnProgress,
) -> tuple[Any, Recording, dict[str, Any]]:
    """Train and run a chain on the surrogate, after a rehearsal that compiles both.

    trained: returns what was trained, its surrogate, and the state to go on from.
    """
    size = max(10, 1000 // method.num_steps)
    _, surrogate, last = trained()
    chain = ExactHMC(kernel, surrogate)
    warm_up(chain, chain.init(last), size)
    on_progress(0.5)
    before, began = target.num_evaluations, time.perf_counter()
    done, surrogate, last = trained()
    training = time.perf_counter() - began
    chain = ExactHMC(kernel, surrogate)
    state = chain.init(last)
    recording = record(chain, state, size, arena.limit, arena.seed, began, on_progress)
    return (
        done,
        recording,
        {
            "training_seconds": training,
            "evaluations": target.num_evaluations - before,
            "step_size": float(kernel.step_size),
        },
    )


def laplace_mass(arena: Arena, size: int, on_progress: OnProgress) -> Outcome:
    """A strong baseline: Laplace's mass, 16 chains in one batch, search included."""
    target = arena.model.target()

    def made():
        guide = laplace(target, target.start).guide
        mass = mass_from_covariance(jnp.linalg.inv(guide.precision))
        kernel = HMC(mass, jnp.asarray(0.5), jnp.asarray(3))
        chain = ExactHMC(kernel, arena.model.potential)
        return chain, chain.init(jnp.tile(guide.mean, (16, 1)))

    chain, state = made()
    warm_up(chain, state, size)
    before, began = target.num_evaluations, time.perf_counter()
    chain, state = made()
    recording = record(chain, state, size, arena.limit, arena.seed, began, on_progress)
    searched = target.num_evaluations - before
    return recording, {"evaluations": searched + recording.passes}


def nuts(arena: Arena, on_progress: OnProgress) -> Outcome:
    """One chain with a dense metric, for as many draws as the clock allows.

    BlackJAX runs warm-up and sampling in one piece, so the times of the draws are not
    measured but spaced evenly over the part of the run that follows the warm-up.
    """
    rng = np.random.default_rng(arena.seed)
    starts = arena.start + 0.01 * rng.standard_normal((1, len(arena.start)))

    def drawn(num_draws: int):
        began = time.perf_counter()
        draws, number = nuts_chains(
            arena.model.potential, starts, arena.seed, num_draws, NUTS_WARMUP
        )
        return draws, number, time.perf_counter() - began

    num_draws = 20
    drawn(num_draws)
    on_progress(0.2)
    draws, number, seconds = drawn(num_draws)
    allowed = int(NUTS_WARMUP * (arena.limit / seconds - 1))
    if allowed > num_draws:
        num_draws = min(allowed, 1000)
        drawn(num_draws)
        on_progress(0.6)
        draws, number, seconds = drawn(num_draws)
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

    def drawn(seed: int):
        began = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the verdict is reported beside it
            posterior = sample(target, BUDGET, seed=seed, progress=False)
        return posterior, time.perf_counter() - began

    drawn(arena.seed + 1)
    on_progress(0.6)
    posterior, seconds = drawn(arena.seed)
    draws = np.swapaxes(posterior.unconstrained, 0, 1)
    return Recording(draws, np.full(len(draws), seconds)), {
        "evaluations": posterior.num_evaluations,
        "total_seconds": seconds,
        "verdict": posterior.verdict.status if posterior.verdict else "",
    }

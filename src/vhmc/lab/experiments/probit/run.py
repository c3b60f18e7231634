r"""Experiment 2: how close posterior means come, by passes over the data.

The paper: 10,000 rows in five dimensions, prior variance 100, $s = 100$ nodes,
$\mu_t = 1 - \exp(-t / 5)$, about 70 % acceptance, start at the origin, 50 runs.
"""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from vhmc._types import Potential, Scalar, Vector
from vhmc.lab.baselines import ExactHMC, fixed_form, pathfinder, probit_vbem
from vhmc.lab.baselines.nuts import load_blackjax, nuts_chains
from vhmc.lab.experiments.parts import Numbers, Part, Progress, inputs, run_parts
from vhmc.lab.experiments.truth import zero_variance_mean
from vhmc.lab.models.rows import PRIOR_VARIANCE, RowModel, probit, simulate
from vhmc.numerics.bases import unit_additive
from vhmc.numerics.hmc import HMC
from vhmc.numerics.importance import pareto_smooth
from vhmc.numerics.mass import mass_from_covariance
from vhmc.paper.algorithm2 import VHMC, Ramp
from vhmc.paper.laplace_guide import Laplace, laplace
from vhmc.paper.potentials import Surrogate
from vhmc.paper.sample import initial_kernel
from vhmc.paper.training import train
from vhmc.sampler.sample import sample
from vhmc.surrogate.network_fit import Nodes, solve_with

FROZEN_DRAWS, FROZEN_CHAINS = 3000, 16
NUTS_CHAINS = 4
LEAST_FOR_PATHS = 200
QUICK: dict[str, Any] = {
    "num_runs": 2,
    "num_rows": 2000,
    "passes": (10, 30, 60),
    "nuts_draws": 200,
}
"""What `--quick` changes."""


@dataclass(frozen=True)
class Settings:
    r"""Everything that can be chosen.

    num_runs: data sets, each with a parameter of its own.
    num_rows, dim: of the data.
    passes: over the data, at which errors are measured.
    num_features, ridge, timescale, acceptance, num_steps: of VHMC, with nodes of unit
        scale around the origin; the paper gives neither the law of its nodes nor its
        ridge nor its number of leapfrog steps.
    batch_size: of the fixed-form method.
    nuts_draws: of the exact posterior, on which its mean rests.
    seed: of all random numbers.
    """

    num_runs: int = 50
    num_rows: int = 10_000
    dim: int = 5
    passes: tuple[int, ...] = (10, 20, 30, 50, 100, 200)
    num_features: int = 100
    ridge: float = 1e-6
    timescale: float = 5.0
    acceptance: float = 0.7
    num_steps: int = 10
    batch_size: int = 100
    nuts_draws: int = 600
    seed: int = 0

    def __post_init__(self):
        if self.num_runs < 1:
            raise ValueError(f"num_runs must be at least 1, got {self.num_runs}")
        if not self.passes or list(self.passes) != sorted(set(self.passes)):
            raise ValueError(f"passes must grow, got {list(self.passes)}")


def run(folder: Path, settings: Settings, progress: Progress) -> list[Numbers]:
    """Run all data sets; an interrupted run is resumed."""
    load_blackjax()  # if it is missing, say so now
    parts = [
        Part(f"run {number + 1}", 12.0, partial(one_run, settings, number))
        for number in range(settings.num_runs)
    ]
    return list(run_parts(folder, inputs(settings), parts, progress).values())


def one_run(
    settings: Settings, number: int, on_progress: Callable[[float], None]
) -> Mapping[str, Any]:
    """Estimates of the posterior mean by every method, on one data set.

    For each method: passes over the data, and the mean estimated by then.
    """
    rng = np.random.default_rng([settings.seed, number])
    data = simulate(rng, settings.num_rows, settings.dim)
    model = probit(data.x, data.y)
    seed = int(rng.integers(2**31))
    key = jax.random.key(seed)
    numbers: dict[str, Any] = {"truth": data.truth}

    def keep(name: str, passes: Any, means: Any) -> None:
        numbers[f"{name}_passes"] = np.asarray(passes, dtype=float)
        numbers[f"{name}_means"] = np.asarray(means, dtype=float)

    most = settings.passes[-1]
    vbem = probit_vbem(data.x, data.y, PRIOR_VARIANCE, most)
    keep("vbem", range(most + 1), vbem.means)
    target = model.target()
    fitted = laplace(target, target.start)
    spent = fitted.num_search + fitted.num_hessian
    keep("laplace", [spent], [fitted.guide.mean])
    variances = np.diag(np.linalg.inv(np.asarray(fitted.guide.precision)))
    numbers["sd"] = np.sqrt(variances)
    on_progress(0.1)
    keep("fixed_form", *_fixed_form(key, model, settings))
    on_progress(0.3)
    keep("vhmc", *_vhmc(key, model, fitted, settings))
    keep("hmc", *_hmc(key, model, fitted, settings))
    on_progress(0.5)
    keep("pathfinder", *_pathfinder(model, seed, most))
    keep("default", *_default(model, seed, most))
    on_progress(0.6)
    exact, evaluations = _exact(model, fitted, seed, settings)
    return {**numbers, "exact": exact, "nuts_evaluations": evaluations}


def _fixed_form(key, model: RowModel, settings: Settings):
    prior = jnp.zeros(settings.dim), PRIOR_VARIANCE * jnp.eye(settings.dim)
    parts = model.log_prior, model.log_likelihood, model.rows
    size = settings.batch_size
    numbers = [passes * settings.num_rows // size for passes in settings.passes]
    found = [fixed_form(key, *parts, prior, number, size) for number in numbers]
    passes = [one.num_rows / settings.num_rows for one in found]
    return passes, [one.mean for one in found]


def _vhmc(key, model: RowModel, fitted: Laplace, settings: Settings):
    """Train once in the printed form; freeze it after each number of gradients."""
    spent = fitted.num_search + fitted.num_hessian
    target = model.target()
    method = VHMC(
        num_features=settings.num_features,
        ridge=settings.ridge,
        schedule=Ramp(settings.timescale),
        # More proposals than gradients: only accepted ones are evaluated.
        num_train=int(settings.passes[-1] / settings.acceptance),
        num_steps=settings.num_steps,
        acceptance=settings.acceptance,
        nodes=unit_additive,
    )
    key_tune, key_nodes, key_train, key_draw = jax.random.split(key, 4)
    kernel = initial_kernel(key_tune, method, fitted.guide)
    state = method.init(key_nodes, jnp.asarray(target.start), fitted.guide, kernel)
    replica = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], state)
    (trained,) = train(key_train[None], method, target, replica)
    basis: Any = trained.state.basis
    nodes = Nodes(np.asarray(basis.directions), np.asarray(basis.offsets))
    passes, means = [], []
    for number in settings.passes:
        num_gradients = min(number - spent, len(trained.theta))
        if num_gradients < 1:
            continue
        # The minimiser that the online update reaches after these gradients.
        thetas, grads = trained.theta[:num_gradients], trained.grad[:num_gradients]
        terms = nodes.normal_terms(thetas, grads)
        weights = jnp.asarray(solve_with(terms, settings.ridge))
        chain = ExactHMC(trained.state.kernel, Surrogate(basis, weights))
        seed = int(jax.random.randint(key_draw, (), 0, 2**31 - 1))
        start = chain.init(np.tile(thetas[-1], (FROZEN_CHAINS, 1)))
        _, block = chain.advance(np.random.default_rng(seed), start, FROZEN_DRAWS)
        passes.append(spent + num_gradients)
        means.append(block.theta[FROZEN_DRAWS // 5 :].mean(axis=(0, 1)))
    return passes, means


def _hmc(key, model: RowModel, fitted: Laplace, settings: Settings):
    """One exact chain with Laplace's covariance as mass, from the mode."""
    spent = fitted.num_search + fitted.num_hessian
    mass = mass_from_covariance(jnp.linalg.inv(fitted.guide.precision))
    chain = ExactHMC(HMC(mass, jnp.asarray(0.6), jnp.asarray(3)), model.potential)
    num_draws = settings.passes[-1] // 3
    seed = int(jax.random.randint(key, (), 0, 2**31 - 1))
    state = chain.init(fitted.guide.mean)
    _, block = chain.advance(np.random.default_rng(seed), state, num_draws)
    counts = np.arange(1, num_draws + 1)
    means = np.cumsum(block.theta[:, 0], axis=0) / counts[:, None]
    passes = spent + 1 + 3 * counts
    in_time = passes <= settings.passes[-1]
    return passes[in_time], means[in_time]


def _pathfinder(model: RowModel, seed: int, budget: int):
    target = model.target()
    budget = max(budget, LEAST_FOR_PATHS)
    drawn = pathfinder(target, np.random.default_rng(seed), budget)
    if not drawn:
        return [np.nan], [np.full(target.dim, np.nan)]
    left = max((budget - target.num_evaluations) // len(drawn), 1)
    draws = np.concatenate([part.draws[:left] for part in drawn])
    log_q = np.concatenate([part.log_density[:left] for part in drawn])
    log_weights, _ = pareto_smooth(-target.evaluate(draws).energy - log_q)
    weights = np.exp(log_weights - log_weights.max())
    return [target.num_evaluations], [weights @ draws / weights.sum()]


def _default(model: RowModel, seed: int, most: int):
    """The default sampler, with as many passes as the others."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its verdict is not the topic here
        posterior = sample(model.target(), most, seed=seed, progress=False)
    return [posterior.num_evaluations], [posterior.unconstrained.mean(axis=(0, 1))]


def _exact(
    model: RowModel, fitted: Laplace, seed: int, settings: Settings
) -> tuple[np.ndarray, int]:
    """Posterior mean by NUTS in Laplace's coordinates, where it has little to adapt.

    Gradients at its draws are control variates: the posterior is so close to Gaussian
    that they remove nearly all of the Monte Carlo error.
    """
    guide = fitted.guide
    potential = Whitened(model.potential, guide.mean, jnp.linalg.inv(guide.whiten))
    starts = np.random.default_rng(seed).standard_normal((NUTS_CHAINS, settings.dim))
    num_draws = settings.nuts_draws // NUTS_CHAINS
    draws, num_gradients = nuts_chains(potential, starts, seed, num_draws, 100)
    flat = draws.reshape(-1, settings.dim)
    grads = np.asarray(_grads(potential, jnp.asarray(flat)))
    mean = zero_variance_mean(flat, grads)
    return np.asarray(guide.mean + potential.factor @ mean), num_gradients


@eqx.filter_jit
def _grads(potential, thetas):
    return jax.lax.map(jax.grad(potential), thetas)


class Whitened(eqx.Module):
    """A potential in coordinates in which it is close to a standard normal."""

    potential: Potential
    mean: Vector
    factor: Float[Array, "d d"]

    def __call__(self, x: Vector) -> Scalar:
        return self.potential(self.mean + self.factor @ x)

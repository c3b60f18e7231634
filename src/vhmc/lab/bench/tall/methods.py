"""The methods of the race, each a generator of blocks of draws."""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from vhmc._imports import load_arviz, load_extra
from vhmc.lab.baselines import SGLD, Constant
from vhmc.lab.baselines.nutpie_nuts import compiled, load_nutpie
from vhmc.lab.baselines.nuts import load_blackjax
from vhmc.lab.bench import rivals
from vhmc.lab.bench.measure import TimedTarget
from vhmc.lab.bench.tall.problems import Reference, TallProblem, log_density
from vhmc.lab.models.rows import PRIOR_VARIANCE, logistic_likelihood, normal_prior
from vhmc.sampler.sample import sample

CHAINS = 2
"""Of exact methods: one per core."""
WARMUP, BLOCK = 400, 50
BATCH = 1000
"""Rows of a minibatch."""
ECS_BLOCKS = 100
PATHFINDER_BUDGET = 10_000
LOOK_EVERY = 0.5
"""Seconds between two queries of a sampler that runs in the background."""


class Block(NamedTuple):
    """New draws.

    draws: one per row; none while a method warms up.
    passes: over all rows so far, one per gradient at one point.
    model, training, drawing: seconds by purpose, if the method knows.
    """

    draws: np.ndarray
    passes: float
    model: float = float("nan")
    training: float = float("nan")
    drawing: float = float("nan")


Method = Callable[[TallProblem, Reference, int], Iterator[Block]]


def ours(problem: TallProblem, truth: Reference, seed: int) -> Iterator[Block]:
    """The default sampler with more draws than usual, which cost no evaluations."""
    target = TimedTarget(problem.target())
    posterior = sample(target, 1000, draws=2000, chains=16, seed=seed, progress=False)
    drawing = posterior.seconds.get("drawing", 0.0)
    rest = sum(posterior.seconds.values()) - drawing - target.seconds
    draws = posterior.unconstrained.reshape(-1, target.dim)
    yield Block(draws, posterior.num_evaluations, target.seconds, rest, drawing)


def blackjax_nuts(problem: TallProblem, truth: Reference, seed: int) -> Iterator[Block]:
    """Dense metric, one chain per core."""
    blackjax = load_blackjax()
    density = log_density(problem)
    spread = _on_cores(CHAINS)

    def warm(key, start):
        warmup = blackjax.window_adaptation(
            blackjax.nuts, density, is_mass_matrix_diagonal=False
        )
        (state, tuned), info = warmup.run(key, start, num_steps=WARMUP)
        return state, tuned, info.info.num_integration_steps.sum()

    def draw(key, state, tuned):
        kernel = blackjax.nuts(density, **tuned).step

        def step(state, key):
            state, info = kernel(key, state)
            return state, (state.position, info.num_integration_steps)

        state, (draws, steps) = jax.lax.scan(step, state, jax.random.split(key, BLOCK))
        return state, draws, steps.sum()

    warm, draw = spread(warm), spread(draw)
    key = jax.random.key(seed)
    starts = jnp.zeros((CHAINS, problem.x.shape[1]))
    state, tuned, steps = warm(jax.random.split(key, CHAINS), starts)
    passes = float(steps.sum())
    yield Block(np.zeros((0, starts.shape[1])), passes)
    for count in range(10**6):
        keys = jax.random.split(jax.random.fold_in(key, count + 1), CHAINS)
        state, draws, steps = draw(keys, state, tuned)
        passes += float(steps.sum())
        yield Block(np.asarray(draws).reshape(-1, starts.shape[1]), passes)


def numpyro_nuts(problem: TallProblem, truth: Reference, seed: int) -> Iterator[Block]:
    """Dense metric, one chain per core."""
    numpyro = load_extra("numpyro", "NumPyro's NUTS", "numpyro")
    from numpyro.infer import NUTS

    rows = jnp.asarray(problem.x), jnp.asarray(problem.y)

    def model():
        theta = _coefficients(numpyro, problem)
        numpyro.factor("likelihood", logistic_likelihood(theta, rows))

    yield from _numpyro_blocks(NUTS(model, dense_mass=True), seed, 1.0)


def hmcecs(problem: TallProblem, truth: Reference, seed: int) -> Iterator[Block]:
    """NumPyro's energy-conserving subsampling, from the mode and with proxies there.

    As in NumPyro's own example; the mode is given to it.
    """
    numpyro = load_extra("numpyro", "HMCECS", "numpyro")
    from numpyro.infer import HMCECS, NUTS, init_to_value

    x, y = jnp.asarray(problem.x), jnp.asarray(problem.y)
    number = min(BATCH, len(y) // 10)

    def model():
        theta = _coefficients(numpyro, problem)
        with numpyro.plate("rows", len(y), subsample_size=number):
            some = numpyro.subsample(x, event_dim=1), numpyro.subsample(y, event_dim=0)
            likelihood = numpyro.distributions.Bernoulli(logits=some[0] @ theta)
            numpyro.sample("y", likelihood, obs=some[1])

    mode = {"theta": jnp.asarray(truth.mode)}
    start = init_to_value(values=mode)
    inner = NUTS(model, dense_mass=[("theta",)], init_strategy=start)
    proxy = HMCECS.taylor_proxy(mode)
    kernel = HMCECS(inner, num_blocks=ECS_BLOCKS, proxy=proxy)
    yield from _numpyro_blocks(kernel, seed, number / len(y))


def _coefficients(numpyro: Any, problem: TallProblem) -> jax.Array:
    prior = numpyro.distributions.Normal(0.0, PRIOR_VARIANCE**0.5)
    return numpyro.sample("theta", prior.expand([problem.x.shape[1]]).to_event(1))


def _numpyro_blocks(kernel: Any, seed: int, fraction: float) -> Iterator[Block]:
    """Blocks of one compiled program, those of the warm-up without draws.

    fraction: of all rows that one gradient takes.
    """

    def advance(state):
        def step(state, _):
            state = kernel.sample(state, (), {})
            inner = getattr(state, "hmc_state", state)
            return state, (inner.z["theta"], inner.num_steps)

        state, (draws, steps) = jax.lax.scan(step, state, None, length=BLOCK)
        return state, draws, steps.sum()

    keys = jax.random.split(jax.random.key(seed), CHAINS)
    # Not under a transformation: the kernel keeps parts of what it computes here.
    states = [kernel.init(key, WARMUP, None, (), {}) for key in keys]
    state = jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)
    advance = _on_cores(CHAINS)(advance)
    passes = 0.0
    for count in range(10**6):
        state, draws, steps = advance(state)
        passes += fraction * float(steps.sum())
        rows = np.asarray(draws).reshape(-1, draws.shape[-1])
        yield Block(rows[:0] if count * BLOCK < WARMUP else rows, passes)


def nutpie_nuts(problem: TallProblem, truth: Reference, seed: int) -> Iterator[Block]:
    """Low-rank metric, one chain per core; draws are queried while it runs."""
    program = compiled(log_density(problem), problem.x.shape[1])
    sampler = load_nutpie().sample(
        program.model,
        draws=10**6,
        tune=WARMUP,
        chains=CHAINS,
        cores=CHAINS,
        seed=seed,
        low_rank_modified_mass_matrix=True,
        progress_bar=False,
        blocking=False,
    )
    seen = np.zeros(CHAINS, dtype=int)
    try:
        while True:
            time.sleep(LOOK_EVERY)
            draws = sampler.inspect()["posterior"]["theta"].to_numpy()
            known = ~np.isnan(draws).any(axis=-1)
            new = [d[k][n:] for d, k, n in zip(draws, known, seen, strict=True)]
            seen += [len(part) for part in new]
            yield Block(np.concatenate(new), float(program.num_gradients()))
    finally:
        sampler.abort()


def sgld(problem: TallProblem, truth: Reference, seed: int) -> Iterator[Block]:
    """From the mode, with a step size that the gradient noise allows.

    It is a fifth of the smallest posterior variance, and less where a batch is such a
    small part of the rows that its noise would widen that direction by over a half.
    """
    batch = min(BATCH, len(problem.y) // 10)
    fraction = min(0.2, 2 * batch / len(problem.y))
    step = fraction * float(np.linalg.eigvalsh(truth.covariance)[0])
    rows, rate = (jnp.asarray(problem.x), jnp.asarray(problem.y)), Constant(step)
    chain = SGLD(normal_prior, logistic_likelihood, rows, batch, rate, thin=20)
    rng = np.random.default_rng(seed)
    state, passes = chain.init(truth.mode), 0.0
    for _ in range(10**6):
        state, draws = chain.advance(rng, state, 200)
        passes += 200 * chain.passes_per_draw
        yield Block(draws, passes)


def pathfinder(problem: TallProblem, truth: Reference, seed: int) -> Iterator[Block]:
    """Multi-path Pathfinder with importance resampling."""
    found = rivals.pathfinder_psis(problem.target(), PATHFINDER_BUDGET, seed, 64_000)
    yield Block(found.draws, found.num_evaluations)


METHODS: dict[str, Method] = {
    "vhmc": ours,
    "blackjax-nuts": blackjax_nuts,
    "numpyro-nuts": numpyro_nuts,
    "nutpie": nutpie_nuts,
    "hmcecs": hmcecs,
    "sgld": sgld,
    "pathfinder": pathfinder,
}


def load_all(methods: Sequence[str]) -> None:
    """Import what the methods need, so that it is not timed."""
    load_arviz()
    for method in methods:
        if method in ("blackjax-nuts", "pathfinder"):
            load_blackjax()
        elif method in ("numpyro-nuts", "hmcecs"):
            load_extra("numpyro.infer", "NumPyro's NUTS", "numpyro")
        elif method == "nutpie":
            load_extra("nutpie.compiled_pyfunc", "nutpie's NUTS", "test")


def _on_cores(number: int) -> Callable[[Callable], Callable]:
    """One device per chain if there are as many; else all chains in one batch."""
    if jax.local_device_count() >= number:
        return jax.pmap
    return lambda function: jax.jit(jax.vmap(function))

"""Ours and what a user would pick instead, each as blocks of draws as they come."""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from vhmc import _arviz
from vhmc.lab.baselines import SGLD, Constant
from vhmc.lab.baselines.load_blackjax import load_blackjax
from vhmc.lab.bench import rivals
from vhmc.lab.bench.measure import TimedTarget
from vhmc.lab.bench.tall.problems import TallProblem, log_density
from vhmc.lab.bench.tall.truth import Reference
from vhmc.lab.models.logistic import log_likelihood
from vhmc.lab.models.rows import PRIOR_VARIANCE, normal_prior
from vhmc.models.extras import load
from vhmc.sampler.sample import sample

CHAINS = 2
"""Of exact methods: one a core."""
WARMUP, BLOCK = 400, 50
BATCH = 1000
"""Rows that stochastic gradients look at."""
ECS_BLOCKS = 100
PATHFINDER_BUDGET = 10_000
LOOK_EVERY = 0.5
"""Seconds between two looks at a sampler that runs by itself."""


class Block(NamedTuple):
    """Draws that are new.

    draws: one a row; none while a method warms up.
    passes: over all rows so far, gradients of one point each.
    model, training, drawing: what the seconds were spent on, where the method knows.
    """

    draws: np.ndarray
    passes: float
    model: float = float("nan")
    training: float = float("nan")
    drawing: float = float("nan")


Method = Callable[[TallProblem, Reference, int], Iterator[Block]]


def ours(problem: TallProblem, truth: Reference, seed: int) -> Iterator[Block]:
    """The default sampler with more draws than usual: they are nearly free."""
    target = TimedTarget(problem.target())
    posterior = sample(target, 1000, draws=2000, chains=16, seed=seed, progress=False)
    spent = posterior.seconds
    drawing = spent.get("drawing", 0.0)
    rest = sum(spent.values()) - drawing - target.seconds
    yield Block(
        posterior.unconstrained.reshape(-1, target.dim),
        posterior.num_evaluations,
        target.seconds,
        rest,
        drawing,
    )


def blackjax_nuts(problem: TallProblem, truth: Reference, seed: int) -> Iterator[Block]:
    """Dense metric, a chain a core."""
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
    """Dense metric, a chain a core."""
    numpyro = load("numpyro", "NumPyro's NUTS", "numpyro")
    from numpyro.infer import NUTS

    rows = jnp.asarray(problem.x), jnp.asarray(problem.y)

    def model():
        theta = _coefficients(numpyro, problem)
        numpyro.factor("likelihood", log_likelihood(theta, rows))

    yield from _numpyro_blocks(NUTS(model, dense_mass=True), seed, 1.0)


def hmcecs(problem: TallProblem, truth: Reference, seed: int) -> Iterator[Block]:
    """NumPyro's energy-conserving subsampling, from the mode and with proxies there.

    As in NumPyro's own example; the mode is given to it.
    """
    numpyro = load("numpyro", "HMCECS", "numpyro")
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


def _numpyro_blocks(kernel: Any, seed: int, share: float) -> Iterator[Block]:
    """Blocks of one compiled program, those of the warm-up without draws.

    share: of all rows that a gradient looks at.
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
        passes += share * float(steps.sum())
        rows = np.asarray(draws).reshape(-1, draws.shape[-1])
        yield Block(rows[:0] if count * BLOCK < WARMUP else rows, passes)


def nutpie_nuts(problem: TallProblem, truth: Reference, seed: int) -> Iterator[Block]:
    """Its low-rank metric, a chain a core; draws are looked at while it runs."""
    nutpie = load("nutpie", "nutpie's NUTS", "test")
    from nutpie.compiled_pyfunc import from_pyfunc

    dim = problem.x.shape[1]
    compiled = jax.jit(jax.value_and_grad(log_density(problem)))
    count = [0]

    def value_and_grad(theta):
        count[0] += 1
        value, grad = compiled(theta)
        return float(value), np.asarray(grad)

    model = from_pyfunc(
        dim,
        lambda: value_and_grad,
        lambda *seeds: lambda theta: {"theta": theta},
        [np.dtype("float64")],
        [(dim,)],
        ["theta"],
    )
    sampler = nutpie.sample(
        model,
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
            yield Block(np.concatenate(new), float(count[0]))
    finally:
        sampler.abort()


def sgld(problem: TallProblem, truth: Reference, seed: int) -> Iterator[Block]:
    """From the mode, with a step that the noise of its gradients allows.

    A fifth of the narrowest posterior variance, and less where a batch is so small a
    part of the rows that its noise would widen that direction by more than a half.
    """
    batch = min(BATCH, len(problem.y) // 10)
    share = min(0.2, 2 * batch / len(problem.y))
    step = share * float(np.linalg.eigvalsh(truth.covariance)[0])
    rows = jnp.asarray(problem.x), jnp.asarray(problem.y)
    chain = SGLD(normal_prior, log_likelihood, rows, batch, Constant(step), thin=20)
    rng = np.random.default_rng(seed)
    state, passes = chain.init(truth.mode), 0.0
    for _ in range(10**6):
        state, draws = chain.advance(rng, state, 200)
        passes += 200 * chain.passes_per_draw
        yield Block(draws, passes)


def pathfinder(problem: TallProblem, truth: Reference, seed: int) -> Iterator[Block]:
    """Multi-path, resampled by importance."""
    target = problem.target()
    found = rivals.pathfinder_psis(target, PATHFINDER_BUDGET, seed, 64_000)
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
    """Import what they need: a race is not about that."""
    _arviz.load()
    for method in methods:
        if method in ("blackjax-nuts", "pathfinder"):
            load_blackjax()
        elif method in ("numpyro-nuts", "hmcecs"):
            load("numpyro.infer", "NumPyro's NUTS", "numpyro")
        elif method == "nutpie":
            load("nutpie.compiled_pyfunc", "nutpie's NUTS", "test")


def _on_cores(number: int) -> Callable[[Callable], Callable]:
    """Chains on devices of their own where there are as many; else in one batch."""
    if jax.local_device_count() >= number:
        return jax.pmap
    return lambda function: jax.jit(jax.vmap(function))

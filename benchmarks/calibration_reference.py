"""Reference moments of the calibration targets, read by `vhmc.lab.bench.calibration`.

Where the posterior can be drawn from directly, a million direct draws, first checked
against the log density by Stein's identity E[g(x) x^T] = -I, E[g(x)] = 0 for its score
g. For the horseshoe a Gibbs sampler: the tail of a local scale is too long for NUTS,
which diverges there and misses the mean of one by 0.04 standard deviations. Elsewhere
eight chains of BlackJAX's NUTS with a dense metric, continued until every quantity and
its squared deviation have the effective size and R-hat demanded.

Two models read real data from the folder that VHMC_DATA names.

Run: python benchmarks/calibration_reference.py [name ...]
"""

import json
import sys
import time
from pathlib import Path

import blackjax
import jax
import numpy as np
from scipy.optimize import minimize
from scipy.special import gammaln

from vhmc.lab.bench import calibration
from vhmc.lab.bench.calibration import processes, regressions, shapes
from vhmc.lab.bench.calibration.run import MODELS, REFERENCE
from vhmc.numerics.effective_size import bulk_ess, split_rhat

SEED = 0
NUM_DIRECT = 1_000_000
NUM_STEIN = 2_000
CHAINS, WARMUP, BLOCK, MOST_BLOCKS = 8, 2000, 2500, 16
ACCEPTANCE = {"two-exponentials": 0.995, "plateau": 0.995}
"""By model, else 0.95: lower, these two diverge now and then."""

SMALLEST_ESS, LARGEST_RHAT = 20_000, 1.01
NUM_STARTS, START_STEPS = 8, 60
GIBBS_CHAINS, GIBBS_BURN, GIBBS_DRAWS = 64, 1000, 20_000


def funnel(rng, size):
    """Scale, then what it scales."""
    v = 3 * rng.standard_normal((size, 1))
    x = np.exp(v / 2) * rng.standard_normal((size, 9))
    return {"theta": np.concatenate([v, x], axis=1)}


def two_modes(mixture, rng, size):
    """Component, then a normal."""
    which = rng.choice(2, size=size, p=mixture.weights)
    noise = rng.standard_normal((size, mixture.means.shape[1]))
    return {"theta": mixture.means[which] + mixture.sds[which] * noise}


def ring(rng, size):
    """Uniform angle; radius of density r N(r; 3, 0.3), by rejection under r < 6."""
    radius = rng.normal(3, 0.3, 3 * size)
    radius = radius[rng.uniform(0, 6, radius.size) < radius][:size]
    angle = rng.uniform(0, 2 * np.pi, size)
    return {"theta": radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], 1)}


def gamma_scales(rng, size):
    """Independent variables."""
    rate = rng.gamma(shapes.GAMMA_SHAPES, size=(size, 3))
    variance = 1 / rng.gamma(shapes.INVERSE_SHAPES, size=(size, 2))
    return {"rate": rate, "variance": variance}


def heavy_tails(rng, size):
    """Normal over the root of a chi-square per degree of freedom."""
    scales, correlation = shapes.HEAVY_SCALES, shapes.HEAVY_CORRELATION
    cov = shapes.equicorrelated(scales, correlation)
    normal = rng.multivariate_normal(np.zeros(5), cov, size)
    return {"theta": normal / np.sqrt(rng.chisquare(2, (size, 1)) / 2)}


def dirichlet(rng, size):
    """Conjugate to the counts."""
    return {"share": rng.dirichlet(shapes.SIMPLEX_COUNTS + 0.5, size)}


def truncated_gaussian(rng, size):
    """Normal draws on the right side of the plane."""
    scales = shapes.TRUNCATED_SCALES
    cov = shapes.equicorrelated(scales, shapes.TRUNCATED_CORRELATION)
    theta = rng.multivariate_normal(np.zeros(4), cov, 5 * size)
    is_inside = theta @ shapes.TRUNCATED_NORMAL > shapes.TRUNCATED_EDGE
    return {"theta": theta[is_inside][:size]}


def rosenbrock(rng, size):
    """First coordinate, then the second given the first."""
    x = rng.normal(1, np.sqrt(1 / 2), size)
    return {"theta": np.stack([x, rng.normal(x**2, np.sqrt(1 / 40))], axis=1)}


def change_point(rng, size):
    """Year from its exact probabilities, then conjugate rates."""
    y = processes.change_point_counts()
    years = np.arange(1, len(y))
    before = np.cumsum(y)[:-1]
    shapes = np.stack([2 + before, 2 + y.sum() - before])
    rates = np.stack([1 + years, 1 + len(y) - years])
    log_weights = np.sum(gammaln(shapes) - shapes * np.log(rates), axis=0)
    weights = np.exp(log_weights - log_weights.max())
    which = rng.choice(len(years), size=size, p=weights / weights.sum())
    first, second = rng.gamma(shapes[:, which]) / rates[:, which]
    return {"first": first, "second": second}


DIRECT = {
    "funnel": funnel,
    "two-modes-2d": lambda *args: two_modes(shapes.FAR_MODES, *args),
    "two-modes-5d": lambda *args: two_modes(shapes.NEAR_MODES, *args),
    "ring": ring,
    "gamma-scales": gamma_scales,
    "heavy-tails": heavy_tails,
    "dirichlet": dirichlet,
    "truncated-gaussian": truncated_gaussian,
    "rosenbrock": rosenbrock,
    "change-point": change_point,
}
NO_STEIN = {"truncated-gaussian"}
"""The identity has a boundary term there."""


def direct_reference(name, model):
    """Moments of independent draws; their number is their effective size."""
    draws = DIRECT[name](np.random.default_rng(SEED), NUM_DIRECT)
    values = model.quantities(draws)
    if name not in NO_STEIN:
        print(f"  Stein: {stein_error(model, draws):.1f} standard errors", flush=True)
    return values, f"{NUM_DIRECT} direct draws", NUM_DIRECT, 1.0


def stein_error(model, draws):
    """Worst deviation from Stein's identity, in standard errors."""
    target = model.make()
    rows = [{key: value[i] for key, value in draws.items()} for i in range(NUM_STEIN)]
    is_bare = not isinstance(model.init, dict)
    free = [target.parameters.flatten(r["theta"] if is_bare else r) for r in rows]
    thetas = np.array(free)
    scores = -target.evaluate(thetas).grad
    # A bounded test function, since moments of theta may not exist.
    tests = np.tanh(thetas)
    slopes = np.eye(target.dim) * (1 - tests**2)[:, None, :]
    terms = scores[:, :, None] * tests[:, None, :] + slopes
    errors = terms.std(axis=0) / np.sqrt(len(terms))
    return np.abs(terms.mean(axis=0) / errors).max()


def gibbs_reference(name, model):
    """Conjugate sweeps, the half-Cauchy written with an auxiliary inverse gamma.

    A scale u of half-Cauchy(0, s) has u^2 | a ~ IG(1/2, 1/a), a ~ IG(1/2, 1/s^2)
    (Makalic and Schmidt, 2016). Two Metropolis moves are added: the noise, whose prior
    is not conjugate, and a trade of size between the local and the overall scales.
    """
    x, y = regressions.horseshoe_data()
    (num_rows, dim), chains = x.shape, GIBBS_CHAINS
    rng = np.random.default_rng(SEED)
    local, overall, noise = np.ones((chains, dim)), np.ones(chains), np.ones(chains)
    kept = []
    for sweep in range(GIBBS_BURN + GIBBS_DRAWS):
        weights = 1 / (local * overall[:, None]) ** 2
        precision = x.T @ x / noise[:, None, None] ** 2
        precision = precision + np.eye(dim) * weights[:, None, :]
        shift = (x.T @ y)[:, None] / noise[:, None, None] ** 2
        root = np.linalg.inv(np.linalg.cholesky(precision))
        white = root @ shift + rng.standard_normal((chains, dim, 1))
        slopes = (root.transpose(0, 2, 1) @ white)[..., 0]

        squares = slopes**2 / 2
        rate = inverse_gamma(rng, 1.0, 1 + 1 / local**2)
        rest = squares / overall[:, None] ** 2
        local = np.sqrt(inverse_gamma(rng, 1.0, 1 / rate + rest))
        rate = inverse_gamma(rng, 1.0, 1 / 0.5**2 + 1 / overall**2)
        rest = np.sum(squares / local**2, axis=1)
        overall = np.sqrt(inverse_gamma(rng, (dim + 1) / 2, 1 / rate + rest))

        factor = np.exp(0.4 * rng.standard_normal(chains))
        moved, shrunk = local * factor[:, None], overall / factor
        gain = log_scale_prior(moved, shrunk) - log_scale_prior(local, overall)
        is_moved = np.log(rng.uniform(size=chains)) < gain
        local = np.where(is_moved[:, None], moved, local)
        overall = np.where(is_moved, shrunk, overall)

        squared_error = np.sum((y - slopes @ x.T) ** 2, axis=1)
        for _ in range(3):
            other = noise * np.exp(0.2 * rng.standard_normal(chains))
            gain = log_noise(other, squared_error, num_rows)
            gain = gain - log_noise(noise, squared_error, num_rows)
            is_moved = np.log(rng.uniform(size=chains)) < gain
            noise = np.where(is_moved, other, noise)
        if sweep >= GIBBS_BURN:
            z = slopes / (local * overall[:, None])
            draws = {"z": z, "local": local, "overall": overall, "noise": noise}
            kept.append(model.quantities(draws))
    values = np.stack(kept, axis=1)
    method = f"Gibbs sampler, {chains} chains of {GIBBS_BURN} + {GIBBS_DRAWS}"
    return values.reshape(-1, values.shape[-1]), method, *accuracy(values)


def inverse_gamma(rng, shape, scale):
    """Draws of the inverse gamma distribution."""
    return scale / rng.gamma(shape, size=np.shape(scale))


def log_scale_prior(local, overall):
    """Half-Cauchy scales, as a density of their logs."""
    logs = np.sum(np.log(local) - np.log1p(local**2), axis=1)
    return logs + np.log(overall) - np.log1p((overall / 0.5) ** 2)


def log_noise(noise, squared_error, num_rows):
    """Likelihood and half-normal prior of the noise, as a density of its log."""
    likelihood = -num_rows * np.log(noise) - squared_error / (2 * noise**2)
    return likelihood - 0.5 * (noise / 2) ** 2 + np.log(noise)


def accuracy(values):
    """Smallest effective size and largest R-hat, of quantities and squared deviations.

    values: of shape (chain, draw, quantity).
    """
    squares = (values - values.mean(axis=(0, 1))) ** 2
    ess = min(bulk_ess(values).min(), bulk_ess(squares).min())
    return ess, max(split_rhat(values).max(), split_rhat(squares).max())


def nuts_reference(name, model):
    """Draws of several chains, long enough by the demands at the top."""
    target = model.make()
    parameters, acceptance = target.parameters, ACCEPTANCE.get(name, 0.95)

    def log_density(theta):
        values, log_jacobian = parameters.unflatten(theta)
        return model.log_density(values) + log_jacobian

    def adapt(key, start):
        warmup = blackjax.window_adaptation(
            blackjax.nuts,
            log_density,
            is_mass_matrix_diagonal=False,
            target_acceptance_rate=acceptance,
        )
        return warmup.run(key, start, num_steps=WARMUP)[0]

    def extend(key, state, tuned):
        kernel = blackjax.nuts(log_density, **tuned).step

        def step(state, key):
            state, info = kernel(key, state)
            return state, (state.position, info.is_divergent)

        return jax.lax.scan(step, state, jax.random.split(key, BLOCK))

    key_warmup, key_sample = jax.random.split(jax.random.key(SEED))
    starts = best_start(target)
    adapted = jax.jit(jax.vmap(adapt))(jax.random.split(key_warmup, CHAINS), starts)
    states, tuned = adapted
    extend_all = jax.jit(jax.vmap(extend))
    blocks, num_divergent = [], 0
    for block in range(MOST_BLOCKS):
        keys = jax.random.split(jax.random.fold_in(key_sample, block), CHAINS)
        states, (thetas, is_divergent) = extend_all(keys, states, tuned)
        num_divergent += int(is_divergent.sum())
        draws = parameters.constrain(np.asarray(thetas))
        blocks.append(model.quantities(draws))
        values = np.concatenate(blocks, axis=1)
        ess, rhat = accuracy(values)
        if ess > SMALLEST_ESS and rhat < LARGEST_RHAT:
            break
    method = (
        f"BlackJAX {blackjax.__version__} NUTS, dense metric, acceptance {acceptance}, "
        f"{CHAINS} chains of {WARMUP} + {values.shape[1]}, {num_divergent} divergent"
    )
    return values.reshape(-1, values.shape[-1]), method, ess, rhat


def best_start(target):
    """Scattered starts around the best end of short descents from several points."""
    rng = np.random.default_rng(SEED)

    def energy_and_grad(theta):
        answer = target.evaluate(theta[None])
        energy, grad = answer.energy[0], answer.grad[0]
        if not (np.isfinite(energy) and np.isfinite(grad).all()):
            return 1e10, np.zeros(target.dim)
        return energy, grad

    ends = []
    for _ in range(NUM_STARTS):
        start = target.start + 0.5 * rng.standard_normal(target.dim)
        options = {"maxiter": START_STEPS}
        ends.append(minimize(energy_and_grad, start, jac=True, options=options))
    print("  ends of descents:", np.sort([round(float(e.fun), 1) for e in ends]))
    best = min(ends, key=lambda end: end.fun).x
    return best + 0.1 * rng.standard_normal((CHAINS, target.dim))


def main():
    """Make the references asked for and merge them into the file."""
    path = Path(calibration.__file__).parent / REFERENCE
    for name in sys.argv[1:] or MODELS:
        begin = time.perf_counter()
        model = MODELS[name]()
        print(name, flush=True)
        make = direct_reference if name in DIRECT else nuts_reference
        make = gibbs_reference if name == "horseshoe" else make
        values, method, ess, rhat = make(name, model)
        names = model.names()
        mean, sd = values.mean(axis=0), values.std(axis=0, ddof=1)
        entry = {
            "method": method,
            "ess": round(float(ess)),
            "rhat": round(float(rhat), 5),
            "quantities": {
                key: {"mean": float(f"{m:.6g}"), "sd": float(f"{s:.6g}")}
                for key, m, s in zip(names, mean, sd, strict=True)
            },
        }
        seconds = time.perf_counter() - begin
        print(f"  {method}; ESS {ess:.0f}, R-hat {rhat:.4f}, {seconds:.0f} s")
        if ess < SMALLEST_ESS or rhat > LARGEST_RHAT:
            print("  NOT good enough")
        table = json.loads(path.read_text()) if path.exists() else {}
        table[name] = entry
        ordered = {key: table[key] for key in MODELS if key in table}
        partial = path.with_name(path.name + ".partial")
        partial.write_text(json.dumps(ordered, indent=1) + "\n")
        partial.replace(path)


if __name__ == "__main__":
    main()

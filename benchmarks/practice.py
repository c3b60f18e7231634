"""Hierarchical models in NumPyro, as practitioners write them, against long NUTS runs.

None of them was used to choose a setting but the crossed designs. For each model and
seed: worst error of a mean, in posterior sd, worst relative error of an sd, verdict,
evaluations. The reference is NumPyro's NUTS, 2 chains of 4,000 draws after 1,000.

Run: python benchmarks/practice.py [name ...]
"""

import sys
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS

import vhmc

BUDGET, SEEDS = 1000, 2
FAR = 30.0
"""Minus the unconstrained place at which only quantities that must be are positive."""


def crossed_factors():
    """Five crossed factors with a variance each, normal errors, centred."""
    rng = np.random.default_rng(4)
    level = rng.integers(0, 10, (5, 300))
    spread = 1.0, 0.5, 0.2, 0.8, 0.05
    effects = [s * rng.standard_normal(10) for s in spread]
    y = 2 + sum(effect[i] for effect, i in zip(effects, level, strict=True))
    y = y + 0.6 * rng.standard_normal(300)

    def model():
        mean = numpyro.sample("mean", dist.Normal(0, 5))
        noise = numpyro.sample("noise", dist.HalfNormal(1))
        for k in range(5):
            scale = numpyro.sample(f"scale{k}", dist.HalfNormal(1))
            with numpyro.plate(f"factor{k}", 10):
                effect = numpyro.sample(f"effect{k}", dist.Normal(0, scale))
            mean = mean + effect[level[k]]
        numpyro.sample("y", dist.Normal(mean, noise), obs=y)

    return model


def _crossed_logit(seed, subjects, items):
    rng = np.random.default_rng(seed)
    subject = np.repeat(np.arange(subjects), items)
    item = np.tile(np.arange(items), subjects)
    logit = 0.5 + 0.8 * rng.standard_normal(subjects)[subject]
    logit = logit + 1.2 * rng.standard_normal(items)[item]
    y = (rng.uniform(size=len(item)) < 1 / (1 + np.exp(-logit))).astype(int)

    def model():
        mean = numpyro.sample("mean", dist.Normal(0, 2))
        by_subject = numpyro.sample("by_subject", dist.HalfNormal(1))
        by_item = numpyro.sample("by_item", dist.HalfNormal(1))
        with numpyro.plate("subjects", subjects):
            a = numpyro.sample("a", dist.Normal(0, by_subject))
        with numpyro.plate("items", items):
            b = numpyro.sample("b", dist.Normal(0, by_item))
        logits = mean + a[subject] + b[item]
        numpyro.sample("y", dist.Bernoulli(logits=logits), obs=y)

    return model


def crossed_logit():
    """Thirty subjects answer twenty items, crossed effects, centred."""
    return _crossed_logit(1, 30, 20)


def crossed_logit_large():
    """The same with sixty subjects and forty items."""
    return _crossed_logit(11, 60, 40)


def robust():
    """Groups with Student errors of unknown degrees of freedom, centred."""
    rng = np.random.default_rng(8)
    group = np.repeat(np.arange(15), 8)
    y = 3 + rng.standard_normal(15)[group] + 0.8 * rng.standard_t(4, len(group))

    def model():
        mean = numpyro.sample("mean", dist.Normal(0, 5))
        spread = numpyro.sample("spread", dist.HalfCauchy(2))
        noise = numpyro.sample("noise", dist.HalfNormal(2))
        freedom = numpyro.sample("freedom", dist.Gamma(2, 0.1))
        with numpyro.plate("groups", 15):
            u = numpyro.sample("u", dist.Normal(mean, spread))
        numpyro.sample("y", dist.StudentT(freedom, u[group], noise), obs=y)

    return model


def negative_binomial():
    """Overdispersed counts of 25 groups with a covariate, non-centred."""
    rng = np.random.default_rng(2)
    group = np.repeat(np.arange(25), 8)
    x = rng.standard_normal(len(group))
    rate = np.exp(1 + 0.3 * x + 0.6 * rng.standard_normal(25)[group])
    y = rng.poisson(rate * rng.gamma(3, 1 / 3, len(group)))

    def model():
        mean = numpyro.sample("mean", dist.Normal(0, 2))
        slope = numpyro.sample("slope", dist.Normal(0, 1))
        spread = numpyro.sample("spread", dist.HalfCauchy(1))
        size = numpyro.sample("size", dist.Gamma(2, 0.5))
        with numpyro.plate("groups", 25):
            z = numpyro.sample("z", dist.Normal(0, 1))
        rates = jnp.exp(mean + slope * x + spread * z[group])
        numpyro.sample("y", dist.NegativeBinomial2(rates, size), obs=y)

    return model


def correlated():
    """Intercepts and slopes of twenty groups with an LKJ prior, non-centred."""
    rng = np.random.default_rng(3)
    group = np.repeat(np.arange(20), 10)
    x = rng.standard_normal(len(group))
    u = rng.standard_normal((20, 2)) @ np.array([[0.8, 0.3], [0.0, 0.5]])
    y = 1 + u[group, 0] + (0.5 + u[group, 1]) * x + 0.7 * rng.standard_normal(len(x))

    def model():
        beta = numpyro.sample("beta", dist.Normal(0, 2).expand([2]))
        spread = numpyro.sample("spread", dist.HalfNormal(1).expand([2]))
        factor = numpyro.sample("factor", dist.LKJCholesky(2, 2.0))
        noise = numpyro.sample("noise", dist.HalfNormal(1))
        with numpyro.plate("groups", 20):
            z = numpyro.sample("z", dist.Normal(0, 1).expand([2]).to_event(1))
        line = beta + z @ (spread[:, None] * factor).T
        mean = line[group, 0] + line[group, 1] * x
        numpyro.sample("y", dist.Normal(mean, noise), obs=y)

    return model


def poisson_walk():
    """Sixty counts whose log rate is a random walk, written with its shocks."""
    rng = np.random.default_rng(6)
    y = rng.poisson(np.exp(1.5 + np.cumsum(0.25 * rng.standard_normal(60))))

    def model():
        scale = numpyro.sample("scale", dist.HalfNormal(0.5))
        z = numpyro.sample("z", dist.Normal(0, 1).expand([60]).to_event(1))
        start = numpyro.sample("start", dist.Normal(0, 2))
        rates = jnp.exp(start + scale * jnp.cumsum(z))
        numpyro.sample("y", dist.Poisson(rates), obs=y)

    return model


def ordinal():
    """Ordered answers of twenty groups on four levels, centred."""
    rng = np.random.default_rng(5)
    group = np.repeat(np.arange(20), 10)
    x = rng.standard_normal(len(group))
    latent = 0.8 * x + 0.7 * rng.standard_normal(20)[group]
    y = np.digitize(latent + rng.logistic(size=len(x)), [-1, 0.3, 1.5])
    ordered = dist.TransformedDistribution(
        dist.Normal(0, 2).expand([3]).to_event(1), dist.transforms.OrderedTransform()
    )

    def model():
        slope = numpyro.sample("slope", dist.Normal(0, 2))
        spread = numpyro.sample("spread", dist.HalfNormal(1))
        cuts = numpyro.sample("cuts", ordered)
        with numpyro.plate("groups", 20):
            u = numpyro.sample("u", dist.Normal(0, spread))
        numpyro.sample("y", dist.OrderedLogistic(slope * x + u[group], cuts), obs=y)

    return model


def weibull():
    """Censored survival times of 18 groups, centred."""
    rng = np.random.default_rng(10)
    group = np.repeat(np.arange(18), 7)
    x = rng.standard_normal(len(group))
    mean = np.exp(1 + 0.4 * x + 0.5 * rng.standard_normal(18)[group])
    time = mean * rng.weibull(1.5, len(group))
    seen, is_seen = np.minimum(time, 8.0), time < 8

    def model():
        level = numpyro.sample("level", dist.Normal(0, 2))
        slope = numpyro.sample("slope", dist.Normal(0, 1))
        shape = numpyro.sample("shape", dist.LogNormal(0, 0.5))
        spread = numpyro.sample("spread", dist.HalfNormal(1))
        with numpyro.plate("groups", 18):
            u = numpyro.sample("u", dist.Normal(0, spread))
        power = shape * (jnp.log(seen) - level - slope * x - u[group])
        hazard = is_seen * (jnp.log(shape) + power - jnp.log(seen))
        numpyro.factor("y", jnp.sum(hazard - jnp.exp(power)))

    return model


def rasch():
    """Fifty people answer twenty items, non-centred abilities."""
    rng = np.random.default_rng(9)
    logit = rng.standard_normal(50)[:, None] - rng.standard_normal(20)
    y = (rng.uniform(size=(50, 20)) < 1 / (1 + np.exp(-logit))).astype(int)

    def model():
        spread = numpyro.sample("spread", dist.HalfNormal(1))
        mean = numpyro.sample("mean", dist.Normal(0, 1))
        hardness = numpyro.sample("hardness", dist.HalfNormal(1))
        ability = numpyro.sample("ability", dist.Normal(0, 1).expand([50]).to_event(1))
        item = dist.Normal(mean, hardness).expand([20]).to_event(1)
        b = numpyro.sample("b", item)
        logits = spread * ability[:, None] - b
        numpyro.sample("y", dist.Bernoulli(logits=logits).to_event(2), obs=y)

    return model


def sparse_regression():
    """A regularised horseshoe on fifteen columns, of which two matter, non-centred."""
    rng = np.random.default_rng(12)
    x = rng.standard_normal((60, 15))
    y = 1.5 * x[:, 0] - x[:, 3] + rng.standard_normal(60)

    def model():
        noise = numpyro.sample("noise", dist.HalfNormal(2))
        overall = numpyro.sample("overall", dist.HalfCauchy(0.1))
        slab = numpyro.sample("slab", dist.InverseGamma(2, 4))
        local = numpyro.sample("local", dist.HalfCauchy(1).expand([15]).to_event(1))
        z = numpyro.sample("z", dist.Normal(0, 1).expand([15]).to_event(1))
        width = jnp.sqrt(slab / (slab + overall**2 * local**2)) * local * overall
        numpyro.sample("y", dist.Normal(x @ (z * width), noise).to_event(1), obs=y)

    return model


def correlated_three():
    """An intercept and two slopes of fifteen groups with an LKJ prior, non-centred."""
    rng = np.random.default_rng(13)
    group = np.repeat(np.arange(15), 12)
    x = np.column_stack([np.ones(180), rng.standard_normal((180, 2))])
    u = rng.standard_normal((15, 3)) * [0.8, 0.5, 0.3]
    y = np.sum(x * ([1, 0.5, -0.5] + u[group]), axis=1) + 0.7 * rng.standard_normal(180)

    def model():
        beta = numpyro.sample("beta", dist.Normal(0, 2).expand([3]).to_event(1))
        spread = numpyro.sample("spread", dist.HalfNormal(1).expand([3]).to_event(1))
        factor = numpyro.sample("factor", dist.LKJCholesky(3, 2.0))
        noise = numpyro.sample("noise", dist.HalfNormal(1))
        z = numpyro.sample("z", dist.Normal(0, 1).expand([15, 3]).to_event(2))
        line = beta + z @ (spread[:, None] * factor).T
        mean = jnp.sum(x * line[group], axis=1)
        numpyro.sample("y", dist.Normal(mean, noise).to_event(1), obs=y)

    return model


def correlated_logit():
    """Yes-or-no answers, intercepts and slopes of thirty groups with an LKJ prior."""
    rng = np.random.default_rng(14)
    group = np.repeat(np.arange(30), 15)
    x = rng.standard_normal(450)
    u = rng.standard_normal((30, 2)) @ np.array([[0.9, 0.3], [0.0, 0.6]])
    logit = 0.3 + u[group, 0] + (0.8 + u[group, 1]) * x
    y = (rng.uniform(size=450) < 1 / (1 + np.exp(-logit))).astype(int)

    def model():
        beta = numpyro.sample("beta", dist.Normal(0, 2).expand([2]).to_event(1))
        spread = numpyro.sample("spread", dist.HalfNormal(1).expand([2]).to_event(1))
        factor = numpyro.sample("factor", dist.LKJCholesky(2, 2.0))
        z = numpyro.sample("z", dist.Normal(0, 1).expand([30, 2]).to_event(2))
        line = beta + z @ (spread[:, None] * factor).T
        logits = line[group, 0] + line[group, 1] * x
        numpyro.sample("y", dist.Bernoulli(logits=logits).to_event(1), obs=y)

    return model


def nested():
    """Pupils in 40 classes of 10 schools, normal errors, both levels centred."""
    rng = np.random.default_rng(15)
    school = np.repeat(np.arange(10), 4)
    pupil = np.repeat(np.arange(40), 6)
    effect = 0.6 * rng.standard_normal(10)[school] + 0.4 * rng.standard_normal(40)
    y = 2 + effect[pupil] + rng.standard_normal(240)

    def model():
        mean = numpyro.sample("mean", dist.Normal(0, 5))
        between = numpyro.sample("between", dist.HalfNormal(1))
        within = numpyro.sample("within", dist.HalfNormal(1))
        noise = numpyro.sample("noise", dist.HalfNormal(1))
        with numpyro.plate("schools", 10):
            a = numpyro.sample("a", dist.Normal(mean, between))
        with numpyro.plate("classes", 40):
            b = numpyro.sample("b", dist.Normal(a[school], within))
        numpyro.sample("y", dist.Normal(b[pupil], noise), obs=y)

    return model


def zero_inflated():
    """Counts with excess zeros in twelve groups, non-centred rates."""
    rng = np.random.default_rng(16)
    group = np.repeat(np.arange(12), 15)
    x = rng.standard_normal(180)
    rate = np.exp(1 + 0.4 * x + 0.5 * rng.standard_normal(12)[group])
    y = rng.poisson(rate) * (rng.uniform(size=180) > 0.3)

    def model():
        mean = numpyro.sample("mean", dist.Normal(0, 2))
        slope = numpyro.sample("slope", dist.Normal(0, 1))
        spread = numpyro.sample("spread", dist.HalfNormal(1))
        gate = numpyro.sample("gate", dist.Beta(1, 1))
        z = numpyro.sample("z", dist.Normal(0, 1).expand([12]).to_event(1))
        rates = jnp.exp(mean + slope * x + spread * z[group])
        numpyro.sample("y", dist.ZeroInflatedPoisson(gate, rates).to_event(1), obs=y)

    return model


def measurement_error():
    """A regression on a covariate that is measured with errors, its values unknown."""
    rng = np.random.default_rng(17)
    truth = 1 + 1.5 * rng.standard_normal(30)
    seen = truth + 0.5 * rng.standard_normal(30)
    y = 0.5 + 0.8 * truth + 0.4 * rng.standard_normal(30)

    def model():
        intercept = numpyro.sample("intercept", dist.Normal(0, 5))
        slope = numpyro.sample("slope", dist.Normal(0, 2))
        noise = numpyro.sample("noise", dist.HalfNormal(1))
        mean = numpyro.sample("mean", dist.Normal(0, 5))
        spread = numpyro.sample("spread", dist.HalfNormal(3))
        with numpyro.plate("people", 30):
            x = numpyro.sample("x", dist.Normal(mean, spread))
            numpyro.sample("seen", dist.Normal(x, 0.5), obs=seen)
            numpyro.sample("y", dist.Normal(intercept + slope * x, noise), obs=y)

    return model


def rates_of_groups():
    """Successes of 25 hospitals, beta-binomial with unknown mean and concentration."""
    rng = np.random.default_rng(18)
    trials = rng.integers(10, 80, 25)
    y = rng.binomial(trials, rng.beta(3, 12, 25))

    def model():
        mean = numpyro.sample("mean", dist.Beta(1, 1))
        size = numpyro.sample("size", dist.Gamma(2, 0.05))
        with numpyro.plate("hospitals", 25):
            p = numpyro.sample("p", dist.Beta(mean * size, (1 - mean) * size))
            numpyro.sample("y", dist.Binomial(trials, p), obs=y)

    return model


def latent_autoregression():
    """Fifty counts with an autoregressive log rate, by scan over its shocks."""
    rng = np.random.default_rng(19)
    path = [0.0]
    for shock in rng.standard_normal(49):
        path.append(0.85 * path[-1] + 0.35 * shock)
    y = rng.poisson(np.exp(1.2 + np.array(path)))

    def model():
        mean = numpyro.sample("mean", dist.Normal(0, 2))
        memory = numpyro.sample("memory", dist.Uniform(0, 1))
        scale = numpyro.sample("scale", dist.HalfNormal(1))
        z = numpyro.sample("z", dist.Normal(0, 1).expand([50]).to_event(1))

        def step(state, shock):
            state = memory * state + scale * shock
            return state, state

        _, path = jax.lax.scan(step, 0.0, z)
        numpyro.sample("y", dist.Poisson(jnp.exp(mean + path)).to_event(1), obs=y)

    return model


def smooth_curve():
    """A Gaussian process seen with errors at forty places, latent values white."""
    rng = np.random.default_rng(20)
    x = np.sort(rng.uniform(-2, 2, 40))
    y = np.sin(2 * x) + 0.3 * rng.standard_normal(40)

    def model():
        length = numpyro.sample("length", dist.InverseGamma(5, 5))
        height = numpyro.sample("height", dist.HalfNormal(1))
        noise = numpyro.sample("noise", dist.HalfNormal(1))
        z = numpyro.sample("z", dist.Normal(0, 1).expand([40]).to_event(1))
        squares = (x[:, None] - x) ** 2
        cov = height**2 * jnp.exp(-squares / (2 * length**2)) + 1e-6 * jnp.eye(40)
        f = jnp.linalg.cholesky(cov) @ z
        numpyro.sample("y", dist.Normal(f, noise).to_event(1), obs=y)

    return model


MODELS = {
    make.__name__: make
    for make in (
        *(crossed_factors, crossed_logit, crossed_logit_large, robust),
        *(negative_binomial, correlated, poisson_walk, ordinal, weibull, rasch),
        *(sparse_regression, correlated_three, correlated_logit, nested),
        *(zero_inflated, measurement_error, rates_of_groups),
        *(latent_autoregression, smooth_curve),
    )
}


def reference(model) -> tuple[dict[str, np.ndarray], int]:
    """Draws by name, and the gradients that they took."""
    kernel = NUTS(model, target_accept_prob=0.95)
    run = MCMC(kernel, num_warmup=1000, num_samples=4000, num_chains=2)
    run.progress_bar = False
    run.run(jax.random.key(0), extra_fields=("num_steps",))
    draws = {name: np.asarray(rows) for name, rows in run.get_samples().items()}
    return draws, int(run.get_extra_fields()["num_steps"].sum())


def errors(draws, expected, positive) -> tuple[float, float]:
    """Worst error of a mean, in posterior sd, and worst relative error of an sd.

    positive: quantities of whose logarithms they are: half-Cauchy scales have no mean.
    """
    worst = np.zeros(2)
    for name, rows in expected.items():
        old = rows.reshape(len(rows), -1)
        new = np.asarray(draws[name]).reshape(-1, old.shape[1])
        if name in positive:
            old, new = np.log(old), np.log(new)
        sd = old.std(axis=0)
        varies = sd > 1e-9  # entries of a Cholesky factor may be constant
        pair = np.stack([np.abs(new.mean(0) - old.mean(0)), np.abs(new.std(0) - sd)])
        worst = np.maximum(worst, np.max(pair[:, varies] / sd[varies], axis=1))
    return float(worst[0]), float(worst[1])


def main() -> None:
    """Print a row a model."""
    warnings.simplefilter("ignore")  # a bad verdict warns; here it is a column
    print("| model | d | seeds | evaluations | verdicts | NUTS's gradients |")
    print("| --- | --: | --- | --- | --- | --: |")
    for name in sys.argv[1:] or MODELS:
        model = MODELS[name]()
        expected, num_gradients = reference(model)
        target = vhmc.from_numpyro(model)
        runs = [
            vhmc.sample(target, BUDGET, seed=seed, progress=False)
            for seed in range(SEEDS)
        ]
        far_out = target.parameters.constrain(np.full((1, target.dim), -FAR))
        positive = {key for key, value in far_out.items() if np.all(value > 0)}
        pairs = [errors(run.draws, expected, positive) for run in runs]
        cells = (
            name.replace("_", " "),
            target.dim,
            ", ".join(f"{mean:.2f} / {sd:.2f}" for mean, sd in pairs),
            ", ".join(str(run.num_evaluations) for run in runs),
            ", ".join(run.verdict.status for run in runs),
            f"{num_gradients:,}",
        )
        print("|", " | ".join(map(str, cells)), "|", flush=True)


if __name__ == "__main__":
    main()

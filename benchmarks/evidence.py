"""The evidence of a run against closed forms and quadrature, with its stated error.

For each model: verdicts, the true log evidence, the worst error over the seeds, the
median stated error and the root mean square of the z scores. Errors that are below 1e-4
nats count as 1e-4 in the scores: rounding is not chance.

Run: python benchmarks/evidence.py [--seeds 5] [name ...]
"""

import argparse
import time
import warnings
from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pymc as pm
import scipy.integrate
import scipy.special
import scipy.stats
from jax.scipy.stats import norm

import vhmc
from vhmc.lab.bench import posteriordb

BUDGET = 1000
LEAST = 1e-4
STAN = """
data { int N; vector[N] y; }
parameters { real mu; }
model { mu ~ normal(0, 2); y ~ normal(mu, 1.5); }
"""


def normal_log_density(y, cov):
    """Log density of data with mean zero."""
    return scipy.stats.multivariate_normal(np.zeros(len(y)), cov).logpdf(y)


def readings():
    """Twenty numbers, and their evidence under N(mu, 1.5^2) with mu ~ N(0, 2^2)."""
    y = 1 + 1.5 * np.random.default_rng(0).standard_normal(20)
    return y, normal_log_density(y, 2.25 * np.eye(20) + 4.0)


def conjugate():
    """Their posterior by hand."""
    y, truth = readings()

    def log_density(p):
        return norm.logpdf(p["mu"], 0, 2) + jnp.sum(norm.logpdf(y, p["mu"], 1.5))

    return vhmc.from_jax(log_density, {"mu": 0.0}), truth


def numpyro_normal():
    """The same by NumPyro."""
    y, truth = readings()

    def model():
        mu = numpyro.sample("mu", dist.Normal(0, 2))
        numpyro.sample("y", dist.Normal(mu, 1.5), obs=y)

    return vhmc.from_numpyro(model), truth


def stan_normal():
    """The same by Stan, with sampling statements."""
    y, truth = readings()
    return vhmc.from_stan(STAN, {"N": len(y), "y": y}), truth


def pymc_counts():
    """Poisson counts with a gamma rate, which PyMC samples on the log scale."""
    y = np.random.default_rng(1).poisson(4.0, 12)
    with pm.Model() as model:
        rate = pm.Gamma("rate", alpha=2.0, beta=0.5)
        pm.Poisson("y", rate, observed=y)
    shape, total = 2.0 + y.sum(), 0.5 + len(y)
    truth = 2.0 * np.log(0.5) - scipy.special.gammaln(2.0)
    truth += scipy.special.gammaln(shape) - shape * np.log(total)
    return vhmc.from_pymc(model), truth - np.sum(scipy.special.gammaln(y + 1))


def design(dim):
    """Inputs and outputs of a regression."""
    rng = np.random.default_rng(dim)
    rows = rng.standard_normal((3 * dim, dim))
    return rows, rows @ rng.standard_normal(dim) + rng.standard_normal(3 * dim)


def regression(dim):
    """Unit errors and unit priors."""
    rows, y = design(dim)

    def log_density(beta):
        return jnp.sum(norm.logpdf(beta)) + jnp.sum(norm.logpdf(y, rows @ beta))

    truth = normal_log_density(y, np.eye(len(y)) + rows @ rows.T)
    return vhmc.from_jax(log_density, np.zeros(dim)), truth


def unknown_noise(dim):
    """The same with an unknown scale of prior and errors: a multivariate t."""
    rows, y = design(dim)

    def log_density(p):
        variance = p["variance"]
        prior = jnp.sum(norm.logpdf(p["beta"], 0, jnp.sqrt(variance)))
        prior = prior + jax.scipy.stats.gamma.logpdf(1 / variance, 3.0, scale=0.5)
        likelihood = norm.logpdf(y, rows @ p["beta"], jnp.sqrt(variance))
        return prior - 2 * jnp.log(variance) + jnp.sum(likelihood)

    init = {"beta": np.zeros(dim), "variance": 1.0}
    shape = (np.eye(len(y)) + rows @ rows.T) * 2.0 / 3.0
    truth = scipy.stats.multivariate_t(np.zeros(len(y)), shape, 6.0).logpdf(y)
    return vhmc.from_jax(log_density, init, {"variance": vhmc.positive}), truth


def forward():
    """The regression in 10 dimensions as a forward model."""
    rows, y = design(10)
    target = vhmc.from_forward(
        lambda beta: jnp.asarray(rows) @ beta, y, 1.0, prior=(np.zeros(10), 1.0)
    )
    return target, normal_log_density(y, np.eye(len(y)) + rows @ rows.T)


def banana():
    """A curved prior, and one reading of the second coordinate."""

    def log_density(theta, xp_norm=norm):
        prior = xp_norm.logpdf(theta[0]) + xp_norm.logpdf(theta[1], theta[0] ** 2, 0.5)
        return prior + xp_norm.logpdf(1.5, theta[1], 1.0)

    axes = np.linspace(-6, 6, 1201), np.linspace(-6, 30, 3601)
    grid = np.meshgrid(*axes, indexing="ij")
    density = np.exp(log_density(grid, scipy.stats.norm))
    truth = np.log(np.trapezoid(np.trapezoid(density, axes[1]), axes[0]))
    return vhmc.from_jax(log_density, np.zeros(2)), truth


def eight_schools():
    """Normal given the scale, which is integrated by quadrature."""
    schools = posteriordb.data("eight_schools")
    y, sigma = np.asarray(schools["y"], float), np.asarray(schools["sigma"], float)

    def model():
        mu = numpyro.sample("mu", dist.Normal(0, 5))
        tau = numpyro.sample("tau", dist.HalfCauchy(5))
        with numpyro.plate("school", 8):
            theta = numpyro.sample("theta", dist.Normal(mu, tau))
            numpyro.sample("y", dist.Normal(theta, sigma), obs=y)

    def given(tau):
        cov = np.diag(sigma**2 + tau**2) + 25.0
        density = np.exp(normal_log_density(y, cov))
        return density * scipy.stats.halfcauchy.pdf(tau, scale=5.0)

    truth = np.log(scipy.integrate.quad(given, 0, np.inf, epsabs=0, limit=500)[0])
    return vhmc.from_numpyro(model), truth


def binomial():
    """A logit with an intercept and a slope, by quadrature."""
    x = np.linspace(-1, 1, 12)
    y = np.random.default_rng(4).binomial(3, 1 / (1 + np.exp(-0.5 - 2 * x)))

    def log_density(theta, xp=jnp, xp_norm=norm):
        logit = theta[0][..., None] + theta[1][..., None] * x
        terms = y * logit - 3 * xp.logaddexp(0.0, logit)
        prior = xp_norm.logpdf(theta[0], 0, 3) + xp_norm.logpdf(theta[1], 0, 3)
        return prior + xp.sum(terms, axis=-1)

    axis = np.linspace(-15, 15, 801)
    values = np.exp(log_density(np.meshgrid(axis, axis), np, scipy.stats.norm))
    truth = np.log(values.sum() * (axis[1] - axis[0]) ** 2)
    return vhmc.from_jax(log_density, np.zeros(2)), truth


MODELS = {
    "normal": conjugate,
    "normal, NumPyro": numpyro_normal,
    "normal, Stan": stan_normal,
    "Poisson and gamma, PyMC": pymc_counts,
    "regression, 10 d": lambda: regression(10),
    "regression, 30 d": lambda: regression(30),
    "regression, 10 d, from_forward": forward,
    "regression with noise, 11 d": lambda: unknown_noise(10),
    "regression with noise, 31 d": lambda: unknown_noise(30),
    "logit, 2 d": binomial,
    "banana, 2 d": banana,
    "eight schools, centred, 10 d": eight_schools,
}


def main() -> None:
    """Print a row of the table for each model."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", default=list(MODELS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=0)
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    print(
        "| model | verdicts | log evidence | worst error | stated error | rms z | s |"
    )
    print("|---|---|---|---|---|---|---|", flush=True)
    for name in chosen.names:
        began = time.perf_counter()
        target, truth = MODELS[name]()
        runs = [
            vhmc.sample(target, BUDGET, seed=seed, progress=False)
            for seed in range(chosen.first, chosen.first + chosen.seeds)
        ]
        found = np.array([run.log_evidence for run in runs])
        off, error = found[:, 0] - truth, found[:, 1]
        score = np.sqrt(np.mean((off / np.maximum(error, LEAST)) ** 2))
        verdicts = Counter(run.verdict.status for run in runs)
        words = ", ".join(f"{n} {status}" for status, n in verdicts.items())
        print(
            f"| {name} | {words} | {truth:.3f} | {np.abs(off).max():.4f} "
            f"| {np.median(error):.4f} | {score:.2f} "
            f"| {time.perf_counter() - began:.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()

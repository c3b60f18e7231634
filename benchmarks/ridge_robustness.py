"""How often the paper form warns, by ridge, on the small models the default was set on.

Six seeds a model, 100 nodes, 1,000 iterations of training, everything else by default.
The spread of the first parameter is compared with a long exact HMC run.

Run: python benchmarks/ridge_robustness.py
"""

import warnings

import jax
import jax.numpy as jnp
import numpy as np

import vhmc
from vhmc.numerics.chains import find_step_size
from vhmc.numerics.mass import mass_from_covariance

SEEDS = range(6)
RIDGES = (1e-4, 1e-2, None, 10.0)  # None: a tenth of the guide's mean curvature
rng = np.random.default_rng(0)
few = np.array([2.1, 1.9, 3.0, 2.4, 2.8, 1.7])
many = rng.normal(2, 1, 20)
design = np.column_stack([np.ones(200), rng.normal(size=(200, 2))])
chances = 1 / (1 + np.exp(-design @ np.array([0.3, 1.0, -0.5])))
labels = rng.uniform(size=200) < chances


def normal(data):
    """Mean and scale of a normal, both unknown."""

    def log_density(p):
        standardised = (data - p["mean"]) / p["scale"]
        return -0.5 * jnp.sum(standardised**2) - (len(data) + 1) * jnp.log(p["scale"])

    init = {"mean": 0.0, "scale": 1.0}
    return vhmc.from_jax(log_density, init, {"scale": vhmc.positive})


def logistic(beta):
    """Logistic regression on 200 rows, prior variance 100."""
    logits = design @ beta
    likelihood = jnp.sum(labels * logits - jnp.logaddexp(0.0, logits))
    return likelihood - beta @ beta / 200


TARGETS = {
    "normal, 6 rows": normal(few),
    "normal, 20 rows": normal(many),
    "logistic, 3 coefficients": vhmc.from_jax(logistic, jnp.zeros(3)),
    "standard normal, 3 dimensions": vhmc.from_jax(lambda x: -x @ x / 2, jnp.zeros(3)),
    "standard normal, 8 dimensions": vhmc.from_jax(lambda x: -x @ x / 2, jnp.zeros(8)),
}


def exact_sd(target):
    """Standard deviation of the first parameter from 8 x 1,000 exact HMC draws."""
    guide = vhmc.paper.laplace(target, target.start).guide
    covariance = jnp.linalg.inv(guide.precision)
    kernel = vhmc.paper.HMC(mass_from_covariance(covariance), jnp.array(0.3), 7, 0.5)
    theta = jnp.broadcast_to(guide.mean, (8, target.dim))
    key_tune, key_draw = jax.random.split(jax.random.key(0))
    tuning = find_step_size(key_tune, kernel, theta, target.potential, 0.85)
    chains = vhmc.paper.run_chains(
        key_draw, tuning.kernel, tuning.theta, target.potential, 1000
    )
    return float(chains.theta[..., 0].std())


print(
    f"{'model':32}{'ridge':>8}{'warned':>8}{'failed':>8}{'sd / exact sd, median':>24}"
)
for name, target in TARGETS.items():
    truth = exact_sd(target)
    for ridge in RIDGES:
        method = vhmc.paper.VHMC(num_features=100, ridge=ridge, num_train=1000)
        ratios, warned, failed = [], 0, 0
        for seed in SEEDS:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    posterior = vhmc.paper.sample_paper(target, method, seed=seed)
                except vhmc.RunFailure:
                    failed += 1
                    continue
            warned += bool(posterior.warnings)
            ratios.append(posterior.unconstrained[..., 0].std() / truth)
        middle = np.median(ratios) if ratios else float("nan")
        print(
            f"{name:32}{ridge or 'default':>8}{warned:8d}{failed:8d}{middle:24.3f}",
            flush=True,
        )

"""Moments of those posteriors of `vhmc bench verdict` that cannot be drawn directly.

Self-normalised importance sampling from a mixture of Student t distributions, which is
fitted to the posterior by expectation and maximisation on weighted draws (Cappe et al.,
2008), beginning at the ends of descents from many starts. Effective sizes are on file,
with the Pareto shape of the weights and the largest difference between the moments of
the two halves of the draws, in sd.

Run: python benchmarks/verdict_reference.py [name ...]
"""

import json
import sys
import time
from pathlib import Path

import jax
import numpy as np
from scipy.optimize import minimize
from scipy.special import gammaln, logsumexp

from vhmc.lab.bench import verdict
from vhmc.lab.bench.verdict import regressions
from vhmc.lab.bench.verdict.case import generator
from vhmc.lab.bench.verdict.cases import CASES, REFERENCE
from vhmc.numerics.importance import pareto_smooth

SEED = 0
STARTS, STEPS = 24, 200
COMPONENTS, FREEDOM = 10, 8.0
ROUNDS, ROUND_DRAWS = 12, 20_000
DRAWS, MOST_DRAWS, LEAST_ESS = 200_000, 2_000_000, 50_000
DIFFERENCE = 0.02
"""Of the moments of two halves, in sd, up to which more draws are made."""


class Mixture:
    """Student t distributions, all of the same degrees of freedom."""

    def __init__(self, weights, means, covariances):
        self.weights, self.means = weights / weights.sum(), means
        self.factors = np.linalg.cholesky(covariances)
        self.dim = means.shape[1]

    def draw(self, rng, size):
        """Draws, one a row."""
        which = rng.choice(len(self.weights), size, p=self.weights)
        white = rng.standard_normal((size, self.dim))
        white /= np.sqrt(rng.chisquare(FREEDOM, (size, 1)) / FREEDOM)
        theta = np.empty_like(white)
        for k, (mean, factor) in enumerate(zip(self.means, self.factors, strict=True)):
            mine = which == k
            theta[mine] = mean + white[mine] @ factor.T
        return theta

    def parts(self, theta):
        """Log densities of weighted components, and squared distances."""
        logs, squares = [], []
        for weight, mean, factor in zip(
            self.weights, self.means, self.factors, strict=True
        ):
            white = np.linalg.solve(factor, (theta - mean).T)
            square = np.sum(white**2, axis=0)
            log = gammaln((FREEDOM + self.dim) / 2) - gammaln(FREEDOM / 2)
            log -= self.dim / 2 * np.log(FREEDOM * np.pi)
            log -= np.log(np.diag(factor)).sum()
            log = log - (FREEDOM + self.dim) / 2 * np.log1p(square / FREEDOM)
            logs.append(log + np.log(np.maximum(weight, 1e-300)))
            squares.append(square)
        return np.array(logs), np.array(squares)

    def refitted(self, theta, weights):
        """By one step of expectation and maximisation on weighted draws."""
        logs, squares = self.parts(theta)
        share = weights * np.exp(logs - logsumexp(logs, axis=0))
        robust = share * (FREEDOM + self.dim) / (FREEDOM + squares)
        mass = share.sum(axis=1)
        kept = mass > 1e-4
        means, covariances = [], []
        for k in np.flatnonzero(kept):
            mean = robust[k] @ theta / robust[k].sum()
            centred = theta - mean
            covariance = (robust[k][:, None] * centred).T @ centred / mass[k]
            covariances.append(covariance + 1e-10 * np.diag(np.diag(covariance)))
            means.append(mean)
        return Mixture(mass[kept], np.array(means), np.array(covariances))


def first_mixture(rng, target, energy):
    """Components around the ends of descents, as wide as the Hessian says."""
    value_and_grad = jax.jit(jax.value_and_grad(target.energy))

    def answer(theta):
        value, grad = value_and_grad(theta)
        if not (np.isfinite(value) and np.isfinite(grad).all()):
            return 1e10, np.zeros(target.dim)
        return float(value), np.asarray(grad)

    ends = []
    for number in range(STARTS):
        spread = (0.2, 1.0, 2.0)[number % 3]
        start = target.start + spread * rng.standard_normal(target.dim)
        end = minimize(answer, start, jac=True, options={"maxiter": STEPS})
        ends.append((end.fun, end.x))
    ends.sort(key=lambda end: end[0])
    ends = [end for end in ends if end[0] < ends[0][0] + 12][:COMPONENTS]
    hessian = jax.jit(jax.hessian(target.energy))
    means, covariances = [], []
    for number in range(COMPONENTS):
        _, end = ends[number % len(ends)]
        values, axes = np.linalg.eigh(np.asarray(hessian(end)))
        sds = 1 / np.sqrt(np.clip(values, 0.05, None))
        means.append(end + 0.7 * axes @ (sds * rng.standard_normal(target.dim)))
        covariances.append((axes * sds**2) @ axes.T)
    return Mixture(np.ones(COMPONENTS), np.array(means), np.array(covariances))


def weighed(rng, mixture, energy, size):
    """Draws with their log weights."""
    theta = mixture.draw(rng, size)
    log = -energy(theta) - logsumexp(mixture.parts(theta)[0], axis=0)
    return theta, np.where(np.isfinite(log), log, -np.inf)


def moments(values, log_weights):
    """Mean and sd under the weights."""
    weights = np.exp(log_weights - logsumexp(log_weights))
    mean = weights @ values
    return mean, np.sqrt(weights @ (values - mean) ** 2), 1 / np.sum(weights**2)


def noncentred(name):
    """The target in units of its scale, and the values of the centred one from it."""
    family, _, number = name.rpartition("-")
    rng = generator(family, int(number) - 1)
    make = {
        "logit-centred": regressions.logit_noncentred,
        "counts-centred": regressions.counts_noncentred,
    }
    target = make[family](rng).make()

    def values(theta):
        found = target.parameters.values(theta)
        found[:, 2:] = found[:, :1] + found[:, 1:2] * found[:, 2:]
        return found

    return target, values


def reference(name):
    """The entry of one posterior."""
    rng = np.random.default_rng(SEED)
    if "-centred" in name:
        target, values_of = noncentred(name)
    else:
        target = CASES[name]().make()
        values_of = target.parameters.values
    batched = jax.jit(jax.vmap(target.energy))

    def energy(thetas):
        parts = np.array_split(thetas, max(1, len(thetas) // ROUND_DRAWS))
        return np.concatenate([np.asarray(batched(part)) for part in parts])

    mixture = first_mixture(rng, target, energy)
    for _ in range(ROUNDS):
        theta, log = weighed(rng, mixture, energy, ROUND_DRAWS)
        # Tempered until the weights are even enough for covariances.
        power = 1.0
        while power > 0.02:
            weights = np.exp(power * log - logsumexp(power * log))
            if 1 / np.sum(weights**2) > 30 * target.dim:
                break
            power *= 0.7
        mixture = mixture.refitted(theta, weights)
    thetas, logs, ess, difference = [], [], 0.0, np.inf
    while sum(map(len, logs)) < MOST_DRAWS:
        if ess >= LEAST_ESS and difference <= DIFFERENCE:
            break
        theta, log = weighed(rng, mixture, energy, DRAWS)
        thetas.append(values_of(theta))
        logs.append(log)
        values, log = np.concatenate(thetas), np.concatenate(logs)
        mean, sd, ess = moments(values, log)
        half = len(log) // 2
        one, two = (
            moments(values[:half], log[:half]),
            moments(values[half:], log[half:]),
        )
        pairs = zip(one[:2], two[:2], strict=True)
        difference = max(np.max(np.abs(first - second) / sd) for first, second in pairs)
    return {
        "ess": round(float(ess)),
        "draws": len(log),
        "pareto_k": round(float(pareto_smooth(log)[1]), 2),
        "halves_differ": round(float(difference), 4),
        "mean": [float(f"{value:.6g}") for value in mean],
        "sd": [float(f"{value:.6g}") for value in sd],
    }


def main():
    """Make the references asked for and merge them into the file."""
    path = Path(verdict.__file__).parent / REFERENCE
    names = [name for name, make in CASES.items() if make().draw is None]
    for name in sys.argv[1:] or names:
        began = time.perf_counter()
        entry = reference(name)
        table = json.loads(path.read_text()) if path.exists() else {}
        table[name] = entry
        shown = {k: v for k, v in entry.items() if k not in ("mean", "sd")}
        print(name, shown, f"{time.perf_counter() - began:.0f} s", flush=True)
        lines = [
            f"{json.dumps(k)}: {json.dumps(table[k])}" for k in names if k in table
        ]
        partial = path.with_name(path.name + ".partial")
        partial.write_text("{\n" + ",\n".join(lines) + "\n}\n")
        partial.replace(path)


if __name__ == "__main__":
    main()

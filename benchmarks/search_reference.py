"""Reference moments of the search's posteriors, read by `vhmc.lab.bench.search`.

From a point that is known to be near the mass, Newton's method and then NUTS in
coordinates that the Hessian whitens: units do not matter there. The mass must be within
a distance of one standard deviation of itself only, so a few thousand draws do.

    python benchmarks/search_reference.py [NAME ...]
"""

import json
import sys
import time
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize

import vhmc.lab.bench.search.problems as problems
from vhmc.lab.baselines.nuts import nuts_chains
from vhmc.numerics.effective_size import worst_ess, worst_rhat

SEED = 0
CHAINS, WARMUP, DRAWS = 4, 1000, 2000
SMALLEST_ESS, LARGEST_RHAT = 400, 1.02
LEGS = 6
"""Times that the coordinates are refitted to the Hessian on the way to the mode."""
NECKS = "walk-noncentred", "hierarchical-normal-scaled"
"""Their modes are far from the mass: the coordinates are those of the point near it."""


class Whitened(eqx.Module):
    """The energy in other coordinates."""

    energy: eqx.Module
    mean: jax.Array
    factor: jax.Array

    def __call__(self, x):
        """Energy at mean + factor x."""
        return self.energy(self.mean + self.factor @ x)


def whitening(matrix):
    """A factor of the inverse of a Hessian, negative curvatures turned round."""
    root = np.sqrt(np.abs(np.diag(matrix)).clip(1e-300))
    values, vectors = np.linalg.eigh(matrix / np.outer(root, root))
    values = np.maximum(np.abs(values), 1e-14)
    return (vectors / np.sqrt(values)) / root[:, None]


def near_mode(energy, theta):
    """The mode and the factor of the inverse Hessian there, by legs of BFGS."""
    both = jax.jit(jax.value_and_grad(energy))
    hessian = jax.jit(jax.hessian(energy))
    for _ in range(LEGS):
        factor = whitening(np.asarray(hessian(theta)))

        def whitened(x, theta=theta, factor=factor):
            value, grad = both(theta + factor @ x)
            if not np.isfinite(value) or not np.isfinite(grad).all():
                return 1e30, np.zeros_like(x)
            return float(value), np.asarray(grad) @ factor

        found = scipy.optimize.minimize(
            whitened, np.zeros(len(theta)), jac=True, options={"maxiter": 200}
        )
        theta = theta + factor @ found.x
    return theta, factor


def reference(name):
    """Mean and covariance of the posterior, with their accuracy."""
    quest = problems.QUESTS[name]()
    energy = quest.make(0).energy
    if name in NECKS:
        mode = quest.near
        factor = whitening(np.asarray(jax.hessian(energy)(mode)))
    else:
        mode, factor = near_mode(energy, quest.near)
    potential = Whitened(energy, jnp.asarray(mode), jnp.asarray(factor))
    rng = np.random.default_rng(SEED)
    starts = 0.5 * rng.standard_normal((CHAINS, len(mode)))
    draws, _ = nuts_chains(potential, starts, SEED, DRAWS, WARMUP)
    ess, rhat = worst_ess(draws), worst_rhat(draws)
    flat = draws.reshape(-1, len(mode))
    mean = mode + factor @ flat.mean(axis=0)
    # The factor of a product, without the product: no digit of small scales is lost.
    centred = (flat - flat.mean(axis=0)) @ factor.T / np.sqrt(len(flat))
    lower = np.linalg.qr(centred, mode="r").T
    lower = lower * np.sign(np.diag(lower))
    return mean, lower, ess, rhat


def main():
    """Make the references asked for and merge them into the file."""
    path = Path(problems.__file__).parent / problems.REFERENCE
    for name in sys.argv[1:] or problems.QUESTS:
        begin = time.perf_counter()
        mean, lower, ess, rhat = reference(name)
        seconds = time.perf_counter() - begin
        is_fine = ess >= SMALLEST_ESS and rhat <= LARGEST_RHAT
        remark = "" if is_fine else "  NOT good enough"
        print(
            f"{name}: d {len(mean)}, ESS {ess:.0f}, R-hat {rhat:.4f}, {seconds:.0f} s"
        )
        print(f"{remark}" if remark else f"  first means {mean[:4]}", flush=True)
        table = json.loads(path.read_text()) if path.exists() else {}
        table[name] = {
            "method": f"NUTS, {CHAINS} chains of {WARMUP} + {DRAWS}",
            "ess": round(float(ess)),
            "rhat": round(float(rhat), 4),
            "mean": [float(f"{m:.12g}") for m in mean],
            "factor": [float(f"{v:.9g}") for v in lower[np.tril_indices(len(mean))]],
        }
        ordered = {key: table[key] for key in problems.QUESTS if key in table}
        partial = path.with_name(path.name + ".partial")
        partial.write_text(json.dumps(ordered) + "\n")
        partial.replace(path)


if __name__ == "__main__":
    main()

"""Compare the forms of the score-matching fit: time per point, and numerical soundness.

The printed update carries C; the symmetric one carries C too, but subtracts R'R; the
package's carries a square root of C. The Hadamard form, in NumPy as in the default
sampler, accumulates the normal equations in blocks of 16 points and leaves one Cholesky
solve for the end. All are timed in one process, on the same points.

Run: python benchmarks/online_update.py
"""

import time

import jax
import jax.numpy as jnp
import jax.scipy as jsp
import numpy as np

import vhmc
from vhmc.paper import score_matching
from vhmc.surrogate.network_fit import Nodes, solve_with

BLOCK = 16
CASES = (
    (2, 100, 100_000, 1e-4),
    (2, 100, 100_000, 1e-8),
    (10, 500, 2_000, 1e-4),
    (51, 2000, 64, 1e-6),
)
"""Dimensions, nodes, points, ridge."""


def printed(carry, jac, grad):
    """Equations update and smw of the paper as printed."""
    weights, cov = carry
    jac_cov = jac @ cov
    gain = jnp.linalg.solve(jnp.eye(grad.size) + jac_cov @ jac.T, jac_cov).T
    return weights + gain @ (grad - jac @ weights), cov - gain @ jac_cov


def symmetric(carry, jac, grad):
    """The same with C - R'R, R = chol(I + A C A')^-1 A C."""
    weights, cov = carry
    jac_cov = jac @ cov
    lower = jnp.linalg.cholesky(jnp.eye(grad.size) + jac_cov @ jac.T)
    root = jsp.linalg.solve_triangular(lower, jac_cov, lower=True)
    residual = jsp.linalg.solve_triangular(lower, grad - jac @ weights, lower=True)
    return weights + root.T @ residual, cov - root.T @ root


def rooted(carry, jac, grad):
    """The package's form."""
    return score_matching.update(carry, jac, grad)


def seconds(function, *arguments):
    """Shortest of three runs, after one that compiles."""
    jax.block_until_ready(function(*arguments))
    times = []
    for _ in range(3):
        began = time.perf_counter()
        jax.block_until_ready(function(*arguments))
        times.append(time.perf_counter() - began)
    return min(times)


def is_sound(cov):
    """Whether a covariance is finite and positive definite."""
    return bool(jnp.isfinite(cov).all()) and bool(jnp.linalg.eigvalsh(cov).min() > 0)


def compare(dim, nodes, num, ridge):
    """Print one line: microseconds per point, and whether C is still sound."""
    key_nodes, key_theta = jax.random.split(jax.random.key(0))
    guide = vhmc.paper.standard_normal(dim)
    basis = vhmc.paper.additive(key_nodes, nodes, guide)
    thetas = 2 * jax.random.normal(key_theta, (num, dim))
    grads = thetas + jnp.tanh(thetas)
    line = [f"{dim:4d} {nodes:6d} {num:7d} {ridge:8.0e}"]
    start = jnp.zeros(nodes), jnp.eye(nodes) / ridge
    starts = start, start, score_matching.init(nodes, ridge)
    for form, first in zip((printed, symmetric, rooted), starts, strict=True):

        @jax.jit
        def stream(carry, form=form):
            def absorb(carry, pair):
                return form(carry, basis.jacobian(pair[0]), pair[1]), None

            return jax.lax.scan(absorb, carry, (thetas, grads))[0]

        end = stream(first)
        cov = end.gram_inv if form is rooted else (end[1] + end[1].T) / 2
        taken = seconds(stream, first) / num * 1e6
        line.append(f"{taken:9.1f} {'sound' if is_sound(cov) else 'LOST':>5}")

    sums = Nodes(np.asarray(basis.directions), np.asarray(basis.offsets))
    x, grad = np.asarray(thetas), np.asarray(grads)

    def hadamard():
        matrix, right = np.zeros((nodes, nodes)), np.zeros(nodes)
        for first in range(0, num, BLOCK):
            block = slice(first, first + BLOCK)
            one, other = sums.normal_terms(x[block], grad[block])
            matrix += one
            right += other
        return matrix, right

    line.append(f"{seconds(hadamard) / num * 1e6:9.1f}")
    line.append(f"{seconds(solve_with, hadamard(), max(ridge, 1e-6)) * 1e6:10.0f}")
    print("  ".join(line), flush=True)


def main():
    """Print a table."""
    print("microseconds per point; soundness of C in the end; solve in microseconds")
    print(
        f"{'d':>4} {'s':>6} {'points':>7} {'ridge':>8}  {'printed':>15}  "
        f"{'symmetric':>15}  {'root':>15}  {'Hadamard':>9}  {'solve':>10}"
    )
    for case in CASES:
        compare(*case)


if __name__ == "__main__":
    main()

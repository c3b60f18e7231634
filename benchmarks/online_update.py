"""The forms of the score-matching fit: time a point, in ratios, and what survives.

The printed update carries C, the symmetric one C too but subtracts R'R, the package's a
square root of C; the Hadamard form accumulates the normal equations (blocks of 16) and
leaves a Cholesky solve for later. All are timed in one process, on the same points.

Run: python benchmarks/online_update.py
"""

import time

import jax
import jax.numpy as jnp
import jax.scipy as jsp
from vhmc.core import normal_equations

import vhmc
from vhmc.paper import score_matching

BLOCK = 16


def printed(carry, jac, grad):
    """Eq. update and smw, to the letter."""
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
    """Best of three, after compiling."""
    jax.block_until_ready(function(*arguments))
    times = []
    for _ in range(3):
        began = time.perf_counter()
        jax.block_until_ready(function(*arguments))
        times.append(time.perf_counter() - began)
    return min(times)


def is_sound(cov):
    """Finite and positive definite."""
    return bool(jnp.isfinite(cov).all()) and bool(jnp.linalg.eigvalsh(cov).min() > 0)


def compare(dim, nodes, num, ridge):
    """Print one line: microseconds a point and whether C is still sound."""
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

    @jax.jit
    def hadamard(normal, basis):  # an argument, or XLA folds W W' while compiling
        def absorb(normal, block):
            return normal_equations.accumulate(normal, basis, *block), None

        blocks = (
            x[: num // BLOCK * BLOCK].reshape(-1, BLOCK, dim) for x in (thetas, grads)
        )
        return jax.lax.scan(absorb, normal, tuple(blocks))[0]

    empty = normal_equations.init(nodes)._replace(num_points=jnp.zeros((), int))
    line.append(f"{seconds(hadamard, empty, basis) / num * 1e6:9.1f}")
    solve = jax.jit(normal_equations.solve)
    line.append(
        f"{seconds(solve, hadamard(empty, basis), max(ridge, 1e-6)) * 1e6:10.0f}"
    )
    print("  ".join(line), flush=True)


print("microseconds a point; soundness of C after the last one; solve in microseconds")
print(
    f"{'d':>4} {'s':>6} {'points':>7} {'ridge':>8}  {'printed':>15}  {'symmetric':>15}"
    f"  {'root':>15}  {'Hadamard':>9}  {'solve':>10}"
)
for case in (
    (2, 100, 100_000, 1e-4),
    (2, 100, 100_000, 1e-8),
    (10, 500, 2_000, 1e-4),
    (51, 2000, 64, 1e-6),
):
    compare(*case)

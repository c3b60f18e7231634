"""Energies of a vector, each with an operation that hides or reveals structure."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.linalg import cho_factor, cho_solve, solve_triangular
from jax.scipy.special import betainc, gammainc, gammaln, logsumexp, xlogy
from jax.scipy.stats import norm

DIM = 8
RNG = np.random.default_rng(0)
GROUPS = np.array([0, 1, 1, 3, 2, 3, 0, 1, 2, 0])
TABLE = np.where(RNG.uniform(size=(12, DIM)) < 0.25, RNG.standard_normal((12, DIM)), 0)
BAND = np.eye(DIM) + 0.4 * np.eye(DIM, k=1) + 0.4 * np.eye(DIM, k=-1)
RAGGED = np.array([[0, 1], [2, 0], [3, 4]])
DATA = RNG.standard_normal(10)


def centred(x):
    return -jnp.sum(norm.logpdf(x[2:], x[0], jnp.exp(x[1]))) + jnp.sum(x**4)


def random_walk(x):
    return jnp.sum(jnp.diff(x[1:]) ** 2) * jnp.exp(-x[0]) + jnp.sum(jnp.exp(x))


def shocks(x):
    return jnp.sum(jnp.exp(jnp.cumsum(x)[:4])) + jnp.sum(x**2)


def backwards(x):
    return jnp.sum(jnp.exp(lax.cumsum(x[:5], reverse=True))) + jnp.sum(x**2)


def scanned(x):
    def body(before, now):
        return now[0], (now[0] - 0.9 * before) ** 2 * jnp.exp(now[1])

    return jnp.sum(lax.scan(body, 0.0, (x, jnp.asarray(DATA[:DIM])))[1])


def scanned_backwards(x):
    def body(before, now):
        return now, jnp.exp(now * before)

    return jnp.sum(lax.scan(body, 0.0, x[:5], reverse=True)[1]) + x[6] * x[7]


def counted_loop(x):
    return lax.fori_loop(0, 5, lambda i, total: total + x[i] * x[i + 2] ** 2, 0.0)


def open_loop(x):
    """The number of steps depends on a parameter."""

    def body(state):
        return state[0] * 1.5, state[1] + jnp.sin(state[0] * x[2])

    return lax.while_loop(lambda s: s[0] < 3, body, (jnp.exp(x[0]), x[1]))[1] ** 2


def open_loop_counts(x):
    """Hessians vanish almost everywhere, but the number of steps couples."""
    steps = lax.while_loop(lambda k: k < x[0], lambda k: k + 1.0, 0.0)
    return steps * x[1] + jnp.sum(x**2)


def shift_register(x):
    def body(state):
        i, line = state
        return i + 1, jnp.concatenate([line[1:] * x[7], line[:1]])

    _, line = lax.while_loop(lambda s: s[0] < jnp.exp(x[6]) + 2, body, (0, x[:5]))
    return jnp.sum(line[:2] ** 2)


def branches(x):
    one, other = (lambda y: y[0] * y[1] ** 2), (lambda y: jnp.sum(y[2:4]) ** 2)
    return lax.cond(x[5] > 0, one, other, x) + jnp.sum(x**2)


def known_branch(x):
    return lax.switch(1, [lambda y: jnp.prod(y), lambda y: jnp.sum(y**2)], x)


def mixture(x):
    parts = jnp.stack([norm.logpdf(x[:4]), norm.logpdf(x[:4], 2.0, 0.5)])
    return -jnp.sum(logsumexp(parts, axis=0)) + logsumexp(x[5:])


def gathered(x):
    return jnp.sum((DATA - x[:4][GROUPS] * jnp.exp(x[6])) ** 2) + jnp.sum(x**2)


def gathered_rows(x):
    return jnp.sum(jnp.exp(x.reshape(4, 2)[GROUPS].sum(axis=1)))


def gathered_axis(x):
    rows = jnp.take_along_axis(x.reshape(2, 4), np.array([[0, 3], [1, 1]]), axis=1)
    return jnp.sum(jnp.exp(rows.sum(axis=1)))


def gathered_batch(x):
    return jnp.sum(jax.vmap(lambda row, i: row[i])(x.reshape(2, 4), np.array([3, 1])))


def gathered_outside(x):
    filled = x.at[np.array([1, 20])].get(mode="fill", fill_value=1.0)
    clipped = x.at[np.array([3, 20])].get(mode="clip")
    return jnp.prod(filled) + jnp.prod(clipped) * x[0]


def gathered_unknown(x):
    return x[jnp.argmax(x[:3])] * x[7] + jnp.sum(x**2)


def windows(x):
    sliced = lax.dynamic_slice(x, (2,), (3,)) * lax.dynamic_slice(x, (5,), (3,))
    return jnp.sum(sliced**2) + lax.dynamic_slice(x, (jnp.int32(x[0]),), (2,))[0] ** 2


def updates(x):
    y = lax.dynamic_update_slice(jnp.zeros(6), x[:2] * x[2], (3,))
    z = jnp.zeros((4, 2)).at[1:3, 0].set(x[3:5]).at[:, 1].add(x[5])
    return jnp.sum(jnp.exp(y)) + jnp.sum(z.sum(axis=1) ** 2)


def segments(x):
    sums = jax.ops.segment_sum(x, GROUPS[:DIM], 5)
    return jnp.sum(sums**2) + jnp.exp(jax.ops.segment_max(x, GROUPS[:DIM], 4)[2])


def scattered(x):
    y = x.at[np.array([0, 1])].set(x[4] * x[5])
    y = y.at[np.array([2])].multiply(x[6], unique_indices=True)
    return jnp.sum(y**2)


def scattered_unknown(x):
    return jnp.sum(jnp.zeros(3).at[jnp.argmin(x[:3])].add(x[3]) * x[5:] ** 2)


def regression(x):
    return jnp.sum(jnp.logaddexp(0.0, TABLE @ x)) + jnp.sum(x**2)


def quadratic_form(x):
    return x @ BAND @ x + jnp.sum(jnp.einsum("i,ij->j", x[:4], x.reshape(4, 2)))


def batched_products(x):
    a = x.reshape(2, 2, 2)
    return jnp.sum(jnp.exp(jnp.einsum("bij,bjk->bik", a, jnp.tril(a) + 1)))


def cholesky(x):
    kernel = jnp.exp(x[0] - (DATA[:, None] - DATA) ** 2 * jnp.exp(x[1]))
    factor = jnp.linalg.cholesky(kernel + jnp.eye(10))
    white = solve_triangular(factor, DATA - x[2], lower=True)
    return jnp.sum(white**2) + jnp.sum(jnp.log(jnp.diag(factor))) + x[3] * x[4]


def many_sides(x):
    solved = solve_triangular(BAND, x.reshape(4, 2).repeat(2, axis=0), lower=True)
    right = solve_triangular(BAND, x.reshape(4, 2).repeat(2, axis=0), trans=1)
    return jnp.sum(solved[-1] ** 2) + jnp.sum(right[0] ** 2)


def solved(x):
    fixed = jnp.linalg.solve(BAND, jnp.append(x[:3], np.zeros(5)))
    moving = cho_solve(cho_factor(jnp.diag(jnp.exp(x[4:6]))), x[6:])
    return jnp.sum(fixed**2) + jnp.sum(moving) + jnp.linalg.slogdet(BAND * x[3])[1]


@jax.custom_jvp
def softened(a, b):
    return jnp.where(b > 0, a * b, jnp.expm1(a) * b)


@softened.defjvp
def _(primals, tangents):
    (a, b), (da, db) = primals, tangents
    return softened(a, b), da * b + db * a


@jax.custom_vjp
def cubed(a):
    return jnp.sum(a) ** 3


cubed.defvjp(
    lambda a: (jnp.sum(a) ** 3, jnp.sum(a)),
    lambda total, cotangent: (cotangent * 3 * total**2 * np.ones(2),),
)


def own_derivatives(x):
    return jnp.sum(softened(x[:3], x[3:6])) + cubed(x[6:])


def checkpointed(x):
    return jax.checkpoint(lambda y: jnp.sum(jnp.sin(y[:-1] * y[1:])))(x[:4])


def special_functions(x):
    share, total = jax.nn.sigmoid(x[0] + x[1]), jnp.exp(x[2] * x[3])
    first = betainc(2.0, 3.0, share) + gammainc(2.0, total)
    return first + jnp.sum(gammaln(jnp.exp(x[4:]))) + xlogy(share, jnp.exp(x[7]))


def sorted_values(x):
    return jnp.sum(jnp.sort(x[:3]) * np.array([1.0, 2.0, 3.0]) ** 2) * x[4]


def guarded_total(x):
    """A test for finiteness must not couple everything."""
    total = jnp.sum((x[1:] - x[0]) ** 2)
    return jnp.nan_to_num(jnp.where(jnp.isfinite(total), total, jnp.inf), nan=1e9)


def guarded_region(x):
    """A boundary couples the parameters in it."""
    return jnp.where(x[0] + x[1] > 0, jnp.sum(x**2), jnp.inf)


def guarded_rank(x):
    """The same with a test of whole numbers."""
    return jnp.where(jnp.argmax(x[:3]) == 1, jnp.sum(x**2), jnp.inf)


def ragged(x):
    mask = RAGGED > 0
    return jnp.sum(jnp.where(mask, x[RAGGED] ** 2 * jnp.exp(x[5:])[:, None], 0.0))


def zero_weights(x):
    weights = np.array([1.0, 0.0, 2.0, 0.0])
    return jnp.sum(jnp.exp((x[:4] * weights) + x[4:] * (1 - (weights > 0))))


def reshaped(x):
    y = jnp.pad(x.reshape(2, 4).T[::-1], ((1, 0), (0, 2)))[:, 1:]
    y = jnp.tile(jnp.concatenate([y, y[:1]]), (2, 1))
    return jnp.sum(jnp.exp(y.sum(axis=1))) + jnp.sum(jnp.roll(x, 2)[:3] * x[:3])


def padded_inside(x):
    y = lax.pad(x, 0.0, [(-2, 1, 1)])
    return jnp.sum(jnp.exp(y[:-1] + y[1:]))


def stacked(x):
    left, right = jnp.split(x, 2)
    first, *others = jnp.unstack(jnp.stack([left, right], axis=1))
    return jnp.prod(first) + sum(jnp.exp(jnp.sum(other)) for other in others)


def convolved(x):
    return jnp.sum(jnp.convolve(x[:5], np.array([1.0, -1.0])) ** 2) + x[6] * x[7]


def decomposed(x):
    matrix = BAND[:3, :3] + jnp.diag(jnp.exp(x[:3]))
    return jnp.sum(jnp.log(jnp.linalg.eigvalsh(matrix))) + jnp.sum(x**2)


def transformed(x):
    return jnp.sum(jnp.abs(jnp.fft.rfft(x[:4])) ** 4) + jnp.sum(x**2)


def ratio(x):
    return jnp.sum((x[0] / jnp.exp(x[1:3])) + jnp.max(x[3:5]) + jnp.prod(x[5:]))


def unused(x):
    return jnp.sum(x**2) + 0.0 * len(jnp.exp(jnp.outer(x, x)))


def called_twice(x):
    """A program that is shared must not remember its first inputs."""
    product = jax.jit(lambda a, b: jnp.sum(a * b))
    return product(jnp.zeros(3), x[:3]) + product(x[:3], x[3:6])


PROGRAMS = {
    name: thing
    for name, thing in list(globals().items())
    if callable(thing)
    and getattr(thing, "__module__", "") == __name__
    and name not in {"softened", "cubed", "_"}
}

LOOSE = {
    "branches": "either branch may be taken, and the points may take one only",
    "convolved": "a convolution takes its input as a whole",
    "gathered_unknown": "any entry may be read",
    "guarded_rank": "the energy is known on one side of the boundary only",
    "guarded_region": "the energy is known on one side of the boundary only",
    "ragged": "what is computed before it is masked out counts",
    "ratio": "a largest value counts as a general function",
    "scattered_unknown": "any entry may be written",
    "shift_register": "all steps of an open loop are taken together",
    "solved": "a factor of a matrix is taken as a whole",
    "sorted_values": "any entry may come to any place",
    "windows": "any entry may be read",
}
"""Where edges too many are known, and why."""

r"""How fast random nodes approach a function as their number s grows (theorem Rahimi).

The function is $f(x) = \sum_j c_j k(x, x_j)$ with a squared-exponential kernel: an
integral over cosine nodes with bounded $\alpha / p$, so $f$ lies in $F_p$. Two sets
of weights are compared in $L_2(\mu)$, $\mu$ standard normal:

- those of the theorem's proof, $v_i = \alpha(\gamma_i) / (s \, p(\gamma_i))$, with an
  error that must fall like $s^{-1/2}$;
- the best ones (least squares on the values), which the theorem bounds from above.

Run: python benchmarks/random_features_rate.py
"""

import jax
import jax.numpy as jnp
import numpy as np

import vhmc

DIM, CENTRES, POINTS, REPEATS = 3, 20, 4000, 20
SIZES = (16, 32, 64, 128, 256, 512)

key_centres, key_signs, key_points, key_nodes = jax.random.split(jax.random.key(0), 4)
centres = jax.random.normal(key_centres, (CENTRES, DIM))
signs = jax.random.normal(key_signs, (CENTRES,))
points = jax.random.normal(key_points, (POINTS, DIM))
guide = vhmc.paper.standard_normal(DIM)
kernel = vhmc.paper.radial_at(centres)
exact = jax.vmap(kernel.features)(points) @ signs


def errors(key, size):
    """Root mean squared errors of both sets of weights."""
    basis = vhmc.paper.fourier(key, size, guide)
    features = jax.vmap(basis.features)(points)
    proof = 2 / size * (jax.vmap(basis.features)(centres).T @ signs)
    best = jnp.linalg.lstsq(features, exact)[0]
    return [jnp.sqrt(jnp.mean((features @ v - exact) ** 2)) for v in (proof, best)]


table = []
print(f"{'s':>5} {'proof':>10} {'best':>10}   root mean squared error, {REPEATS} draws")
for size in SIZES:
    keys = jax.random.split(jax.random.fold_in(key_nodes, size), REPEATS)
    draws = np.array([errors(key, size) for key in keys])
    table.append(np.sqrt((draws**2).mean(axis=0)))
    print(f"{size:5d} {table[-1][0]:10.5f} {table[-1][1]:10.5f}")
slopes = np.polyfit(np.log(SIZES), np.log(table), 1)[0]
print(f"slope {slopes[0]:9.3f} {slopes[1]:10.3f}   of log error against log s")

"""Varying intercepts and slopes with an unknown correlation."""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

GROUPS, ROWS = 8, 6
_RNG = np.random.default_rng(0)
GROUP = np.repeat(np.arange(GROUPS), ROWS)
X = _RNG.standard_normal(len(GROUP))
_EFFECTS = _RNG.standard_normal((GROUPS, 2)) @ np.array([[0.8, 0.3], [0.0, 0.5]])
Y = 1 + _EFFECTS[GROUP, 0] + (0.5 + _EFFECTS[GROUP, 1]) * X
Y = Y + 0.7 * _RNG.standard_normal(len(X))


def _hyper():
    beta = numpyro.sample("beta", dist.Normal(0, 2).expand([2]))
    spread = numpyro.sample("spread", dist.HalfNormal(1).expand([2]))
    factor = numpyro.sample("factor", dist.LKJCholesky(2, 2.0))
    noise = numpyro.sample("noise", dist.HalfNormal(1))
    return beta, spread[:, None] * factor, noise


def _data(line, noise):
    mean = line[GROUP, 0] + line[GROUP, 1] * X
    numpyro.sample("y", dist.Normal(mean, noise), obs=Y)


def noncentred():
    beta, root, noise = _hyper()
    with numpyro.plate("groups", GROUPS):
        z = numpyro.sample("z", dist.Normal(0, 1).expand([2]).to_event(1))
    _data(beta + jnp.matmul(z, root.T), noise)

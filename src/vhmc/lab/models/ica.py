r"""Independent components: $p(x \mid W) = |\det W| \prod_i p(w_i^\top x)$.

The paper prints the source density $[4 \cosh(y / 2)]^{-1}$, which integrates to
$\pi / 2$; we take $[4 \cosh^2(y / 2)]^{-1}$, the logistic density.
"""

import jax.numpy as jnp
import numpy as np

from vhmc._types import Scalar, Vector
from vhmc.lab.models.rows import RowModel, Rows, normal_prior
from vhmc.numerics.bases import softplus


def ica(x: np.ndarray) -> RowModel:
    """The posterior of the unmixing matrix, row by row, starting at the identity."""
    start = np.eye(x.shape[1]).ravel()
    return RowModel(normal_prior, log_likelihood, (x,), start)


def log_likelihood(theta: Vector, rows: Rows) -> Scalar:
    """Sum over rows."""
    (x,) = rows
    dim = x.shape[1]
    matrix = theta.reshape(dim, dim)
    sources = x @ matrix.T
    # Minus log(4 cosh^2(y / 2)) = y - 2 log(1 + e^y), whose slope is one logistic.
    log_sources = jnp.sum(sources - 2 * softplus(sources))
    return len(x) * jnp.linalg.slogdet(matrix)[1] + log_sources

r"""The emulator of a forward model's outputs: kernel regression, group by group.

Outputs are divided into groups of equal size that depend on about the same parameters.
With $w_k$ the weights of a group, $p_k = w_k (\theta_k - \mu_k) / s_k$ and $c_i$ its
centres, an output of the group is

$$\hat F(\theta) = \beta + b \cdot p + \sum_i a_i e^{-|p - c_i|^2 / (2 \ell^2)}.$$

One kernel for all outputs would need about twice the points: a measurement depends on a
few of many parameters.

The same kernel $k$ gives the variance that is left to a Gaussian process,
$\kappa (k(p, p) - k_c^\top Q k_c)$ with $k_c$ the kernel at some of the centres. Summed
over the outputs it is the doubt: half of it is what the expected energy has beyond that
of $\hat F$, and it keeps chains from where the outputs are merely unknown.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from vhmc._types import Shared, Vector

WIDTH = 1.4
r"""Length $\ell$ of the kernel, where the weights of a group have unit length."""
LINEAR_SHARE = 0.3
"""Prior variance of the linear part over that of the kernel's."""


class Emulator(eqx.Module):
    r"""Outputs of a model less the data, in standard deviations, by group.

    center, scale: $\mu$ and $s$.
    weights: $w$ of each group, of shape (group, dim).
    centres: $c$, of shape (group, centre, dim).
    kernel: $a$, of shape (group, centre, output).
    linear: $b$, of shape (group, dim, output).
    constant: $\beta$, of shape (group, output).
    level: $\kappa$ of each group, times its number of outputs.
    known: $Q$, of shape (group, centre, centre), for the first of the centres.
    """

    center: Shared
    scale: Shared
    weights: Shared
    centres: Shared
    kernel: Shared
    linear: Shared
    constant: Shared
    level: Shared
    known: Shared

    def __call__(self, theta: Vector) -> tuple[Shared, Shared]:
        """All outputs at one point, by group, and the doubt, for JAX to trace."""
        inputs = self.weights * ((theta - self.center) / self.scale)
        gaps = jnp.sum(self.centres**2, axis=2) + jnp.sum(inputs**2, axis=1)[:, None]
        products = jnp.einsum("gcd,gd->gc", self.centres, inputs)
        bumps = jnp.exp(-0.5 * (gaps - 2 * products) / WIDTH**2)
        outputs = (
            self.constant
            + jnp.einsum("gd,gdo->go", inputs, self.linear)
            + jnp.einsum("gc,gco->go", bumps, self.kernel)
        )
        some = slice(self.known.shape[1])
        near = 1 + LINEAR_SHARE * products[:, some] + bumps[:, some]
        prior = 2 + LINEAR_SHARE * jnp.sum(inputs**2, axis=1)
        explained = jnp.einsum("gc,gcb,gb->g", near, self.known, near)
        return outputs, jnp.sum(self.level * (prior - explained))

    def outputs(self, thetas: np.ndarray) -> np.ndarray:
        """Outputs on the host, of shape (point, group, output)."""
        standard = (thetas - self.center) / self.scale
        parts = []
        for group in range(len(self.weights)):
            inputs = standard * self.weights[group]
            bumps = gaussians(inputs, self.centres[group])
            parts.append(
                self.constant[group]
                + inputs @ self.linear[group]
                + bumps @ self.kernel[group]
            )
        return np.stack(parts, axis=1)

    def pull_back(self, thetas: np.ndarray, cotangents: np.ndarray) -> np.ndarray:
        """Vector-Jacobian products on the host, one row a point.

        cotangents: of the shape of `outputs`.
        """
        standard = (thetas - self.center) / self.scale
        total = np.zeros_like(thetas)
        for group, weights in enumerate(self.weights):
            inputs, centres = standard * weights, self.centres[group]
            along = cotangents[:, group]
            bumps = gaussians(inputs, centres) * (along @ self.kernel[group].T)
            slope = (bumps @ centres - bumps.sum(axis=1)[:, None] * inputs) / WIDTH**2
            total += (slope + along @ self.linear[group].T) * weights
        return total / self.scale

    def doubts(self, thetas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The doubt on the host, one number a point, and its gradients."""
        standard = (thetas - self.center) / self.scale
        total, grads = np.zeros(len(thetas)), np.zeros_like(thetas)
        for group, weights in enumerate(self.weights):
            known, inputs = self.known[group], standard * weights
            centres = self.centres[group, : len(known)]
            bumps = gaussians(inputs, centres)
            along = process_kernel(inputs, centres) @ known
            prior = 2 + LINEAR_SHARE * np.sum(inputs**2, axis=1)
            explained = np.sum(along * process_kernel(inputs, centres), axis=1)
            total += self.level[group] * (prior - explained)
            bumps = bumps * along
            slope = (bumps @ centres - bumps.sum(axis=1)[:, None] * inputs) / WIDTH**2
            slope = LINEAR_SHARE * (inputs - along @ centres) - slope
            grads += 2 * self.level[group] * slope * weights
        return total, grads / self.scale


def process_kernel(inputs: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Kernel of the whole emulator: constant, linear part and bumps."""
    return 1 + LINEAR_SHARE * inputs @ centres.T + gaussians(inputs, centres)


def gaussians(inputs: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Kernel of every input, one a row, with every centre."""
    gaps = np.sum(inputs**2, axis=1)[:, None] + np.sum(centres**2, axis=1)
    gaps -= 2 * inputs @ centres.T
    return np.exp(-0.5 * np.maximum(gaps, 0.0) / WIDTH**2)

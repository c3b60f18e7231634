r"""The residual of a target whose outputs are emulated in place of its energy.

$$z(x) = p(T(x)) + \tfrac12 |\hat F(T(x))|^2 - \tfrac12 |x|^2,$$

with $p$ the energy of the prior, $T$ an affine map and $\hat F$ the emulator of the
outputs less the data, in standard deviations. The surrogate's energy is at least that
of the prior, so that it is normalisable if the prior is proper.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from vhmc._types import Potential, Scalar, Vector
from vhmc.surrogate.emulator import Emulator
from vhmc.surrogate.residual import AbstractResidual
from vhmc.transport.affine import Affine


class ObservableResidual(AbstractResidual):
    """Prior and emulated misfit, less the standard normal.

    emulator: of the outputs.
    layer: the transport map.
    prior, prior_rows: as in `Observable`.
    """

    emulator: Emulator
    layer: Affine
    prior: Potential = eqx.field(static=True)
    prior_rows: Callable[..., Any] = eqx.field(static=True)

    def __call__(self, x: Vector) -> Scalar:
        theta = self.layer.mean + self.layer.factor @ x
        misfit = self.emulator(theta)
        energy = self.prior(theta) + 0.5 * jnp.sum(misfit**2)
        return energy - 0.5 * jnp.sum(x**2)

    def energies(self, x: np.ndarray) -> np.ndarray:
        theta = self.layer.forward(x)
        misfit = np.sum(self.emulator.outputs(theta) ** 2, axis=(1, 2))
        return self.prior_rows(theta)[0] + 0.5 * misfit - 0.5 * np.sum(x**2, axis=1)

    def grads(self, x: np.ndarray) -> np.ndarray:
        theta = self.layer.forward(x)
        misfit = self.emulator.outputs(theta)
        grad = self.prior_rows(theta)[1] + self.emulator.pull_back(theta, misfit)
        return self.layer.pull_back(x, grad) - x

    def on_device(self) -> "ObservableResidual":
        return jax.device_put(self)

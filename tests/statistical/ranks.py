"""Simulation-based calibration: ranks of true parameters among draws.

A parameter from the prior, data given it, draws of its posterior: the rank of the
parameter among the draws is uniform if and only if the draws are right (Cook et al.,
2006; Talts et al., 2018).
"""

import math

import jax
import numpy as np
import scipy.stats

import vhmc
from tests.statistical.models import Model

BINS = 10
FALSE_ALARM = 1e-4
"""Chance that a right sampler fails one comparison; there is one a parameter."""


def rank(draws: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Draws below the truth, by parameter, among `BINS - 1` independent ones."""
    assert len(draws) == BINS - 1
    return np.sum(draws < truth, axis=0)


def p_values(ranks: np.ndarray) -> np.ndarray:
    """Chance of ranks as uneven as these, by parameter; one row a replicate."""
    counts = [np.bincount(column, minlength=BINS) for column in ranks.T]
    return np.array([scipy.stats.chisquare(count).pvalue for count in counts])


class Replicates:
    """Data sets of a model with the parameters that they are from.

    The log density is compiled once for all of them, with the data as an argument.
    """

    def __init__(self, model: Model, seed: int):
        self._model, self._seed = model, seed
        self._shapes = model.parameters.shapes  # now: not while something is traced
        self._joint = jax.jit(model.joint)
        self._energy_and_grad = jax.jit(jax.value_and_grad(model.energy))
        self._value_and_grad = jax.jit(jax.value_and_grad(self._log_density))

    def _log_density(self, flat, data):
        values, begin = {}, 0
        for name, shape in self._shapes.items():
            end = begin + math.prod(shape)
            values[name] = flat[begin:end].reshape(shape)
            begin = end
        return self._model.log_density(values, data)

    def __call__(self, number: int) -> tuple[np.ndarray, vhmc.Target]:
        """True vector and posterior of a replicate, the model a black box."""
        truth, data = self._drawn(number)
        model = self._model
        target = vhmc.from_callable(
            lambda flat: self._value_and_grad(flat, data),
            model.dim,
            np.concatenate([np.ravel(value) for value in model.init.values()]),
            names=self._shapes,
            constraints=model.constraints,
        )
        return truth, target

    def unconstrained(self, number: int) -> tuple[np.ndarray, vhmc.Target]:
        """The same on the unconstrained space: nothing is compiled again."""
        truth, data = self._drawn(number)

        def value_and_grad(theta):
            energy, grad = self._energy_and_grad(theta, data)
            return -energy, -grad

        return truth, vhmc.from_callable(value_and_grad, self._model.dim)

    def _drawn(self, number):
        key = jax.random.fold_in(jax.random.key(self._seed), number)
        truth, data = self._joint(key)
        return np.asarray(truth), data

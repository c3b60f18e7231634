"""A front end built from the package's parts, as CONTRIBUTING.md describes.

The toy library knows one model: positive parameters whose logarithms are jointly
normal. Posterior and gradient are known in closed form.
"""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import vhmc
from vhmc.evaluation.space import Space
from vhmc.models.caller import Caller
from vhmc.models.host import HostTarget
from vhmc.models.traced import TracedTarget

NAMES = "rate", "scale"
MEAN = np.array([0.5, -1.0])
PRECISION = np.array([[4.0, 1.0], [1.0, 2.0]])


class LogNormalSpace(Space):
    """Positive scalars, each the exponential of one unconstrained entry."""

    def __init__(self, names):
        self.names = list(names)
        self.shapes = dict.fromkeys(self.names, ())
        self.unconstrained_sizes = [1] * len(self.names)
        self.start = np.zeros(len(self.names))
        self.dims, self.coords = {}, {}

    def constrain(self, thetas):
        def rows_to_values(rows):
            return dict(zip(self.names, np.exp(rows).T, strict=True))

        return self.map_rows(rows_to_values, thetas)


def from_lognormal(names, mean, precision):
    """The front end: NumPy computes the density of the unconstrained vector."""

    def value_and_grad(theta):
        gap = theta - mean
        return -0.5 * gap @ precision @ gap, -precision @ gap

    caller = Caller(value_and_grad)
    return HostTarget(
        caller, LogNormalSpace(names), "a log-normal", is_serial=caller.is_serial
    )


def traced_lognormal(names, mean, precision):
    """The same for a library whose densities JAX can trace."""

    def energy(theta):
        gap = theta - mean
        return 0.5 * gap @ precision @ gap

    return TracedTarget(energy, LogNormalSpace(names))


@pytest.mark.parametrize("front_end", [from_lognormal, traced_lognormal])
def test_a_space_and_a_density_are_all_it_takes(front_end):
    target = front_end(NAMES, MEAN, PRECISION)
    thetas = np.random.default_rng(0).normal(size=(5, 2))
    answers = target.evaluate(thetas)
    gaps = thetas - MEAN
    energies = 0.5 * np.einsum("ni,ij,nj->n", gaps, PRECISION, gaps)
    np.testing.assert_allclose(answers.energy, energies, rtol=1e-12)
    np.testing.assert_allclose(answers.grad, gaps @ PRECISION, rtol=1e-12)
    assert target.num_evaluations == 5
    np.testing.assert_allclose(target.hessian(MEAN), PRECISION, rtol=1e-7)
    assert target.num_evaluations == 5 + target.hessian_price
    slope = jax.grad(target.potential)(jnp.asarray(thetas[0]))
    np.testing.assert_allclose(slope, gaps[0] @ PRECISION, rtol=1e-12)
    assert target.parameters.label(1) == "scale"


def test_leading_axes_are_kept():
    thetas = np.random.default_rng(1).normal(size=(2, 3, 2))
    values = LogNormalSpace(NAMES).constrain(thetas)
    np.testing.assert_allclose(values["rate"], np.exp(thetas[..., 0]))
    np.testing.assert_allclose(values["scale"], np.exp(thetas[..., 1]))


def test_it_can_be_sampled():
    target = from_lognormal(NAMES, MEAN, PRECISION)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        posterior = vhmc.sample(target, 100, draws=100, chains=4, num_features=20)
    assert posterior.num_evaluations == target.num_evaluations <= 100
    assert list(posterior.draws) == list(NAMES)
    logs = np.stack([np.log(posterior.draws[name]) for name in NAMES], axis=-1)
    assert logs.shape == (4, 100, 2)
    sds = np.sqrt(np.diag(np.linalg.inv(PRECISION)))
    # 400 draws: an effective size of 100 would make this five standard errors.
    assert (np.abs(logs.mean(axis=(0, 1)) - MEAN) < 0.5 * sds).all()

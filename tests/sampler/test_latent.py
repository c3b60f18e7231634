"""The look around: energies far out that are believed, and those that are not."""

import jax
import jax.numpy as jnp
import numpy as np

import vhmc
from vhmc.evaluation.evaluator import Evaluator
from vhmc.sampler.modes.latent import Latent
from vhmc.transport.affine import Affine
from vhmc.transport.transport_map import TransportMap

MAP = TransportMap((Affine(np.zeros(2), np.eye(2)),))


def lost_beyond(theta):
    """A normal, whose digits cancel beyond 20 sds: the gradient knows nothing of it."""
    noise = 1e6 * (jnp.sin(1e7 * theta[0]) - 1)
    is_far = jnp.sum(theta**2) > 400
    return -0.5 * jnp.sum(theta**2) - jax.lax.stop_gradient(is_far * noise)


def with_a_well(theta):
    """Two normals; the far one is narrow, and its density is larger by 50 nats."""
    far = -0.5 * jnp.sum((theta - 30.0) ** 2) / 0.1**2 + 50
    return jnp.logaddexp(-0.5 * jnp.sum(theta**2), far)


def looked(log_density, x):
    evaluator = Evaluator(vhmc.from_jax(log_density, np.zeros(2)), 100)
    answer = Latent(evaluator, MAP, []).believable(np.asarray(x), lowest=0.0)
    return answer, evaluator


def test_energies_that_are_noise_of_rounding_are_not_believed():
    x = [[1.0, 0.0], [25.0, 3.0], [40.0, -8.0]]
    answer, evaluator = looked(lost_beyond, x)
    assert answer.energy[0] == 0.5 and np.isinf(answer.energy[1:]).all()
    log = evaluator.log
    assert len(log.energy) == 5  # a point beside each that is suspected
    np.testing.assert_array_equal(log.is_finite, [True] + 4 * [False])


def test_a_deep_well_is_believed():
    x = [[1.0, 0.0], [30.05, 29.93], [25.0, 3.0]]
    answer, evaluator = looked(with_a_well, x)
    assert answer.energy[1] < -45
    assert evaluator.log.is_finite.all()
    assert evaluator.spent == 4

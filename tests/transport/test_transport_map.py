"""Transport maps: inverses, gradients, determinants, and their fit."""

import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize

from vhmc.transport import coupling_fit
from vhmc.transport.affine import Affine
from vhmc.transport.coupling import LINEAR_BEYOND, Coupling
from vhmc.transport.influence import robust_score_errors
from vhmc.transport.layer import AbstractLayer
from vhmc.transport.map_fit import FAMILIES, EvaluatedPoints, fit_map, weighted_error
from vhmc.transport.transport_map import TransportMap

DIM = 4


def random_map(rng):
    def affine():
        return Affine(rng.standard_normal(DIM), np.linalg.cholesky(np.eye(DIM) + 0.3))

    def coupling():
        axes = np.linalg.qr(rng.standard_normal((DIM, DIM)))[0]
        rate, shift = 0.4 * rng.standard_normal((2, DIM - 1))
        return Coupling(axes, rate, shift)

    return TransportMap((affine(), coupling(), affine(), coupling(), affine()))


def test_maps_invert_also_far_out():
    rng = np.random.default_rng(0)
    transport = TransportMap(random_map(rng).layers[:2])
    x = 3 * LINEAR_BEYOND * rng.standard_normal((20, DIM))
    back = transport.inverse(transport.forward(x))
    np.testing.assert_allclose(back, x, rtol=1e-6, atol=1e-6)


def test_determinants_and_gradients_are_those_of_automatic_differentiation():
    rng = np.random.default_rng(1)
    transport = random_map(rng)
    theta = transport.forward(rng.standard_normal((5, DIM)))

    def energy(theta):
        return jnp.sum(jnp.sin(theta)) + theta[0] * theta[1]

    def energy_in_x(theta):
        return energy(theta) - transport.inverse_and_log_det(theta[None])[1][0]

    grads = np.asarray(jax.vmap(jax.grad(energy))(theta))
    x, scores = transport.pull_back(theta, grads)
    differences = rng.standard_normal((5, DIM))
    pushed = transport.push_forward(x, differences)
    for row in range(5):
        jacobian = np.asarray(
            jax.jacfwd(lambda point: transport.inverse(point[None])[0])(theta[row])
        )
        log_det = transport.inverse_and_log_det(theta[[row]])[1][0]
        np.testing.assert_allclose(-np.linalg.slogdet(jacobian)[1], log_det)
        by_theta = np.asarray(jax.grad(energy_in_x)(theta[row]))
        np.testing.assert_allclose(jacobian.T @ scores[row], by_theta, rtol=1e-8)
        np.testing.assert_allclose(
            jacobian.T @ differences[row], pushed[row], rtol=1e-8
        )


def test_affine_layers_in_a_row_become_one():
    rng = np.random.default_rng(2)
    one, other = random_map(rng).layers[0], random_map(rng).layers[0]
    transport = TransportMap((one,)).then(other)
    assert len(transport.layers) == 1
    theta = rng.standard_normal((3, DIM))
    both = other.inverse(one.inverse(theta))
    np.testing.assert_allclose(transport.inverse(theta), both)


def test_the_loss_has_the_gradient_it_says():
    rng = np.random.default_rng(3)
    x, grad = 2 * rng.standard_normal((2, 40, DIM))
    unknowns = 0.3 * rng.standard_normal(2 * (DIM - 1))

    def loss(unknowns):
        return coupling_fit.loss(x, grad, *np.split(unknowns, 2))

    error = scipy.optimize.check_grad(
        lambda point: loss(point)[0], lambda point: loss(point)[1], unknowns
    )
    assert error < 1e-5 * np.linalg.norm(loss(unknowns)[1])


def test_the_linear_map_is_the_derivative_of_a_coupling():
    """And its transpose is its transpose."""
    rng = np.random.default_rng(4)
    x, grad = rng.standard_normal((2, 30, DIM))
    axes = np.linalg.qr(rng.standard_normal((DIM, DIM)))[0]
    linear = coupling_fit.Linear(coupling_fit.Scores(x, grad, np.ones(30)), axes)
    rates = np.diag(rng.standard_normal(DIM - 1))
    shift = rng.standard_normal(DIM - 1)
    size = 1e-6
    layer = Coupling(axes, size * np.diag(rates), size * shift)
    moved, scores = TransportMap((layer,)).pull_back(x, grad)
    change = ((scores - moved) - (grad - x)) @ axes / size
    half = rates - 0.5 * np.diag(np.diag(rates))
    unknowns = np.append(half[np.triu_indices(DIM - 1)], shift)
    np.testing.assert_allclose(
        linear.errors(unknowns).reshape(30, DIM), change, atol=1e-4
    )
    other = rng.standard_normal(30 * DIM)
    forward, backward = linear.errors(unknowns) @ other, linear.transposed(other)
    np.testing.assert_allclose(forward, unknowns @ backward)


def errors_before_and_after(log_density, thetas, start):
    grads = np.asarray(jax.vmap(jax.grad(lambda theta: -log_density(theta)))(thetas))
    energy = -np.asarray(jax.vmap(log_density)(thetas))
    points = EvaluatedPoints(thetas, energy, grads)
    fitted = fit_map(np.random.default_rng(0), points, start)
    weights = np.ones(len(thetas))
    maps = TransportMap((start,)), fitted
    return [weighted_error(one, points, weights) for one in maps]


def test_a_turned_banana_is_straightened():
    rng = np.random.default_rng(5)
    turn = np.linalg.qr(rng.standard_normal((3, 3)))[0]

    def log_density(theta):
        y = turn.T @ theta
        return -0.5 * (y[0] ** 2 + (y[1] - 2 * (y[0] ** 2 - 1)) ** 2 + y[2] ** 2)

    white = rng.standard_normal((300, 3))
    white[:, 1] += 2 * (white[:, 0] ** 2 - 1)
    spread = np.diag([1.0, 3.0, 1.0])
    start = Affine(np.zeros(3), np.linalg.cholesky(turn @ spread**2 @ turn.T))
    before, after = errors_before_and_after(log_density, white @ turn.T, start)
    assert after < 0.1 * before


def test_a_funnel_is_straightened():
    def log_density(theta):
        scale = jnp.exp(theta[0])
        inside = jnp.sum((theta[1:] / scale) ** 2)
        return -0.5 * (theta[0] ** 2 + inside) - 5 * theta[0]

    thetas = np.random.default_rng(6).standard_normal((300, 6))
    thetas[:, 1:] *= np.exp(thetas[:, :1])
    start = Affine(np.zeros(6), np.eye(6))
    before, after = errors_before_and_after(log_density, thetas, start)
    assert after < 0.1 * before


def test_a_gaussian_is_left_straight():
    """Curved layers must pay on points held out: noise is no reason for one."""
    rng = np.random.default_rng(7)
    thetas = rng.standard_normal((200, 5))
    points = EvaluatedPoints(thetas, 0.5 * np.sum(thetas**2, axis=1), thetas)
    transport = fit_map(rng, points, Affine(np.zeros(5), np.eye(5)))
    assert len(transport.layers) == 1


class Cubic(AbstractLayer):
    """A new family of layers: one coordinate shifts another by its cube."""

    rate: np.ndarray

    def forward(self, x):
        return x + self._shift(x)

    def inverse(self, theta):
        return theta - self._shift(theta)

    def _shift(self, x):
        return (self.rate * x[:, 0] ** 3)[:, None] * np.eye(x.shape[1])[1]

    def pull_back(self, x, grad):
        slope = 3 * self.rate * x[:, 0] ** 2
        return grad + (slope * grad[:, 1])[:, None] * np.eye(x.shape[1])[0]

    def push_forward(self, x, grad):
        slope = 3 * self.rate * x[:, 0] ** 2
        return grad - (slope * grad[:, 1])[:, None] * np.eye(x.shape[1])[0]

    def log_det(self, x):
        return np.zeros(len(x))

    def log_det_grad(self, x):
        return np.zeros_like(x)

    @property
    def linear_part(self):
        return np.eye(2)


def fit_cubic(x, grad, directions):
    """Rate by a grid: least score error."""

    def error(rate):
        return np.mean(
            robust_score_errors(*TransportMap((Cubic(rate),)).pull_back(x, grad))
        )

    return Cubic(min(np.linspace(-1, 1, 81), key=error))


def test_a_new_family_of_layers_competes_on_held_out_points():
    """The worked example of CONTRIBUTING: the family that fits is chosen."""
    rng = np.random.default_rng(8)

    def log_density(theta):
        return -0.5 * (theta[0] ** 2 + (theta[1] - 0.5 * theta[0] ** 3) ** 2)

    thetas = rng.standard_normal((400, 2))
    thetas[:, 1] += 0.5 * thetas[:, 0] ** 3
    energy, grad = jax.vmap(jax.value_and_grad(lambda t: -log_density(t)))(thetas)
    points = EvaluatedPoints(thetas, np.asarray(energy), np.asarray(grad))
    start = Affine(np.zeros(2), np.eye(2))
    families = (*FAMILIES, fit_cubic)
    usual = fit_map(np.random.default_rng(0), points, start)
    extended = fit_map(np.random.default_rng(0), points, start, families)
    assert any(isinstance(layer, Cubic) for layer in extended.layers)
    weights = np.ones(len(thetas))
    errors = [weighted_error(one, points, weights) for one in (usual, extended)]
    assert errors[1] < 0.5 * errors[0]

"""Charts of frames and bends: maps, gradients, volumes, and their fit."""

import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize

from vhmc.transport import coupling_fit as bend_fit
from vhmc.transport.affine import Frame
from vhmc.transport.coupling import FAR, Bend
from vhmc.transport.map_fit import Points, straighten, weighted_error
from vhmc.transport.transport_map import Chart

DIM = 4


def random_chart(rng):
    def frame():
        return Frame(rng.standard_normal(DIM), np.linalg.cholesky(np.eye(DIM) + 0.3))

    def bend():
        axes = np.linalg.qr(rng.standard_normal((DIM, DIM)))[0]
        rate, shift = 0.4 * rng.standard_normal((2, DIM - 1))
        return Bend(axes, rate, shift)

    return Chart((frame(), bend(), frame(), bend(), frame()))


def test_charts_invert_also_far_out():
    rng = np.random.default_rng(0)
    chart = Chart(random_chart(rng).layers[:2])
    x = 3 * FAR * rng.standard_normal((20, DIM))
    np.testing.assert_allclose(chart.to_x(chart.to_theta(x)), x, rtol=1e-6, atol=1e-6)


def test_volumes_and_gradients_are_those_of_automatic_differentiation():
    rng = np.random.default_rng(1)
    chart = random_chart(rng)
    theta = chart.to_theta(rng.standard_normal((5, DIM)))

    def energy(theta):
        return jnp.sum(jnp.sin(theta)) + theta[0] * theta[1]

    def energy_in_x(theta):
        return energy(theta) - chart.locate(theta[None])[1][0]

    grads = np.asarray(jax.vmap(jax.grad(energy))(theta))
    x, scores = chart.scores(theta, grads)
    differences = rng.standard_normal((5, DIM))
    brought_back = chart.grad_to_theta(x, differences)
    for row in range(5):
        jacobian = np.asarray(
            jax.jacfwd(lambda point: chart.to_x(point[None])[0])(theta[row])
        )
        log_volume = chart.locate(theta[[row]])[1][0]
        np.testing.assert_allclose(-np.linalg.slogdet(jacobian)[1], log_volume)
        by_theta = np.asarray(jax.grad(energy_in_x)(theta[row]))
        np.testing.assert_allclose(jacobian.T @ scores[row], by_theta, rtol=1e-8)
        np.testing.assert_allclose(
            jacobian.T @ differences[row], brought_back[row], rtol=1e-8
        )


def test_frames_in_a_row_become_one():
    rng = np.random.default_rng(2)
    one, other = random_chart(rng).layers[0], random_chart(rng).layers[0]
    chart = Chart((one,)).then(other)
    assert len(chart.layers) == 1
    theta = rng.standard_normal((3, DIM))
    np.testing.assert_allclose(chart.to_x(theta), other.to_x(one.to_x(theta)))


def test_the_loss_has_the_gradient_it_says():
    rng = np.random.default_rng(3)
    x, grad = 2 * rng.standard_normal((2, 40, DIM))
    unknowns = 0.3 * rng.standard_normal(2 * (DIM - 1))

    def loss(unknowns):
        return bend_fit.loss(x, grad, *np.split(unknowns, 2))

    error = scipy.optimize.check_grad(
        lambda point: loss(point)[0], lambda point: loss(point)[1], unknowns
    )
    assert error < 1e-5 * np.linalg.norm(loss(unknowns)[1])


def test_the_linear_map_is_the_derivative_of_a_bend():
    """And its transpose is its transpose."""
    rng = np.random.default_rng(4)
    x, grad = rng.standard_normal((2, 30, DIM))
    axes = np.linalg.qr(rng.standard_normal((DIM, DIM)))[0]
    linear = bend_fit.Linear(bend_fit.Scores(x, grad, np.ones(30)), axes)
    rates = np.diag(rng.standard_normal(DIM - 1))
    shift = rng.standard_normal(DIM - 1)
    size = 1e-6
    bend = Bend(axes, size * np.diag(rates), size * shift)
    moved, scores = Chart((bend,)).scores(x, grad)
    change = ((scores - moved) - (grad - x)) @ axes / size
    half = rates - 0.5 * np.diag(np.diag(rates))
    unknowns = np.append(half[np.triu_indices(DIM - 1)], shift)
    np.testing.assert_allclose(
        linear.errors(unknowns).reshape(30, DIM), change, atol=1e-4
    )
    other = rng.standard_normal(30 * DIM)
    forward, backward = linear.errors(unknowns) @ other, linear.transposed(other)
    np.testing.assert_allclose(forward, unknowns @ backward)


def straightened_error(log_density, thetas, frame):
    grads = np.asarray(jax.vmap(jax.grad(lambda theta: -log_density(theta)))(thetas))
    energy = -np.asarray(jax.vmap(log_density)(thetas))
    points = Points(thetas, energy, grads)
    chart = straighten(np.random.default_rng(0), points, frame)
    flat = Chart((frame,))
    share = np.ones(len(thetas))
    return [weighted_error(one, points, share) for one in (flat, chart)]


def test_a_turned_banana_is_straightened():
    rng = np.random.default_rng(5)
    turn = np.linalg.qr(rng.standard_normal((3, 3)))[0]

    def log_density(theta):
        y = turn.T @ theta
        return -0.5 * (y[0] ** 2 + (y[1] - 2 * (y[0] ** 2 - 1)) ** 2 + y[2] ** 2)

    white = rng.standard_normal((300, 3))
    white[:, 1] += 2 * (white[:, 0] ** 2 - 1)
    spread = np.diag([1.0, 3.0, 1.0])
    frame = Frame(np.zeros(3), np.linalg.cholesky(turn @ spread**2 @ turn.T))
    before, after = straightened_error(log_density, white @ turn.T, frame)
    assert after < 0.1 * before


def test_a_funnel_is_straightened():
    def log_density(theta):
        scale = jnp.exp(theta[0])
        inside = jnp.sum((theta[1:] / scale) ** 2)
        return -0.5 * (theta[0] ** 2 + inside) - 5 * theta[0]

    thetas = np.random.default_rng(6).standard_normal((300, 6))
    thetas[:, 1:] *= np.exp(thetas[:, :1])
    frame = Frame(np.zeros(6), np.eye(6))
    before, after = straightened_error(log_density, thetas, frame)
    assert after < 0.1 * before


def test_a_gaussian_is_left_straight():
    """Bends must pay on points held out: noise is no reason for one."""
    rng = np.random.default_rng(7)
    thetas = rng.standard_normal((200, 5))
    points = Points(thetas, 0.5 * np.sum(thetas**2, axis=1), thetas)
    chart = straighten(rng, points, Frame(np.zeros(5), np.eye(5)))
    assert len(chart.layers) == 1

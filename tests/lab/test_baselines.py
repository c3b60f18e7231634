"""The methods we compare with, each on something whose answer is known."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import vhmc
from tests.chance import LIMIT, standard_errors
from vhmc.lab import baselines
from vhmc.lab.baselines.sgld import draw_batches
from vhmc.lab.models.rows import ica_likelihood, probit, probit_likelihood, simulate

PRIOR = 100.0


def linear_rows(seed=0, num_rows=400):
    """Linear regression with unit noise: the posterior is a known Gaussian."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((num_rows, 3)) @ np.array(
        [[1.0, 0.5, 0.0], [0.0, 1.0, 0.3], [0.0, 0.0, 0.7]]
    )
    y = x @ np.array([1.0, -2.0, 0.5]) + rng.standard_normal(num_rows)
    precision = x.T @ x + np.eye(3) / PRIOR
    return (x, y), np.linalg.solve(precision, x.T @ y), np.linalg.inv(precision)


def log_prior(theta):
    return -0.5 * jnp.sum(theta**2) / PRIOR


def log_likelihood(theta, rows):
    x, y = rows
    return -0.5 * jnp.sum((y - x @ theta) ** 2)


def test_batches_take_each_row_once_an_epoch():
    batches = draw_batches(np.random.default_rng(0), 103, 10, 25)
    assert batches.shape == (25, 10)
    for epoch in (batches[:10], batches[10:20]):
        assert len(np.unique(epoch)) == 100
    assert set(batches[:10].ravel()) != set(batches[10:20].ravel())


@pytest.mark.parametrize("batch_size", [0, 104])
def test_batches_that_cannot_be_are_refused(batch_size):
    with pytest.raises(ValueError, match="between 1 and the 103 rows"):
        draw_batches(np.random.default_rng(0), 103, batch_size, 1)


def sgld(rows, batch_size, schedule, **settings):
    arrays = tuple(jnp.asarray(part) for part in rows)
    return baselines.SGLD(
        log_prior, log_likelihood, arrays, batch_size, schedule, **settings
    )


@pytest.mark.slow
def test_sgld_with_small_steps_samples_the_posterior():
    """False alarms: below one in 130,000 a mean; the step's bias is below 1 %."""
    rows, mean, covariance = linear_rows()
    chain = sgld(rows, 400, baselines.Constant(2e-5), thin=50)
    rng = np.random.default_rng(0)
    state, _ = chain.advance(rng, chain.init(mean), 500)
    _, draws = chain.advance(rng, state, 8_000)
    white = np.linalg.solve(np.linalg.cholesky(covariance), (draws - mean).T).T
    assert standard_errors(white, np.zeros(3)).max() < LIMIT
    assert np.abs(white.var(axis=0) - 1).max() < 0.15


def test_sgld_moves_by_the_scaled_drift_and_noise():
    """One step without noise: half the step times the gradient, scaled to all rows."""
    rows, mean, _ = linear_rows()
    size = 1e-6

    def silent(theta, grad, noise):
        return grad, 0 * noise

    chain = sgld(rows, 50, baselines.Constant(size), precondition=silent)
    start = jnp.asarray(mean + 0.1)
    _, draws = chain.advance(np.random.default_rng(1), chain.init(start), 1)
    (batch,) = draw_batches(np.random.default_rng(1), 400, 50, 1)
    some = tuple(part[batch] for part in rows)
    grad = jax.grad(lambda t: log_prior(t) + 8 * log_likelihood(t, some))(start)
    np.testing.assert_allclose(draws[0] - start, 0.5 * size * grad, rtol=1e-6)


def test_the_annealed_schedule_covers_the_stated_range():
    """From 5e-5 down to 1.6e-6 over 10^7 steps, which b = 10^-4 would not give."""
    schedule = baselines.Annealed(5e-3, 1e4, 0.5)
    first, last = (float(schedule(jnp.asarray(t))) for t in (0.0, 1e7))
    assert first == pytest.approx(5e-5)
    assert 1e-6 < last < 2e-6


def test_the_natural_drift_keeps_the_posterior():
    """Its extra term is the divergence of the metric, here by autodiff."""
    matrix = np.random.default_rng(0).standard_normal((3, 3))
    theta = jnp.asarray(matrix.ravel())

    def metric(theta):
        w = theta.reshape(3, 3)
        return jnp.kron(jnp.eye(3), w.T @ w)

    divergence = jnp.einsum("ijj->i", jax.jacobian(metric)(theta))
    grad = jnp.asarray(np.random.default_rng(1).standard_normal(9))
    drift, noise = baselines.natural_gradient(theta, grad, jnp.ones(9))
    np.testing.assert_allclose(drift, metric(theta) @ grad + divergence, rtol=1e-10)
    factor = jax.jacobian(lambda eta: baselines.natural_gradient(theta, grad, eta)[1])(
        jnp.ones(9)
    )
    np.testing.assert_allclose(factor @ factor.T, metric(theta), atol=1e-10)
    assert noise.shape == (9,)


def test_regression_finds_a_gaussian_exactly():
    rng = np.random.default_rng(0)
    precision = np.array([[2.0, 0.3], [0.3, 0.5]])
    mean = np.array([1e3, -2.0])
    thetas = mean + rng.standard_normal((30, 2))
    centred = thetas - mean
    log_p = 4.0 - 0.5 * np.einsum("ni,ij,nj->n", centred, precision, centred)
    found = baselines.regression(jnp.asarray(thetas), jnp.asarray(log_p))
    np.testing.assert_allclose(found.mean, mean, rtol=1e-9)
    np.testing.assert_allclose(found.precision, precision, rtol=1e-6)


def test_regression_has_the_known_fixed_point_of_a_quartic():
    r"""Under N(0, v), $-\theta^4 / 4$ regresses to a Gaussian of precision $3 v$."""
    variance = 3**-0.5  # where 1 / v = 3 v; the points lack the far tails
    points = stats.norm.ppf((np.arange(100_000) + 0.5) / 100_000) * variance**0.5
    points = jnp.asarray(points)
    found = baselines.regression(points[:, None], -(points**4) / 4)
    assert float(found.precision[0, 0]) == pytest.approx(1 / variance, rel=5e-3)


def test_regression_refuses_too_few_points():
    with pytest.raises(ValueError, match="5 points cannot determine the 6"):
        baselines.regression(jnp.zeros((5, 2)), jnp.zeros(5))


@pytest.mark.parametrize(("batch_size", "tolerance"), [(400, 1e-6), (50, 0.25)])
def test_fixed_form_finds_a_gaussian_posterior(batch_size, tolerance):
    """With all rows exactly, with an eighth of them to a fraction of an sd."""
    rows, mean, covariance = linear_rows()
    found = baselines.fixed_form(
        jax.random.key(0),
        log_prior,
        log_likelihood,
        rows,
        (jnp.zeros(3), PRIOR * jnp.eye(3)),
        2000,
        batch_size,
    )
    sd = np.sqrt(np.diag(covariance))
    assert np.abs((found.mean - mean) / sd).max() < tolerance
    assert np.abs(np.sqrt(np.diag(found.covariance)) / sd - 1).max() < tolerance
    assert found.num_rows == 2000 * batch_size


def test_vbem_converges_to_its_fixed_point_near_the_mode():
    data = simulate(np.random.default_rng(0), 2000, 3)
    found = baselines.probit_vbem(data.x, data.y, PRIOR, 300)
    np.testing.assert_array_equal(found.means[0], np.zeros(3))
    moves = np.abs(np.diff(found.means, axis=0)).max(axis=1)
    assert moves[-1] < 1e-6 < moves[0]
    target = probit(data.x, data.y).target()
    guide = vhmc.paper.laplace(target, target.start).guide
    exact_sd = np.sqrt(np.diag(np.linalg.inv(guide.precision)))
    assert np.abs((found.means[-1] - guide.mean) / exact_sd).max() < 0.1
    # What the factorisation costs: it takes the parameters for better known.
    assert (np.sqrt(np.diag(found.covariance)) < 0.9 * exact_sd).all()


def test_exact_hmc_samples_and_counts():
    """False alarms: below one in 130,000 for each mean."""
    rows, mean, covariance = linear_rows()
    arrays = tuple(jnp.asarray(part) for part in rows)

    def energy(theta):
        return -log_prior(theta) - log_likelihood(theta, arrays)

    mass = vhmc.paper.mass_from_covariance(jnp.asarray(covariance))
    chain = baselines.ExactHMC(vhmc.paper.HMC(mass, 0.5, 4), energy)
    rng = np.random.default_rng(0)
    state = chain.init(np.tile(mean, (8, 1)))
    state, _ = chain.advance(rng, state, 50)
    state, block = chain.advance(rng, state, 500)
    assert block.theta.shape == (500, 8, 3)
    assert block.num_gradients == 500 * 4 * 8
    assert block.acceptance > 0.8
    white = np.linalg.solve(
        np.linalg.cholesky(covariance), (block.theta - mean).reshape(-1, 3).T
    ).T
    assert standard_errors(white, np.zeros(3)).max() < LIMIT


def test_nuts_counts_what_it_spends():
    rows, mean, covariance = linear_rows()
    arrays = tuple(jnp.asarray(part) for part in rows)
    target = vhmc.from_jax(
        lambda t: log_prior(t) + log_likelihood(t, arrays), np.zeros(3)
    )
    run = baselines.nuts(target, 0, 2000, 300, 4)
    assert run.draws.shape == (4, 500, 3)
    assert run.num_evaluations == target.num_evaluations > 2000
    sd = np.sqrt(np.diag(covariance))
    assert np.abs((run.draws.mean(axis=(0, 1)) - mean) / sd).max() < 0.2


def test_models_agree_with_their_definitions():
    rng = np.random.default_rng(0)
    data = simulate(rng, 50, 2)
    theta = np.array([0.3, -0.4])
    rate = stats.norm.cdf(data.x @ theta)
    expected = np.sum(data.y * np.log(rate) + (1 - data.y) * np.log1p(-rate))
    rows = jnp.asarray(data.x), jnp.asarray(data.y)
    found = probit_likelihood(jnp.asarray(theta), rows)
    assert float(found) == pytest.approx(expected)
    x, w = rng.standard_normal((40, 2)), rng.standard_normal((2, 2))
    density = np.prod(1 / (4 * np.cosh(x @ w.T / 2) ** 2), axis=1)
    expected = np.sum(np.log(density * abs(np.linalg.det(w))))
    found = ica_likelihood(jnp.asarray(w.ravel()), (jnp.asarray(x),))
    assert float(found) == pytest.approx(expected)

"""The evidence against closed forms and quadrature, and the errors that it states."""

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.stats
from jax.scipy.stats import norm

import vhmc
from tests.densities import Density
from tests.structure.centred_models import STEPS, Y, by_cumsum, walk
from tests.surrogates import KINDS, wrong_surrogate
from vhmc.sampler.check import choose
from vhmc.sampler.check_surrogate import check
from vhmc.sampler.drawing import draw
from vhmc.sampler.evidence import Evidence, log_evidence, log_normaliser

LIMIT = 5.0
"""Errors that an estimate may be off; a normal one is so once in 1.7 million."""


def drawn_from(surrogate, seed, num_draws=500):
    rng = np.random.default_rng(seed)
    starts = 0.3 * rng.standard_normal((8, surrogate.dim))
    return draw(rng, surrogate, starts, 0.3, num_draws)


def regression(dim):
    """Linear regression with unit errors and priors, and its log evidence."""
    rng = np.random.default_rng(dim)
    design = rng.standard_normal((3 * dim, dim))
    y = design @ rng.standard_normal(dim) + rng.standard_normal(3 * dim)
    cov = np.eye(3 * dim) + design @ design.T

    def log_density(beta):
        prior = jnp.sum(norm.logpdf(beta))
        return prior + jnp.sum(norm.logpdf(y, design @ beta, 1.0))

    truth = scipy.stats.multivariate_normal(np.zeros(3 * dim), cov).logpdf(y)
    return vhmc.from_jax(log_density, np.zeros(dim)), truth


def test_a_surrogate_without_residual_has_the_constant_of_a_normal():
    surrogate = wrong_surrogate(3)
    far = surrogate.guard.__class__(1e3, 3.0)
    surrogate = surrogate.__class__(surrogate.transport, surrogate.residual, far)
    found = log_normaliser(
        np.random.default_rng(0), surrogate, drawn_from(surrogate, 0)
    )
    assert found.value == pytest.approx(1.5 * np.log(2 * np.pi), abs=1e-9)
    assert found.error == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_constant_of_a_surrogate_by_quadrature(kind):
    """A false alarm once in 1.7 million, if the error is right."""
    surrogate = wrong_surrogate(2, **KINDS[kind])
    axis = np.linspace(-9, 9, 601)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    length = np.linalg.norm(grid, axis=1)
    energy = 0.5 * length**2 + surrogate.residual.energies(grid)
    density = np.exp(-energy - surrogate.guard.energy(length))
    truth = np.log(np.sum(density) * (axis[1] - axis[0]) ** 2)
    found = log_normaliser(
        np.random.default_rng(0), surrogate, drawn_from(surrogate, 0)
    )
    assert abs(found.value - truth) < max(LIMIT * found.error, 1e-3)
    assert found.error < 0.3, "the network moves the mass to the normal's edge"


def wrong_by(surrogate, seed, log_density, number):
    """Evidence of a density by checked draws of a surrogate that is not it."""
    rng = np.random.default_rng(seed)
    drawn = drawn_from(surrogate, seed)
    thetas = surrogate.transport.forward(drawn.x.reshape(-1, surrogate.dim))
    chosen = choose(rng, lambda values: values, thetas, number)
    evaluate = Density(log_density)
    checked = check(surrogate, evaluate, lambda v: v, chosen, thetas[:10])
    return log_evidence(rng, surrogate, drawn, checked)


def test_calibrated_error():
    """Weights that vary: z scores of 60 runs have root mean square 1.

    Its standard deviation is 0.09 for normal scores; five of them, once in 1.7 million.
    The truth is log 5, of a normal that is wider than the surrogate's by a tenth.
    """
    surrogate = wrong_surrogate(2)
    center = surrogate.transport.forward(np.zeros((1, 2)))[0]

    def log_density(theta):
        return jnp.sum(norm.logpdf(theta, center, 0.88)) + jnp.log(5.0)

    runs = [wrong_by(surrogate, seed, log_density, 100) for seed in range(60)]
    scores = np.array([(run.value - np.log(5.0)) / run.error for run in runs])
    assert abs(np.sqrt(np.mean(scores**2)) - 1) < LIMIT / np.sqrt(2 * len(runs))


def test_weights_without_a_variance_have_a_large_error():
    """A surrogate that is much too narrow sees little of the mass, and says so."""
    surrogate = wrong_surrogate(4)

    def log_density(theta):
        return jnp.sum(norm.logpdf(theta, 0.2, 3.0))

    found = wrong_by(surrogate, 0, log_density, 100)
    assert found.value < -1, "most of the mass is outside of its draws"
    assert found.error > 0.5


@pytest.mark.parametrize("dim", [1, 10, 30])
def test_regression(dim):
    """A normal posterior is found exactly, and so is its constant."""
    target, truth = regression(dim)
    found = vhmc.sample(target, 400, seed=0).log_evidence
    assert abs(found.value - truth) < 1e-3
    assert found.error < 1e-3


def test_banana():
    """A false alarm once in 1.7 million, if the error is right."""

    def log_density(theta):
        return norm.logpdf(theta[0]) + norm.logpdf(theta[1], theta[0] ** 2, 0.5)

    found = vhmc.sample(vhmc.from_jax(log_density, np.zeros(2)), 600).log_evidence
    assert abs(found.value) < LIMIT * found.error < 0.2


def walk_by_quadrature():
    """Of `walk`: normal given the scale of its steps, which is summed over a grid."""
    steps = np.tril(np.ones((STEPS, STEPS)))
    rest = 1.0 + 0.25 * np.eye(STEPS)

    def given(log_scale):
        cov = np.exp(2 * log_scale) * steps @ steps.T + rest
        density = scipy.stats.multivariate_normal(np.zeros(STEPS), cov).pdf(Y)
        # The prior is one of the log, as a density of the scale itself.
        return density * scipy.stats.norm.pdf(log_scale) * np.exp(log_scale)

    return np.log(scipy.integrate.quad(given, -12, 4, limit=200)[0])


def test_a_model_that_is_sampled_in_its_centred_form():
    """The evidence is that of the model as it is written.

    A false alarm once in 1.7 million, if the error is right; the map is nearly exact.
    """
    posterior = vhmc.sample(walk(by_cumsum), 1000, seed=0)
    assert "centred form" in posterior.structure.describe()
    found = posterior.log_evidence
    assert abs(found.value - walk_by_quadrature()) < max(LIMIT * found.error, 1e-3)
    assert found.error < 0.05


def test_correction_changes_nothing():
    """The evidence rests on the checked draws: a corrected run has one as well."""
    target, truth = regression(3)
    found = vhmc.sample(target, 400, correction="exact").log_evidence
    assert abs(found.value - truth) < 1e-3


def test_it_is_written_where_the_verdict_is(tmp_path):
    target, truth = regression(2)
    posterior = vhmc.sample(target, 300)
    attributes = posterior.to_arviz().attrs
    assert attributes["log_evidence"] == posterior.log_evidence.value
    assert attributes["log_evidence_error"] == posterior.log_evidence.error
    page = posterior.report(tmp_path / "report.html").read_text()
    assert f"{truth:.4f} ± 0.0000" in page


def test_words():
    assert str(Evidence(-12.34567, 0.0123)) == "-12.346 ± 0.012"
    assert str(Evidence(-1234.5, 3.0)) == "-1234.5 ± 3.0"
    assert str(Evidence(1.0, np.inf)) == "not known"


def test_where_there_is_none():
    """A sentence says why: nothing was checked, or the prior has no integral."""
    target, _ = regression(2)
    target.constants = "the evidence means nothing"
    posterior = vhmc.sample(target, 300)
    with pytest.raises(ValueError, match="means nothing"):
        _ = posterior.log_evidence
    assert "log_evidence" not in posterior.to_arviz().attrs
